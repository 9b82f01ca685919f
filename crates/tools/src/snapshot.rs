//! Immutable snapshot of the registered tools.

use std::sync::{Arc, OnceLock};

use crate::description::is_callable_name;
use crate::{NameEntry, NameLookup, NameTable, RegistryCallError, Tool, ToolError, closest_name};

/// The tools registered at one moment. Immutable.
pub struct RegistrySnapshot {
    table: ToolTable,
    version: u64,
    // Computed on first use: calls do not need the order.
    ordered: OnceLock<SortedTools>,
    absence: Arc<OnceLock<AbsenceExplainer>>,
}

/// Explains why no tool has a name, such as a provider that is not available. Returns `None` for an unknown name.
pub type AbsenceExplainer = Arc<dyn Fn(&str) -> Option<ToolError> + Send + Sync>;

/// A registered tool name that cannot be called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithheldTool {
    /// The name. Untrusted text if it is not a callable name.
    pub name: Arc<str>,
    /// Providers that registered the name, sorted. The empty string is the embedding program itself.
    pub providers: Vec<Arc<str>>,
    /// Reason for withholding it.
    pub reason: WithheldReason,
}

/// Reason for withholding a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithheldReason {
    /// Several tools have the name, so it resolves to none of them, regardless of registration order.
    SharedName,
    /// Not every caller can use the name: it is not 1 to 64 characters of `[a-zA-Z0-9_-]`.
    BadName,
}

pub(crate) type ToolTable = NameTable<Arc<dyn Tool>>;
type ToolEntry = NameEntry<Arc<dyn Tool>>;

struct SortedTools {
    tools: Vec<Arc<dyn Tool>>,
    withheld: Vec<WithheldTool>,
}

impl RegistrySnapshot {
    pub(crate) fn new(table: ToolTable, version: u64, absence: Arc<OnceLock<AbsenceExplainer>>) -> Self {
        Self { table, version, ordered: OnceLock::new(), absence }
    }

    /// Returns the explanation of names that no tool has, if one is set.
    pub fn absence_explainer(&self) -> Option<AbsenceExplainer> {
        self.absence.get().cloned()
    }

    /// Returns the error of calling a name that no tool has: the provider's failure if that is the reason.
    pub fn missing_tool_error(&self, name: &str, nearest: Option<Arc<str>>) -> RegistryCallError {
        match self.absence.get().and_then(|explain| explain(name)) {
            Some(error) => RegistryCallError::Failed(error),
            None => RegistryCallError::unknown_tool(name, nearest),
        }
    }

    pub(crate) fn table(&self) -> &ToolTable {
        &self.table
    }

    /// Returns the version of this snapshot. Later snapshots of a registry have greater versions.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Looks up a tool by name. Takes no lock, and allocates only for an ambiguous name.
    pub fn find(&self, name: &str) -> NameLookup<'_, Arc<dyn Tool>> {
        if is_callable_name(name) { self.table.find(name) } else { NameLookup::Nothing }
    }

    /// Iterates over the callable tools, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn Tool>> {
        self.sorted_tools().tools.iter()
    }

    /// Returns the number of callable tools.
    pub fn len(&self) -> usize {
        self.sorted_tools().tools.len()
    }

    /// Reports whether no tool is callable.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the withheld names with the reasons, sorted by name.
    pub fn withheld(&self) -> &[WithheldTool] {
        &self.sorted_tools().withheld
    }

    /// Returns the callable name most similar to `said`, if one is similar enough.
    pub fn nearest(&self, said: &str) -> Option<&Arc<str>> {
        let name = closest_name(said, self.iter().map(|tool| &*tool.description().name))?;
        match self.find(name) {
            NameLookup::One(tool) => Some(&tool.description().name),
            _ => None,
        }
    }

    fn sorted_tools(&self) -> &SortedTools {
        self.ordered.get_or_init(|| SortedTools::from_table(&self.table))
    }
}

impl SortedTools {
    fn from_table(table: &ToolTable) -> Self {
        let mut all: Vec<&ToolEntry> = table.iter().collect();
        all.sort_by_key(|held| (&held.name, &held.owner));
        let mut ordered = Self { tools: Vec::with_capacity(all.len()), withheld: Vec::new() };
        for holders in all.chunk_by(|one, other| one.name == other.name) {
            match (holders, is_callable_name(&holders[0].name)) {
                ([held], true) => ordered.tools.push(held.value.clone()),
                (_, true) => ordered.withheld.push(withheld_tool(holders, WithheldReason::SharedName)),
                (_, false) => ordered.withheld.push(withheld_tool(holders, WithheldReason::BadName)),
            }
        }
        ordered
    }
}

fn withheld_tool(holders: &[&ToolEntry], reason: WithheldReason) -> WithheldTool {
    let providers = holders.iter().map(|held| held.owner.clone()).collect();
    WithheldTool { name: holders[0].name.clone(), providers, reason }
}
