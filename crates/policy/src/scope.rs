//! For which origins of a server a rule holds.

use std::sync::Arc;

use wharf_spec::ServerOrigin;

use crate::target::Reading;
use crate::{Action, Rule};

/// The origins of servers that a rule holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every origin.
    Everywhere,
    /// One origin.
    Only(ServerOrigin),
    /// Every origin but the user's own.
    NotUser,
}

impl Scope {
    /// Returns the scope of a rule in one of its readings; a plain name has none.
    ///
    /// A strict rule holds everywhere unless it names a file. An allow does so only if its name leaves the server open:
    /// one that names a server means the user's own.
    pub fn new(rule: &Rule, reading: Option<&Reading>) -> Self {
        let names_server = || !reading.is_some_and(|reading| reading.is_about_every_server());
        match &rule.defined_in {
            Some(file) => Self::Only(ServerOrigin::File(Arc::from(file.as_ref()))),
            None if rule.action == Action::Allow && names_server() => Self::Only(ServerOrigin::User),
            None => Self::Everywhere,
        }
    }

    /// Returns whether a server of this origin is meant.
    pub fn covers(&self, origin: &ServerOrigin) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Only(only) => only == origin,
            Self::NotUser => *origin != ServerOrigin::User,
        }
    }
}
