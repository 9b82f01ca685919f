//! One supervisor per server: what to do is decided in `step`, and done in `task`.

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
pub(crate) use step::{Activity, Command, Keeping, Supervisor};
pub(crate) use task::{Closing, Keeper, moment, supervise};
