//! The transports. The layers above see only an engine and a handle to close.

pub(crate) mod http;
pub(crate) mod memory;
pub(crate) mod stdio;

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Notify;
use tracing::Span;
use wharf_spec::{LaunchCheck, LaunchRefusal};

use crate::budget::ServerBudget;
use crate::engine::{Engine, Protocol};
use crate::error::ConnectCause;
use crate::limits::Limits;
use crate::process_log::ProcessLog;
use crate::services::BoxedFuture;
use crate::tap::WireObserver;
use wharf_guard::{Containment, GuardProgram};

/// A server that was started or dialled: its engine, and the handle of its link. Dropping it ends the server without
/// waiting.
pub(crate) struct StartedServer {
    pub engine: Arc<Engine>,
    pub transport: Transport,
    pub process: Option<ServerProcess>,
    /// Handling of arguments that a tool wants repeated in headers.
    pub header_param_mode: HeaderParamMode,
    /// Description of the link, for the trace.
    pub detail: String,
    handle: Box<dyn LinkHandle>,
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// The standard streams of a child process.
    Stdio,
    /// In this process.
    Memory,
    /// Streamable HTTP.
    StreamableHttp,
    /// HTTP+SSE (2024-11-05).
    HttpSse,
}

/// Handling of `x-mcp-header` (2026-07-28, basic/transports).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderParamMode {
    /// It has no meaning on this transport.
    Unknown,
    /// The arguments are repeated in headers.
    Repeat,
    /// Repeating is disabled. Tools that need it are withheld.
    Withhold,
}

/// The process of a server that runs in its own process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerProcess {
    /// Process id.
    pub pid: i32,
    /// Containment of the process and its children.
    pub containment: Containment,
}

/// The parameters for opening a link.
pub(crate) struct LinkSetup {
    pub observer: WireObserver,
    pub log: Option<Arc<dyn ProcessLog>>,
    pub protocol: Arc<dyn Protocol>,
    pub limits: Limits,
    /// Memory budget of this server.
    pub budget: ServerBudget,
    pub guard: GuardProgram,
    /// The span of the connection, for its tasks.
    pub span: Span,
}

impl LinkSetup {
    fn engine(&self, link: Arc<dyn crate::engine::Link>) -> Arc<Engine> {
        Engine::new(self.observer.clone(), link, self.protocol.clone(), self.limits.clone(), self.budget.clone())
    }
}

/// The transport-specific side of a link. Dropping it ends the server without waiting.
pub(crate) trait LinkHandle: Send + Sync {
    /// Returns the last lines of stderr, if there are any.
    fn stderr_tail(&self, lines: usize) -> Vec<String> {
        let _ = lines;
        Vec::new()
    }

    /// Reports whether a server that is gone may have read some of its stdin.
    fn has_read_input(&self) -> bool {
        true
    }

    /// Reports whether something sent to the server is still unread, as far as the transport can tell.
    fn has_unread_input(&self) -> bool {
        false
    }

    /// Returns the health of the worker threads of an in-process server.
    fn workers(&self) -> Option<memory::WorkersHealth> {
        None
    }

    /// Resolves when the link can receive all messages from the server, or after a timeout.
    fn ready(&self) -> BoxedFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// Starts a graceful shutdown and resolves when the server has ended. The shutdown continues if the future is
    /// dropped.
    fn close(&self) -> BoxedFuture<()>;
}

impl StartedServer {
    pub fn new(engine: Arc<Engine>, transport: Transport, handle: impl LinkHandle + 'static) -> Self {
        let (header_param_mode, detail) = (HeaderParamMode::Unknown, String::new());
        Self { engine, transport, process: None, header_param_mode, detail, handle: Box::new(handle) }
    }

    pub fn stderr_tail(&self, lines: usize) -> Vec<String> {
        self.handle.stderr_tail(lines)
    }

    pub fn has_read_input(&self) -> bool {
        self.handle.has_read_input()
    }

    pub fn has_unread_input(&self) -> bool {
        self.handle.has_unread_input()
    }

    pub fn workers(&self) -> Option<memory::WorkersHealth> {
        self.handle.workers()
    }

    pub async fn ready(&self) {
        self.handle.ready().await;
    }

    /// Cancels calls in flight, then shuts the server down gracefully.
    pub async fn close(&self) {
        self.engine.cancel_all();
        self.handle.close().await;
    }
}

/// A server that can be started.
pub(crate) trait ServerStarter: Send + Sync {
    fn start(&self, opening: LinkSetup) -> BoxedFuture<Result<StartedServer, ConnectCause>>;

    /// Reports whether a second start creates a new server.
    fn can_restart(&self) -> bool;

    /// Reports whether the server runs elsewhere. No response is then an outage, not evidence about the revision.
    fn is_remote(&self) -> bool {
        false
    }
}

/// Runs the check that precedes every start, on a blocking thread: it reads the files that would be executed.
pub(crate) async fn check_launch(check: Option<&LaunchCheck>, program: Option<&Path>) -> Result<(), ConnectCause> {
    let Some(check) = check.cloned() else { return Ok(()) };
    let program = program.map(Path::to_owned);
    let checked = wharf_threads::run_blocking(move || check.check(program.as_deref())).await;
    let refused = checked.unwrap_or_else(|error| Err(LaunchRefusal::Unreadable(error.to_string())));
    refused.map_err(ConnectCause::NotApproved)
}

/// Expires calls, forever. Checks the deadlines again when `deadline_check` is notified.
pub(crate) async fn expire_calls(engine: &Engine, deadline_check: &Notify) {
    loop {
        let due = engine.next_deadline();
        tokio::select! {
            () = deadline_check.notified() => {}
            () = tokio::time::sleep_until(due) => {
                let mut wakers = Vec::new();
                engine.expire(tokio::time::Instant::now(), &mut wakers);
                wakers.into_iter().for_each(std::task::Waker::wake);
            }
        }
    }
}
