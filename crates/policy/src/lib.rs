//! Permission decisions (allow, ask or deny): pure functions over rules and grants.
//!
//! [`Rule`]s are stored in files, and [`Policy`] is a compiled set of them. [`Grants`] are remembered answers of the
//! user, [`Pins`] the approved tool definitions. [`Judge`] evaluates all of them in the required order. This crate does
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

pub use attempt::{Attempt, AttemptKind, Decision, Reason, Risk, Verdict};
pub use difference::{Change, ChangeKind, Difference, difference};
pub use grant::{Grant, GrantScope, Grants, Lifetime};
pub use judge::{Judge, Judgement};
pub use pin::{PinState, Pins, PinsFull};
pub use policy::Policy;
pub use problem::{Problem, ProblemKind};
pub use rule::{Action, NoRule, Rule, RuleOrigin, SourcedRule, Standing};
pub use wharf_spec::Fingerprint;
