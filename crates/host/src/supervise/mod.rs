//! One supervisor per server: `step` decides, `task` performs the I/O.

mod backoff;
mod open;
mod phase;
mod standing;
mod step;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use open::{AbortOnDrop, OpenConnection};
pub use phase::ServerState;
pub(crate) use standing::{Availability, ServerSnapshot};
pub(crate) use step::{ServerActivity, SupervisionPolicy, Supervisor, SupervisorCommand};
pub(crate) use task::{ClosingConnections, SupervisorTask, moment, supervise};
