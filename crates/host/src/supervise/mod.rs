//! One supervisor per server: `step` decides, `task` performs the I/O.

mod backoff;
mod open;
mod phase;
mod standing;
mod step;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use open::{Open, Stopped};
pub use phase::State;
pub(crate) use standing::{Standing, Way};
pub(crate) use step::{Command, Keeping, ServerActivity, Supervisor};
pub(crate) use task::{Closing, Keeper, moment, supervise};
