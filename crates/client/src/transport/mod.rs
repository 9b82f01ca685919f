//! The ways to reach a server. What is above them sees an engine, and something to close.

pub(crate) mod memory;
pub(crate) mod stdio;

use std::sync::Arc;

use crate::engine::{Dialect, Engine};
use crate::error::ConnectCause;
use crate::guard::{Containment, GuardProgram};
use crate::limits::Limits;
use crate::services::Pending;
use crate::tap::Tap;

/// An open link to a server, held together. Dropping it ends the server without waiting.
pub(crate) struct Open {
    pub engine: Arc<Engine>,
    pub process: Option<ServerProcess>,
    hold: Box<dyn Hold>,
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
    pub name: String,
    pub dialect: Arc<dyn Dialect>,
    pub tap: Option<Arc<dyn Tap>>,
    pub limits: Limits,
    pub guard: GuardProgram,
}

impl Opening {
    fn engine(&self, link: Arc<dyn crate::engine::Link>) -> Arc<Engine> {
        Engine::new(self.name.clone(), link, self.dialect.clone(), self.tap.clone(), self.limits.clone())
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

    /// Begins to end the server the polite way; resolves when nothing of it is left. Dropped while it waits, the server
    /// goes on ending.
    fn close(&self) -> Pending<()>;
}

impl Open {
    pub fn new(engine: Arc<Engine>, process: Option<ServerProcess>, hold: impl Hold + 'static) -> Self {
        Self { engine, process, hold: Box::new(hold) }
    }

    pub fn stderr_tail(&self, lines: usize) -> Vec<String> {
        self.hold.stderr_tail(lines)
    }

    pub fn workers(&self) -> Option<memory::WorkersHealth> {
        self.hold.workers()
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
}
