//! Permission decisions (allow, ask or deny): pure functions over rules and grants.
//!
//! [`Rule`]s are stored in files, and [`Policy`] is a compiled set of them. [`GrantSet`] are remembered answers of the
//! user, [`PinSet`] the approved tool definitions. [`PermissionEvaluator`] evaluates all of them in the required order. This crate does
//! no I/O, reads no clock and does not prompt.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod rule;
mod scope;

mod attempt;
mod policy;
mod problem;

mod grant;
mod judge;
mod pin;

mod difference;

mod argument;
mod clause;
mod fold;
mod number;
mod pattern;
mod shape;
mod target;

pub use attempt::{AttemptKind, CallAttempt, DecisionReason, PolicyDecision, RiskLevel, Verdict};
pub use difference::{DefinitionChange, DefinitionChangeKind, DefinitionDiff, difference};
pub use grant::{Grant, GrantLifetime, GrantScope, GrantSet};
pub use judge::{CallDecision, PermissionEvaluator};
pub use pin::{PinLimitReached, PinSet, PinState};
pub use policy::Policy;
pub use problem::{RuleProblem, RuleProblemKind};
pub use rule::{Rule, RuleAction, RuleAuthority, RuleOrigin, RuleWriteError, SourcedRule};
pub use wharf_spec::Fingerprint;
