//! Connects to a configured server to diagnose it, and records every step.
//!
//! `test` and `why` print the results. This module prints only the status line.

mod code;
mod connect;
mod next_step;
mod rows;

use std::time::Duration;

use tokio::time::Instant;
use wharf::catalog::Section;
use wharf_client::{ClientServices, StepOutcome};
use wharf_spec::ServerEntry;
use wharf_wire::Implementation;

pub use code::ProbeCode;
pub use connect::trace_steps;
pub use next_step::next_step;
pub use rows::{render_steps, step_document};

use connect::ProbeTarget;

use crate::failure::Failure;
use crate::progress::{starting_text, with_startup_status};
use crate::servers::start_connections;
use crate::session::CommandSession;

/// Steps of a stdio server, in order.
pub const STDIO: [&str; 9] = ["config", "approval", "expand", "path", "spawn", "handshake", "ping", "list", "schema"];
/// Steps of an HTTP server, in order.
pub const HTTP: [&str; 10] =
    ["config", "approval", "expand", "dial", "tls", "login", "handshake", "ping", "list", "schema"];

/// One diagnosed step.
#[derive(Debug, Clone)]
pub struct ProbeStep {
    /// One of [`STDIO`] or [`HTTP`], or `stdout` for output that is not a message.
    pub name: &'static str,
    pub state: StepState,
    pub duration: Option<Duration>,
    /// Escaped.
    pub detail: String,
    /// Further observations, one per line. Escaped.
    pub evidence: Vec<String>,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Ok,
    /// A problem that does not prevent the connection: a fallback worked, or only a part failed.
    Detour,
    Failed,
    NotReached,
}

/// Result of probing a server.
pub struct ProbeResult {
    pub steps: Vec<ProbeStep>,
    pub outcome: Result<ReadyServer, Box<ProbeFailure>>,
    pub duration: Duration,
}

/// A working server.
pub struct ReadyServer {
    pub revision: String,
    pub server_info: Option<Implementation>,
    pub section: Section,
}

/// A server that does not work, and the step that failed.
#[derive(Debug)]
pub struct ProbeFailure {
    pub code: ProbeCode,
    pub failure: Failure,
}

impl ProbeStep {
    pub fn new(name: &'static str, state: StepState, detail: impl std::fmt::Display) -> Self {
        Self { name, state, duration: None, detail: detail.to_string(), evidence: Vec::new() }
    }

    #[must_use]
    pub fn with_duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    #[must_use]
    pub fn with_evidence(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }
}

impl From<StepOutcome> for StepState {
    fn from(outcome: StepOutcome) -> Self {
        match outcome {
            StepOutcome::Fine => Self::Ok,
            StepOutcome::Detour => Self::Detour,
            StepOutcome::Failed => Self::Failed,
        }
    }
}

/// Connects to a server, pings it, and lists its items. A status line shows the progress on a terminal.
///
/// # Errors
///
/// Fails if the configuration or its rules are invalid.
///
/// # Cancel safety
///
/// Cancel-safe. The session closes the connection.
pub async fn probe_one(session: &CommandSession, entry: &ServerEntry) -> Result<ProbeResult, Failure> {
    let hosted = start_connections(session, std::slice::from_ref(entry), &ClientServices::default()).await?;
    let target = ProbeTarget::new(&hosted, session, entry);
    let status_text = || starting_text(&[entry.name.as_str()]);
    Ok(with_startup_status(session, Instant::now(), status_text, target.probe()).await)
}
