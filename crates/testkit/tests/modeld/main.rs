//! The requests that the model API fixture refuses, as the real APIs do: the agent's tests rely on it.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod client;
mod refusals;

use wharf_testkit::modeld::{Answer, Modeld, Script};

/// One that gives these answers in turn.
fn start(turns: impl IntoIterator<Item = Answer>) -> Modeld {
    Modeld::start(Script::from_turns(turns)).unwrap()
}
