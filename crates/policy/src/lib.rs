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

mod evaluator;
mod grant;
mod pin;

mod definition_diff;

mod argument;
mod clause;
mod fold;
mod glob_shape;
mod number;
mod pattern;
mod target;

pub use attempt::{AttemptKind, CallAttempt, DecisionReason, PolicyDecision, RiskLevel, Verdict};
pub use definition_diff::{DefinitionChange, DefinitionChangeKind, DefinitionDiff, diff_definitions};
pub use evaluator::{CallDecision, PermissionEvaluator};
pub use grant::{Grant, GrantLifetime, GrantScope, GrantSet};
pub use pin::{PinLimitReached, PinSet, PinState};
pub use policy::Policy;
pub use problem::{RuleProblem, RuleProblemKind};
pub use rule::{Rule, RuleAction, RuleAuthority, RuleOrigin, RuleWriteError, SourcedRule};
// Documented in `wharf-spec`; here for crates that do not depend on it.
#[doc(hidden)]
pub use wharf_spec::Fingerprint;
