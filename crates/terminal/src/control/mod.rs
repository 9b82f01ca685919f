//! Control of a running `wharf` by another process: a Unix socket private to the user that carries lines of JSON-RPC.
//!
//! Owns the socket, its access check and its protocol. The owner of the host handles the requests.

mod lines;
mod message;
mod remote;
pub mod rows;
mod socket_server;
pub(crate) mod sockets;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::session::CommandSession;
use message::ControlError;
pub use remote::{ControlResponse, RunningWharf};
use sockets::SocketFile;

/// Maximum requests queued for the owner of the host. Further ones wait in their connections.
const MAX_QUEUED_REQUESTS: usize = 8;

/// The control socket of a long-running host. Dropping it removes the socket; pending replies are still flushed.
pub struct ControlSocket {
    requests: mpsc::Receiver<PendingControlRequest>,
    _socket: SocketFile,
}

/// A request from another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRequest {
    /// `mcp.list`: one row per server.
    List,
    /// `mcp.get`: all details of one server.
    One(String),
    /// `mcp.reload`: reload the configuration.
    Reload,
    /// `run.cancel`: cancel the current run.
    Cancel,
}

/// A request that awaits its reply. Dropping it sends an error.
pub struct PendingControlRequest {
    pub request: ControlRequest,
    answer: oneshot::Sender<Result<Value, ControlError>>,
}

/// Response to `hello`: identifies the process behind a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ProcessIdentity {
    pid: u32,
    /// Working directory.
    directory: String,
    version: String,
    /// Hash of the files and variables the configuration is read from.
    configuration: String,
}

impl ControlSocket {
    /// Opens the control socket, or returns `None` if no directory is available for it. Requires a Tokio runtime.
    pub fn open(session: &CommandSession) -> Option<Self> {
        let directory = sockets::socket_directory(&session.environment, session.configuration.state.as_deref())?;
        let opened = Self::open_in(&directory, ProcessIdentity::for_session(session));
        let (control, serving) =
            opened.inspect_err(|error| tracing::debug!(%error, "control socket not available")).ok()?;
        session.on_shutdown(serving);
        Some(control)
    }

    /// Opens a socket in a directory and returns the future that serves it. The future completes once the socket is
    /// closed and the last reply is sent.
    fn open_in(
        directory: &Path,
        identity: ProcessIdentity,
    ) -> std::io::Result<(Self, impl Future<Output = ()> + use<>)> {
        let (socket, listener) = SocketFile::bind(directory, identity.pid)?;
        let (sender, requests) = mpsc::channel(MAX_QUEUED_REQUESTS);
        Ok((
            Self { requests, _socket: socket },
            socket_server::accept_connections(listener, Arc::new(identity), sender),
        ))
    }

    /// Waits for the next request. Cancel-safe.
    pub async fn next(&mut self) -> PendingControlRequest {
        match self.requests.recv().await {
            Some(request) => request,
            // The server task has ended.
            None => std::future::pending().await,
        }
    }
}

impl PendingControlRequest {
    pub fn succeed(self, result: Value) {
        // The caller may have disconnected.
        let _ = self.answer.send(Ok(result));
    }

    /// Replies with the outcome.
    pub fn reply(self, outcome: Result<Value, Failure>) {
        match outcome {
            Ok(result) => self.succeed(result),
            Err(failure) => self.fail(&failure),
        }
    }

    pub fn fail(self, failure: &Failure) {
        let data = serde_json::to_value(failure.error_document()).unwrap_or_else(|_| json!({}));
        let _ = self.answer.send(Err(ControlError::from_failure(failure, data)));
    }
}

impl ProcessIdentity {
    fn for_session(session: &CommandSession) -> Self {
        let places = &session.configuration.places;
        let mut hasher = DefaultHasher::new();
        (&places.user, &places.flags, places.only_flags, &places.variable, &places.approvals).hash(&mut hasher);
        Self {
            pid: std::process::id(),
            directory: session.environment.cwd.to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            configuration: format!("{:016x}", hasher.finish()),
        }
    }

    /// Reports whether both processes manage the same servers.
    fn manages_same_servers(&self, other: &Self) -> bool {
        (&self.directory, &self.configuration) == (&other.directory, &other.configuration)
    }
}
