//! An open connection and whoever attends to it.

use tokio::task::JoinHandle;
use wharf_client::Connection;

/// A connection that is attended to. Dropped, the attendant stops; the connection is closed by whoever takes it.
pub(crate) struct Open {
    pub connection: Connection,
    attendant: Stopped,
}

/// A task that ends with whoever holds it.
pub(crate) struct Stopped(JoinHandle<()>);

impl Open {
    pub fn new(connection: Connection, attendant: JoinHandle<()>) -> Self {
        Self { connection, attendant: Stopped(attendant) }
    }

    /// The connection alone: nobody attends to it any longer.
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
