//! An open connection and its lister task.

use tokio::task::JoinHandle;
use wharf_client::Connection;

/// An open connection with its lister task. Dropping it stops the task and leaves the connection open.
pub(crate) struct Open {
    pub connection: Connection,
    attendant: Stopped,
}

/// A task that is aborted on drop.
pub(crate) struct Stopped(JoinHandle<()>);

impl Open {
    pub fn new(connection: Connection, attendant: JoinHandle<()>) -> Self {
        Self { connection, attendant: Stopped(attendant) }
    }

    /// Stops the lister and returns the connection.
    pub fn leave(self) -> Connection {
        drop(self.attendant);
        self.connection
    }
}

impl Stopped {
    pub fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.abort();
    }
}
