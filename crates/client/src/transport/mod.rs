//! The ways to reach a server. What is above them sees an engine, and something to close.

pub(crate) mod http;
pub(crate) mod memory;
pub(crate) mod stdio;

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Notify;
use wharf_spec::{LaunchCheck, LaunchRefusal};

use crate::budget::ServerBudget;
use crate::engine::{Dialect, Engine};
use crate::error::ConnectCause;
use crate::limits::Limits;
use crate::process_log::ProcessLog;
use crate::services::Pending;
use crate::tap::Onlooker;
use wharf_guard::{Containment, GuardProgram};

/// An open link to a server, held together. Dropping it ends the server without waiting.
pub(crate) struct Open {
    pub engine: Arc<Engine>,
    pub transport: Transport,
    pub process: Option<ServerProcess>,
    /// What to do with arguments a tool wants repeated beside the message.
    pub mirroring: Mirroring,
    /// What was opened, in words.
    pub detail: String,
    hold: Box<dyn Hold>,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Through the standard streams of a process of its own.
    Stdio,
    /// In this process.
    Memory,
    /// Streamable HTTP.
    StreamableHttp,
    /// HTTP+SSE (2024-11-05).
    HttpSse,
}

/// What becomes of `x-mcp-header` (2026-07-28, basic/transports).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mirroring {
    /// It means nothing on this transport.
    Unknown,
    /// The arguments are repeated in headers.
    Repeat,
    /// They must not be, so that tools which need it are withheld.
    Withhold,
}

/// The process of a server that has one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerProcess {
    /// Its number.
    pub pid: i32,
    /// What holds it and its children together.
    pub containment: Containment,
}

/// What an [`Open`] is made with.
pub(crate) struct Opening {
    pub onlooker: Onlooker,
    pub log: Option<Arc<dyn ProcessLog>>,
    pub dialect: Arc<dyn Dialect>,
    pub limits: Limits,
    /// What this server may have in memory.
    pub budget: ServerBudget,
    pub guard: GuardProgram,
}

impl Opening {
    fn engine(&self, link: Arc<dyn crate::engine::Link>) -> Arc<Engine> {
        Engine::new(self.onlooker.clone(), link, self.dialect.clone(), self.limits.clone(), self.budget.clone())
    }
}

/// The far side of a link. Dropped, it ends the server without waiting.
pub(crate) trait Hold: Send + Sync {
    /// The last lines of stderr, where there is one.
    fn stderr_tail(&self, lines: usize) -> Vec<String> {
        let _ = lines;
        Vec::new()
    }

    /// How the threads of a server in this process are.
    fn workers(&self) -> Option<memory::WorkersHealth> {
        None
    }

    /// Resolves when the link can bring everything a server may say, or that is not waited for any longer.
    fn ready(&self) -> Pending<()> {
        Box::pin(std::future::ready(()))
    }

    /// Begins to end the server the polite way; resolves when nothing of it is left. Dropped while it waits, the server
    /// goes on ending.
    fn close(&self) -> Pending<()>;
}

impl Open {
    pub fn new(engine: Arc<Engine>, transport: Transport, hold: impl Hold + 'static) -> Self {
        let (mirroring, detail) = (Mirroring::Unknown, String::new());
        Self { engine, transport, process: None, mirroring, detail, hold: Box::new(hold) }
    }

    pub fn stderr_tail(&self, lines: usize) -> Vec<String> {
        self.hold.stderr_tail(lines)
    }

    pub fn workers(&self) -> Option<memory::WorkersHealth> {
        self.hold.workers()
    }

    pub async fn ready(&self) {
        self.hold.ready().await;
    }

    /// Withdraws what is in flight, then ends the server the polite way.
    pub async fn close(&self) {
        self.engine.withdraw_all();
        self.hold.close().await;
    }
}

/// A server that can be started: again, if need be.
pub(crate) trait Start: Send + Sync {
    fn start(&self, opening: Opening) -> Pending<Result<Open, ConnectCause>>;

    /// Whether a second start gives a second server.
    fn can_restart(&self) -> bool;

    /// Whether it is somebody else's: then silence is an outage, and says nothing about what it speaks.
    fn is_remote(&self) -> bool {
        false
    }
}

/// Runs the check that goes before every start, on a thread that may block: it reads the files that would run.
pub(crate) async fn check_launch(check: Option<&LaunchCheck>, program: Option<&Path>) -> Result<(), ConnectCause> {
    let Some(check) = check.cloned() else { return Ok(()) };
    let program = program.map(Path::to_owned);
    let checked = tokio::task::spawn_blocking(move || check.check(program.as_deref())).await;
    let refused = checked.unwrap_or_else(|_| Err(LaunchRefusal::Unreadable("the check was cancelled".to_owned())));
    refused.map_err(ConnectCause::NotApproved)
}

/// Ends calls whose time is up, for ever; looks at the clock again when told to.
pub(crate) async fn keep_time(engine: &Engine, look: &Notify) {
    loop {
        let due = engine.next_due();
        tokio::select! {
            () = look.notified() => {}
            () = tokio::time::sleep_until(due) => {
                let mut wakers = Vec::new();
                engine.expire(tokio::time::Instant::now(), &mut wakers);
                wakers.into_iter().for_each(std::task::Waker::wake);
            }
        }
    }
}
