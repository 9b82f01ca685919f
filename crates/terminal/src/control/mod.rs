//! How one `wharf` asks another that is running: a socket private to the user, a line of JSON-RPC each way.
//!
//! Owns the socket, who may talk to it and in which words. What comes of a request is for whoever holds the host.

mod lines;
mod message;
mod remote;
pub mod rows;
mod serving;
mod sockets;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::session::Session;
use message::Fault;
pub use remote::{Answered, Remote};
use sockets::Socket;

/// Orders that wait for whoever holds the host; others wait in their connections.
const MOST_WAITING: usize = 8;

/// The socket of a host that stays. Dropped, it is gone, and whoever was answered hears it yet.
pub struct Control {
    orders: mpsc::Receiver<Order>,
    _socket: Socket,
}

/// What another program wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// `mcp.list`: a row for each server.
    List,
    /// `mcp.get`: everything about one.
    One(String),
    /// `mcp.reload`: look at the configuration again.
    Reload,
    /// `run.cancel`.
    Cancel,
}

/// A request that waits for its answer. Dropped, it is refused.
pub struct Order {
    pub request: Request,
    answer: oneshot::Sender<Result<Value, Fault>>,
}

/// Who answers at a socket: what `hello` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    pid: u32,
    /// The working directory.
    directory: String,
    version: String,
    /// Stands for which files and variables the configuration is taken from; the same for the same.
    configuration: String,
}

impl Control {
    /// Opens a socket that others of the same user can find. Nothing where there is no place for one. Needs a runtime.
    pub fn open(session: &Session) -> Option<Self> {
        let directory = sockets::directory(&session.surroundings, session.configuration.state.as_deref())?;
        let opened = Self::open_in(&directory, Hello::of(session));
        let (control, serving) =
            opened.inspect_err(|error| tracing::debug!(%error, "there is no control socket")).ok()?;
        session.last_word(serving);
        Some(control)
    }

    /// Opens one, with what attends to it. That is over soon after the socket is gone, when the last answer is told.
    fn open_in(directory: &Path, hello: Hello) -> std::io::Result<(Self, impl Future<Output = ()> + use<>)> {
        let (socket, listener) = Socket::bind(directory, hello.pid)?;
        let (sender, orders) = mpsc::channel(MOST_WAITING);
        Ok((Self { orders, _socket: socket }, serving::attend(listener, Arc::new(hello), sender)))
    }

    /// The next request. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Order {
        match self.orders.recv().await {
            Some(order) => order,
            // Nobody attends to the socket any more.
            None => std::future::pending().await,
        }
    }
}

impl Order {
    pub fn answer(self, result: Value) {
        // Whoever asked may have left.
        let _ = self.answer.send(Ok(result));
    }

    /// Answers with what came of it.
    pub fn reply(self, outcome: Result<Value, Failure>) {
        match outcome {
            Ok(result) => self.answer(result),
            Err(failure) => self.refuse(&failure),
        }
    }

    pub fn refuse(self, failure: &Failure) {
        let data = serde_json::to_value(failure.told()).unwrap_or_else(|_| json!({}));
        let _ = self.answer.send(Err(Fault::of_failure(failure, data)));
    }
}

impl Hello {
    fn of(session: &Session) -> Self {
        let places = &session.configuration.places;
        let mut hasher = DefaultHasher::new();
        (&places.user, &places.flags, places.only_flags, &places.variable, &places.approvals).hash(&mut hasher);
        Self {
            pid: std::process::id(),
            directory: session.surroundings.cwd.to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            configuration: format!("{:016x}", hasher.finish()),
        }
    }

    /// Whether both are about the same servers.
    fn is_alike(&self, other: &Self) -> bool {
        (&self.directory, &self.configuration) == (&other.directory, &other.configuration)
    }
}
