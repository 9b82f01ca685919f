//! The tools that can be called at one moment.

use std::sync::{Arc, OnceLock};

use crate::description::is_callable;
use crate::{Found, Held, NameTable, Tool, nearest};

/// The tools that can be called at one moment. Never changes; whoever holds one sees the same tools for as long.
pub struct Snapshot {
    table: Table,
    version: u64,
    // Made when somebody first wants it: a call needs no order.
    ordered: OnceLock<Ordered>,
}

/// A name under which nothing can be called, though there is a tool of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Withheld {
    /// The name: untrusted text where it is not callable.
    pub name: Arc<str>,
    /// Who has given it, in order; empty for tools of one's own.
    pub providers: Vec<Arc<str>>,
    /// Why it is withheld.
    pub reason: WithheldReason,
}

/// Why a tool is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithheldReason {
    /// Several tools have the name, so it stands for none of them, in whatever order they came.
    SharedName,
    /// Not every caller could say the name: it is not 1 to 64 of `[a-zA-Z0-9_-]`.
    BadName,
}

pub(crate) type Table = NameTable<Arc<dyn Tool>>;
type Holder = Held<Arc<dyn Tool>>;

struct Ordered {
    tools: Vec<Arc<dyn Tool>>,
    withheld: Vec<Withheld>,
}

impl Snapshot {
    pub(crate) fn new(table: Table, version: u64) -> Self {
        Self { table, version, ordered: OnceLock::new() }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Which snapshot of its registry this is: a later one has a greater number.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The tool of a name. Takes no lock and allocates nothing where there is one.
    pub fn find(&self, name: &str) -> Found<'_, Arc<dyn Tool>> {
        if is_callable(name) { self.table.find(name) } else { Found::Nothing }
    }

    /// The tools in the order of their names, without those that are withheld.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn Tool>> {
        self.ordered().tools.iter()
    }

    /// How many tools can be called.
    pub fn len(&self) -> usize {
        self.ordered().tools.len()
    }

    /// Whether no tool can be called.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is withheld and why, in the order of the names.
    pub fn withheld(&self) -> &[Withheld] {
        &self.ordered().withheld
    }

    /// The callable name most like what was said, where one is like it at all.
    pub fn nearest(&self, said: &str) -> Option<&Arc<str>> {
        let name = nearest(said, self.iter().map(|tool| &*tool.description().name))?;
        match self.find(name) {
            Found::One(tool) => Some(&tool.description().name),
            _ => None,
        }
    }

    fn ordered(&self) -> &Ordered {
        self.ordered.get_or_init(|| Ordered::of(&self.table))
    }
}

impl Ordered {
    fn of(table: &Table) -> Self {
        let mut all: Vec<&Holder> = table.iter().collect();
        all.sort_by_key(|held| (&held.name, &held.owner));
        let mut ordered = Self { tools: Vec::with_capacity(all.len()), withheld: Vec::new() };
        for holders in all.chunk_by(|one, other| one.name == other.name) {
            match (holders, is_callable(&holders[0].name)) {
                ([held], true) => ordered.tools.push(held.value.clone()),
                (_, true) => ordered.withheld.push(withheld(holders, WithheldReason::SharedName)),
                (_, false) => ordered.withheld.push(withheld(holders, WithheldReason::BadName)),
            }
        }
        ordered
    }
}

fn withheld(holders: &[&Holder], reason: WithheldReason) -> Withheld {
    let providers = holders.iter().map(|held| held.owner.clone()).collect();
    Withheld { name: holders[0].name.clone(), providers, reason }
}
