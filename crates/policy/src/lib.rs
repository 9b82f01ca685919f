//! Allow, ask or deny an attempt: pure functions over rules and grants.
//!
//! [`Rule`]s are standing text in a file and [`Policy`] is what a set of them means; [`Grants`] are remembered answers
//! of a person, and [`Pins`] the definitions that were approved. [`Judge`] puts them together in the one right order.
//! Nothing here reads a file or a clock, and nothing asks anybody.

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

pub use attempt::{Attempt, AttemptKind, Decision, Reason, Risk, Verdict};
pub use difference::{Change, ChangeKind, Difference, difference};
pub use grant::{Grant, GrantScope, Grants, Lifetime};
pub use judge::{Judge, Judgement};
pub use pin::{PinState, Pins, PinsFull};
pub use policy::Policy;
pub use problem::{Problem, ProblemKind};
pub use rule::{Action, NoRule, Rule, RuleOrigin, SourcedRule, Standing};
pub use wharf_spec::Fingerprint;
