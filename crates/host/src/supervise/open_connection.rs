//! An open connection and its lister task.

use tokio::task::JoinHandle;
use wharf_client::Connection;

/// An open connection with its lister task. Dropping it stops the task and leaves the connection open.
pub(crate) struct OpenConnection {
    pub connection: Connection,
    attendant: AbortOnDrop,
}

/// A task that is aborted on drop.
pub(crate) struct AbortOnDrop(JoinHandle<()>);

impl OpenConnection {
    pub fn new(connection: Connection, attendant: JoinHandle<()>) -> Self {
        Self { connection, attendant: AbortOnDrop(attendant) }
    }

    /// Stops the lister and returns the connection.
    pub fn into_connection(self) -> Connection {
        drop(self.attendant);
        self.connection
    }
}

impl AbortOnDrop {
    pub fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
