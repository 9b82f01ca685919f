//! The model API, each format seen by plain requests.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod anthropic;
mod chat;
mod client;
mod faults;
mod process;
mod refusals;
mod responses;
mod scripts;

use wharf_testkit::modeld::{Answer, Modeld, Script};

/// One that gives these answers in turn.
fn start(turns: impl IntoIterator<Item = Answer>) -> Modeld {
    Modeld::start(Script::from_turns(turns)).unwrap()
}
