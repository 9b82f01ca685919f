//! Registry of callable tools behind one gate.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::snapshot::{AbsenceExplainer, ToolTable};
use crate::{
    CallRefusal, Gate, GateDecision, GatedCall, NameLookup, NameTable, NoteQueue, RefusalReason, RegistryCallError,
    RegistrySnapshot, Tool, ToolDescription, ToolInvocation, ToolOutcome,
};

/// The registry of callable tools and the only way to call them.
///
/// Tools can be added and removed during calls: a call uses the tool it resolved. Readers never take a lock; writers
/// are serialized. A tool belongs to its description's [provider](ToolDescription::provider).
pub struct Registry {
    gate: Arc<dyn Gate>,
    current: ArcSwap<RegistrySnapshot>,
    owned: Mutex<NamesByProvider>,
    changed: watch::Sender<u64>,
    notes: Arc<NoteQueue>,
    absence: Arc<OnceLock<AbsenceExplainer>>,
}

/// Names registered per provider. Locked while the snapshot is replaced, so that changes are serialized.
type NamesByProvider = HashMap<Arc<str>, BTreeSet<Arc<str>>>;

impl Registry {
    /// Creates an empty registry behind a gate.
    pub fn new(gate: Arc<dyn Gate>) -> Self {
        let absence = Arc::default();
        Self {
            gate,
            current: ArcSwap::from_pointee(RegistrySnapshot::new(NameTable::new(), 0, Arc::clone(&absence))),
            owned: Mutex::default(),
            changed: watch::Sender::new(0),
            notes: Arc::default(),
            absence,
        }
    }

    /// Sets the explanation of names that no tool has. Only the first one is used.
    pub fn set_absence_explainer(&self, explain: AbsenceExplainer) {
        let _ = self.absence.set(explain);
    }

    /// Adds a tool, replacing tools with the same name and provider.
    ///
    /// If another provider has registered the same name, both tools are withheld until one of them is removed.
    pub fn register(&self, tool: Arc<dyn Tool>) {
        let provider: Arc<str> = tool.description().provider().into();
        let name = tool.description().name.clone();
        self.publish_change(|table, owned| {
            owned.entry(provider.clone()).or_default().insert(name.clone());
            Some(table.with_changes(&provider, [&*name], [(name.clone(), tool)]))
        });
    }

    /// Removes all tools with a name, including withheld ones. Reports whether there were any.
    pub fn remove(&self, name: &str) -> bool {
        self.publish_change(|table, owned| {
            let givers = owned.iter_mut().filter_map(|(provider, names)| names.remove(name).then_some(provider));
            let changed = givers.fold(None, |changed: Option<ToolTable>, provider| {
                Some(changed.as_ref().unwrap_or(table).with_changes(provider, [name], []))
            });
            owned.retain(|_, names| !names.is_empty());
            changed
        })
    }

    /// Replaces all tools of a provider in one step. An empty list removes the provider.
    ///
    /// The tools are registered under this provider regardless of their descriptions. Two tools with the same name are
    /// both withheld.
    pub fn replace_provider(&self, provider: &str, tools: Vec<Arc<dyn Tool>>) {
        let provider: Arc<str> = provider.into();
        self.publish_change(|table, owned| {
            let before = owned.remove(&provider).unwrap_or_default();
            let add: Vec<_> = tools.into_iter().map(|tool| (tool.description().name.clone(), tool)).collect();
            if before.is_empty() && add.is_empty() {
                return None;
            }
            if !add.is_empty() {
                owned.insert(provider.clone(), add.iter().map(|(name, _)| name.clone()).collect());
            }
            Some(table.with_changes(&provider, before.iter().map(|name| &**name), add))
        });
    }

    /// Publishes the same tools as a new version, because [`Tool::is_offered`] of some of them has changed.
    pub fn republish(&self) {
        self.publish_change(|table, _| Some(table.with_changes(&Arc::from(""), [], [])));
    }

    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Arc<RegistrySnapshot> {
        self.current.load_full()
    }

    /// Returns a watch channel with the version of the current snapshot, updated on every change.
    pub fn subscribe_versions(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the queue of notes to add to the agent's next request to a model.
    pub fn notes(&self) -> &Arc<NoteQueue> {
        &self.notes
    }

    /// Calls a tool by name after consulting the gate.
    ///
    /// If a person had to permit the call and the tool was changed or removed in the meantime, the call is refused:
    /// the permission was for a different tool.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown or ambiguous, if the gate refuses the call, or if the tool does not respond.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call, or the pending permission prompt.
    pub async fn call(&self, name: &str, call: ToolInvocation) -> Result<ToolOutcome, RegistryCallError> {
        let mut tool = self.resolve(name)?;
        let attempt = GatedCall { caller: &call.caller, tool: tool.description(), arguments: &call.arguments };
        match self.gate.check(attempt) {
            GateDecision::Pass => (),
            GateDecision::Refuse(refusal) => return Err(RegistryCallError::Denied(refusal)),
            GateDecision::Ask(answer) => {
                let wait = call.person_time.start_wait();
                let answered = answer.await;
                drop(wait);
                answered.map_err(RegistryCallError::Denied)?;
                tool = self.resolve_permitted(name, tool.description())?;
            }
        }
        Ok(tool.call(call).await?)
    }

    fn resolve(&self, name: &str) -> Result<Arc<dyn Tool>, RegistryCallError> {
        let snapshot = self.current.load();
        match snapshot.find(name) {
            NameLookup::One(tool) => Ok(tool.clone()),
            NameLookup::Nothing => Err(snapshot.missing_tool_error(name, snapshot.nearest(name).cloned())),
            NameLookup::Several(holders) => {
                let providers = holders.iter().map(|held| held.owner.clone()).collect();
                Err(RegistryCallError::Withheld { name: name.to_owned(), providers })
            }
        }
    }

    /// Resolves the name again after a permission prompt. Succeeds only if the tool is still the one that was
    /// permitted.
    fn resolve_permitted(&self, name: &str, asked: &ToolDescription) -> Result<Arc<dyn Tool>, RegistryCallError> {
        let same = |tool: &Arc<dyn Tool>| is_same_tool(tool.description(), asked);
        let stale = || RegistryCallError::Denied(CallRefusal::new(RefusalReason::PermissionStale));
        self.resolve(name).ok().filter(same).ok_or_else(stale)
    }

    /// Publishes the next snapshot if `change` returns a table. Reports whether it did.
    fn publish_change(&self, change: impl FnOnce(&ToolTable, &mut NamesByProvider) -> Option<ToolTable>) -> bool {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load();
        let version = current.version() + 1;
        let Some(table) = change(current.table(), &mut owned) else { return false };
        self.current.store(Arc::new(RegistrySnapshot::new(table, version, Arc::clone(&self.absence))));
        self.changed.send_replace(version);
        true
    }
}

/// Reports whether two descriptions are of the same tool. Compares origins where both have one, because hints can
/// differ between a live provider and a remembered one.
fn is_same_tool(now: &ToolDescription, asked: &ToolDescription) -> bool {
    match (&now.source, &asked.source) {
        (Some(now), Some(asked)) => now == asked,
        _ => now == asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolSource;
    use wharf_json::RawJson;
    use wharf_spec::Fingerprint;

    #[test]
    fn tool_identity_depends_on_its_origin() {
        let of = |origin: Option<u8>, read_only| {
            let mut description = ToolDescription::new("read", "Reads.", RawJson::empty_object());
            let from =
                |byte| ToolSource { provider: "a".into(), name: "r".into(), fingerprint: Fingerprint([byte; 32]) };
            description.source = origin.map(from);
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
            assert_eq!(is_same_tool(&now, &asked), expected, "{now:?} {asked:?}");
        }
    }
}
