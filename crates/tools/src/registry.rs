//! The tools an agent may call, whoever provides them, behind one gate.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::snapshot::Table;
use crate::{
    Attempt, Call, CallFailure, Check, Description, Found, Gate, NameTable, Notes, Outcome, Refusal, RefusalReason,
    Snapshot, Tool,
};

/// The tools that may be called, and the one way to call them.
///
/// Tools come and go while others call: a call keeps the tool it found. Readers never lock; those who change something
/// wait for each other. A tool belongs to its description's [provider](Description::provider).
pub struct Registry {
    gate: Arc<dyn Gate>,
    current: ArcSwap<Snapshot>,
    owned: Mutex<Owned>,
    changed: watch::Sender<u64>,
    notes: Arc<Notes>,
}

/// Which names each provider has given. Held while the snapshot is replaced, so that changes follow each other.
type Owned = HashMap<Arc<str>, BTreeSet<Arc<str>>>;

impl Registry {
    /// A registry without tools, behind a gate.
    pub fn new(gate: Arc<dyn Gate>) -> Self {
        Self {
            gate,
            current: ArcSwap::from_pointee(Snapshot::new(NameTable::new(), 0)),
            owned: Mutex::default(),
            changed: watch::Sender::new(0),
            notes: Arc::default(),
        }
    }

    /// Adds a tool; it replaces those of the same name and provider.
    ///
    /// Where another provider has given the name as well, both are withheld until one of them goes.
    pub fn register(&self, tool: Arc<dyn Tool>) {
        let provider: Arc<str> = tool.description().provider().into();
        let name = tool.description().name.clone();
        self.change(|table, owned| {
            owned.entry(provider.clone()).or_default().insert(name.clone());
            Some(table.with(&provider, [&*name], [(name.clone(), tool)]))
        });
    }

    /// Removes the tools of a name, withheld ones included, and says whether there were any.
    pub fn remove(&self, name: &str) -> bool {
        self.change(|table, owned| {
            let givers = owned.iter_mut().filter_map(|(provider, names)| names.remove(name).then_some(provider));
            let changed = givers.fold(None, |changed: Option<Table>, provider| {
                Some(changed.as_ref().unwrap_or(table).with(provider, [name], []))
            });
            owned.retain(|_, names| !names.is_empty());
            changed
        })
    }

    /// Puts these tools in the place of all that a provider had, in one step; none, and the provider is gone.
    ///
    /// They are held as this provider's, whatever their descriptions say. Two of one name are both withheld.
    pub fn replace_provider(&self, provider: &str, tools: Vec<Arc<dyn Tool>>) {
        let provider: Arc<str> = provider.into();
        self.change(|table, owned| {
            let before = owned.remove(&provider).unwrap_or_default();
            let add: Vec<_> = tools.into_iter().map(|tool| (tool.description().name.clone(), tool)).collect();
            if before.is_empty() && add.is_empty() {
                return None;
            }
            if !add.is_empty() {
                owned.insert(provider.clone(), add.iter().map(|(name, _)| name.clone()).collect());
            }
            Some(table.with(&provider, before.iter().map(|name| &**name), add))
        });
    }

    /// The tools of this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Tells the version of the newest snapshot, now and whenever there is another one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// What the agent that calls these tools is told before its next request to a model.
    pub fn notes(&self) -> &Arc<Notes> {
        &self.notes
    }

    /// Calls a tool by its name, once the gate has let the call pass.
    ///
    /// Dropped, it withdraws the call, or the question whether it may be made. Where a person was asked and the tool
    /// has changed or gone meanwhile, the call is refused: the answer was about another tool.
    pub async fn call(&self, name: &str, call: Call) -> Result<Outcome, CallFailure> {
        let mut tool = self.find(name)?;
        let attempt = Attempt { caller: &call.caller, tool: tool.description(), arguments: &call.arguments };
        match self.gate.check(attempt) {
            Check::Pass => (),
            Check::Refuse(refusal) => return Err(CallFailure::Refused(refusal)),
            Check::Ask(answer) => {
                answer.await.map_err(CallFailure::Refused)?;
                tool = self.find_still(name, tool.description())?;
            }
        }
        Ok(tool.call(call).await?)
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Tool>, CallFailure> {
        let snapshot = self.current.load();
        match snapshot.find(name) {
            Found::One(tool) => Ok(tool.clone()),
            Found::Nothing => Err(CallFailure::unknown(name, snapshot.nearest(name).cloned())),
            Found::Several(holders) => {
                let providers = holders.iter().map(|held| held.owner.clone()).collect();
                Err(CallFailure::Withheld { name: name.to_owned(), providers })
            }
        }
    }

    /// The tool a person was asked about, or the one in its place where that is the same.
    fn find_still(&self, name: &str, asked: &Description) -> Result<Arc<dyn Tool>, CallFailure> {
        let same = |tool: &Arc<dyn Tool>| is_same(tool.description(), asked);
        let stale = || CallFailure::Refused(Refusal::new(RefusalReason::ApprovalStale));
        self.find(name).ok().filter(same).ok_or_else(stale)
    }

    /// Makes the next snapshot, where there is to be one, and says whether there is.
    fn change(&self, change: impl FnOnce(&Table, &mut Owned) -> Option<Table>) -> bool {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load();
        let version = current.version() + 1;
        let Some(table) = change(current.table(), &mut owned) else { return false };
        self.current.store(Arc::new(Snapshot::new(table, version)));
        self.changed.send_replace(version);
        true
    }
}

/// Whether two descriptions are of one tool. Where it comes from says so: hints are told differently of a provider that
/// has just come back than of one that is only remembered.
fn is_same(now: &Description, asked: &Description) -> bool {
    match (&now.origin, &asked.origin) {
        (Some(now), Some(asked)) => now == asked,
        _ => now == asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use wharf_json::Raw;
    use wharf_spec::Fingerprint;

    #[test]
    fn a_tool_is_the_same_by_where_it_comes_from() {
        let of = |origin: Option<u8>, read_only| {
            let mut description = Description::new("read", "Reads.", Raw::empty_object());
            let from = |byte| Origin { provider: "a".into(), name: "r".into(), fingerprint: Fingerprint([byte; 32]) };
            description.origin = origin.map(from);
            description.hints.read_only = read_only;
            description
        };
        for (now, asked, expected) in [
            (of(Some(1), Some(true)), of(Some(1), None), true),
            (of(Some(1), None), of(Some(2), None), false),
            (of(Some(1), None), of(None, None), false),
            (of(None, None), of(None, None), true),
            (of(None, Some(true)), of(None, None), false),
        ] {
            assert_eq!(is_same(&now, &asked), expected, "{now:?} {asked:?}");
        }
    }
}
