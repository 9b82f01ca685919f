//! The one place where rules, grants and pins meet.

use std::sync::Arc;
use std::time::Instant;

use crate::{Attempt, AttemptKind, Decision, Fingerprint, Grants, PinState, Pins, Policy, Reason, Verdict};

/// Rules, grants and pins together, at one moment.
#[derive(Debug)]
pub struct Judge<'a> {
    /// What the rules mean.
    pub policy: &'a Policy,
    /// What a person has said.
    pub grants: &'a mut Grants,
    /// Which definitions have been approved.
    pub pins: &'a Pins,
    /// The time.
    pub now: Instant,
}

/// What becomes of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The call is made.
    Allow {
        /// Why.
        why: Reason,
        /// No definition of the tool has been approved before: this one now counts as approved.
        first_seen: bool,
    },
    /// A person is asked.
    Ask {
        /// Why; what would have allowed it, if all that speaks against it is the change.
        why: Reason,
        /// The definition approved last, if the tool now has another.
        changed: Option<Arc<str>>,
    },
    /// The call is not made.
    Deny {
        /// Why.
        why: Reason,
    },
}

impl Judge<'_> {
    /// Judges an attempt on a tool with this definition; a tool that belongs to no server has none.
    ///
    /// In this order: a deny is final; a definition that differs from every approved one is asked about, whatever would
    /// allow it; a grant answers what would be asked; then the policy's word stands. A grant for one call is used up by
    /// the judgement that rests on it.
    pub fn judge(&mut self, attempt: &Attempt<'_>, definition: Option<&Fingerprint>) -> Judgement {
        let Decision { verdict, reason: why } = self.policy.decide(attempt);
        if verdict == Verdict::Deny {
            return Judgement::Deny { why };
        }
        let (Some(server), Some(definition)) = (attempt.server, definition) else {
            return undescribed(attempt, verdict, why);
        };
        let first_seen = match self.pins.state((attempt.origin, server), attempt.tool, definition) {
            PinState::Changed { approved } => return Judgement::Ask { why, changed: Some(approved) },
            PinState::New => true,
            PinState::Known => false,
        };
        if verdict == Verdict::Allow {
            return Judgement::Allow { why, first_seen };
        }
        match self.grants.spend(attempt, definition, self.now) {
            Some(lifetime) => Judgement::Allow { why: Reason::Grant(lifetime), first_seen },
            None => Judgement::Ask { why, changed: None },
        }
    }
}

/// Without a definition nothing can be told of its change, which only tools of a server need.
fn undescribed(attempt: &Attempt<'_>, verdict: Verdict, why: Reason) -> Judgement {
    match verdict {
        Verdict::Allow if attempt.server.is_none() || attempt.kind == AttemptKind::Access => {
            Judgement::Allow { why, first_seen: false }
        }
        Verdict::Allow => Judgement::Ask { why: Reason::Undescribed, changed: None },
        Verdict::Ask | Verdict::Deny => Judgement::Ask { why, changed: None },
    }
}
