//! One supervisor per server: `step` decides, `task` performs the I/O.

mod backoff;
mod open_connection;
mod phase;
mod server_snapshot;
mod step;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use open_connection::{AbortOnDrop, OpenConnection};
pub use phase::ServerState;
pub(crate) use server_snapshot::{Availability, ServerSnapshot};
pub(crate) use step::{ServerActivity, SupervisionPolicy, Supervisor, SupervisorCommand};
pub(crate) use task::{ClosingConnections, SupervisorTask, current_time, supervise};
