//! Evaluation of an attempt against rules, grants and pins.

use std::sync::Arc;
use std::time::Instant;

use crate::{
    AttemptKind, CallAttempt, DecisionReason, Fingerprint, GrantSet, PinSet, PinState, Policy, PolicyDecision, Verdict,
};

/// Rules, grants and pins at one moment.
#[derive(Debug)]
pub struct PermissionEvaluator<'a> {
    /// Compiled rules.
    pub policy: &'a Policy,
    /// Permissions granted by the user.
    pub grants: &'a mut GrantSet,
    /// Approved tool definitions.
    pub pins: &'a PinSet,
    /// Current time.
    pub now: Instant,
}

/// The decision about an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallDecision {
    /// The call is made.
    Allow {
        /// Reason for the decision.
        why: DecisionReason,
        /// Set if no definition of the tool has been approved before. The caller approves this one.
        first_seen: bool,
    },
    /// The user is asked.
    Ask {
        /// Reason for the decision. If only the changed definition requires the question, the reason to allow.
        why: DecisionReason,
        /// The definition approved last, if the tool now has another one.
        changed: Option<Arc<str>>,
    },
    /// The call is not made.
    Deny {
        /// Reason for the decision.
        why: DecisionReason,
    },
}

impl PermissionEvaluator<'_> {
    /// Decides about a call of a tool with this definition. A tool that belongs to no server has no definition.
    ///
    /// Checks in this order: a deny of the policy is final. A definition that differs from every approved one results
    /// in an ask, even if the policy allows the call or a grant covers it. An allow of the policy stands. A grant turns
    /// an ask of the policy into an allow. A grant for one call is used up by the decision that relies on it.
    pub fn evaluate(&mut self, attempt: &CallAttempt<'_>, definition: Option<&Fingerprint>) -> CallDecision {
        let PolicyDecision { verdict, reason: why } = self.policy.decide(attempt);
        if verdict == Verdict::Deny {
            return CallDecision::Deny { why };
        }
        let (Some(server), Some(definition)) = (attempt.server, definition) else {
            return decide_without_definition(attempt, verdict, why);
        };
        let first_seen = match self.pins.state(attempt.origin, server, attempt.tool, definition) {
            PinState::Changed { approved } => return CallDecision::Ask { why, changed: Some(approved) },
            PinState::New => true,
            PinState::Known => false,
        };
        if verdict == Verdict::Allow {
            return CallDecision::Allow { why, first_seen };
        }
        match self.grants.consume(attempt, definition, self.now) {
            Some(lifetime) => CallDecision::Allow { why: DecisionReason::Grant(lifetime), first_seen },
            None => CallDecision::Ask { why, changed: None },
        }
    }
}

/// Decides without a definition. Changes cannot be detected then, which matters only for calls of a server's tools.
fn decide_without_definition(attempt: &CallAttempt<'_>, verdict: Verdict, why: DecisionReason) -> CallDecision {
    match verdict {
        Verdict::Allow if attempt.server.is_none() || attempt.kind == AttemptKind::Access => {
            CallDecision::Allow { why, first_seen: false }
        }
        Verdict::Allow => CallDecision::Ask { why: DecisionReason::Undescribed, changed: None },
        Verdict::Ask | Verdict::Deny => CallDecision::Ask { why, changed: None },
    }
}
