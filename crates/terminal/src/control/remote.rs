//! Client of the control socket of a running `wharf`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_spec::UntrustedText;

use super::lines::SocketLines;
use super::message::{decode_response, encode_request};
use super::sockets::{self, effective_uid};
use super::{ProcessIdentity, rows};
use crate::failure::{Failure, FailureKind};
use crate::session::CommandSession;

/// Timeout for the `hello` response.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for a response, slightly longer than the server's own timeout.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(65);

/// A running `wharf` with the same working directory and configuration flags.
pub struct RunningWharf {
    pub pid: u32,
    lines: SocketLines,
    last_id: u64,
}

/// A response of a running `wharf`, serializable as a JSON document.
#[derive(Serialize)]
pub struct ControlResponse<T> {
    pub process: u32,
    #[serde(flatten)]
    pub body: T,
}

impl<T: Serialize + DeserializeOwned> ControlResponse<T> {
    /// Sends a request to the newest running process.
    ///
    /// # Errors
    ///
    /// Fails if no process is running.
    pub async fn request(session: &CommandSession, method: &str) -> Result<Self, Failure> {
        let mut remote = RunningWharf::find_or_fail(session).await?;
        let body = serde_json::from_value(remote.call(method, json!({})).await?).map_err(Failure::other)?;
        Ok(Self { process: remote.pid, body })
    }

    /// Prints the response as text, or as JSON with `--json`.
    pub fn show(&self, session: &CommandSession, ok: bool, words: impl FnOnce(&Self) -> String) -> Result<(), Failure> {
        match session.console.mode.json {
            true => session.console.print_document(ok, self),
            false => session.console.print(format_args!("{}\n", UntrustedText::new(words(self)))),
        }
    }
}

impl RunningWharf {
    /// Connects to the newest running process, or returns `None`.
    pub async fn find(session: &CommandSession) -> Option<Self> {
        let directory = sockets::socket_directory(&session.environment, session.configuration.state.as_deref())?;
        Self::find_in(&directory, &ProcessIdentity::for_session(session)).await
    }

    /// Connects to the newest running process.
    ///
    /// # Errors
    ///
    /// Fails if no process is running.
    async fn find_or_fail(session: &CommandSession) -> Result<Self, Failure> {
        Self::find(session).await.ok_or_else(|| {
            Failure::new(FailureKind::Unreachable, "no wharf is running with this directory's configuration")
                .with_hint("start `wharf` or `wharf run` in the same directory with the same --config")
        })
    }

    pub(super) async fn find_in(directory: &Path, own: &ProcessIdentity) -> Option<Self> {
        let directory = directory.to_owned();
        let sockets = wharf_threads::run_blocking(move || sockets::live_sockets(&directory)).await.unwrap_or_default();
        for socket in sockets {
            match timeout(HELLO_TIMEOUT, Self::connect(socket)).await {
                Ok(Some((remote, hello))) if hello.manages_same_servers(own) && hello.pid != own.pid => {
                    return Some(remote);
                }
                _ => {}
            }
        }
        None
    }

    async fn connect(socket: PathBuf) -> Option<(Self, ProcessIdentity)> {
        let stream = UnixStream::connect(socket).await.ok()?;
        stream.peer_cred().ok().filter(|peer| peer.uid() == effective_uid())?;
        let mut remote = Self { pid: 0, lines: SocketLines::new(stream), last_id: 0 };
        let hello: ProcessIdentity = serde_json::from_value(remote.call("hello", json!({})).await.ok()?).ok()?;
        remote.pid = hello.pid;
        Some((remote, hello))
    }

    /// Sends a request and waits for the response.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.last_id += 1;
        let line = encode_request(self.last_id, method, &params);
        let exchange = async {
            self.lines.send(line).await?;
            self.lines.next().await
        };
        let pid = self.pid;
        let answered = timeout(RESPONSE_TIMEOUT, exchange).await;
        let answered = answered.map_err(|_| {
            Failure::new(FailureKind::TimedOut, format_args!("the running wharf (pid {pid}) does not respond"))
        })?;
        let gone = || {
            Failure::new(FailureKind::Unreachable, format_args!("the running wharf (pid {pid}) closed the connection"))
        };
        let line = answered.ok().flatten().ok_or_else(gone)?;
        match decode_response(&line).ok_or_else(gone)? {
            Ok(result) => Ok(result),
            Err(fault) => {
                Err(fault.data.as_ref().and_then(rows::parse_failure).unwrap_or_else(|| Failure::other(fault.message)))
            }
        }
    }
}
