//! Server origins that a rule applies to.

use std::sync::Arc;

use wharf_spec::ServerOrigin;

use crate::target::NameReading;
use crate::{Rule, RuleAction};

/// The server origins that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleScope {
    /// Every origin.
    Everywhere,
    /// One origin.
    Only(ServerOrigin),
    /// Every origin but the user's own.
    NotUser,
}

impl RuleScope {
    /// Returns the scope of a rule in one of its readings. `None` stands for a plain name.
    ///
    /// A deny or ask applies to all origins unless it names a file. An allow without a file does so only if it leaves
    /// the server open. Otherwise it applies to the user's own server.
    pub fn new(rule: &Rule, reading: Option<&NameReading>) -> Self {
        let names_server = || !reading.is_some_and(|reading| reading.matches_every_server());
        match &rule.defined_in {
            Some(file) => Self::Only(ServerOrigin::File(Arc::from(file.as_ref()))),
            None if rule.action == RuleAction::Allow && names_server() => Self::Only(ServerOrigin::User),
            None => Self::Everywhere,
        }
    }

    /// Reports whether the scope includes this origin.
    pub fn covers(&self, origin: &ServerOrigin) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Only(only) => only == origin,
            Self::NotUser => *origin != ServerOrigin::User,
        }
    }
}
