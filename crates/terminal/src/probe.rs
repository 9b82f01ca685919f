//! Connects to a configured server to diagnose it, and records every step.
//!
//! `test`, `why`, `status --brief` and `list --probe` print the results. This module prints only the status line.

mod brief;
mod code;
mod connect;
mod next_step;
mod rows;

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use wharf::catalog::Section;
use wharf_client::{ClientServices, StepOutcome};
use wharf_config::ConfiguredServer;
use wharf_spec::{ActivationState, ServerEntry};
use wharf_wire::Implementation;

pub use brief::{brief_line, evidence_line};
pub use code::ProbeCode;
pub use next_step::next_step;
pub use rows::{render_steps, step_document};

use connect::ProbeTarget;

use crate::config_context::usage_refusal;
use crate::failure::{Failure, FailureKind};
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
    /// One of [`STDIO`] or [`HTTP`].
    pub name: &'static str,
    pub state: StepState,
    pub took: Option<Duration>,
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
    pub took: Duration,
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

/// A configured server and the result of probing it.
pub struct ProbedServer<'a> {
    pub server: &'a ConfiguredServer,
    /// A failure for servers that may not be used or cannot be resolved.
    pub outcome: Result<ProbeResult, Failure>,
}

impl ProbedServer<'_> {
    /// Returns the kind of failure of an enabled server.
    pub fn kind(&self) -> Option<FailureKind> {
        match &self.outcome {
            Ok(probed) => probed.outcome.as_ref().err().map(|broken| broken.failure.kind),
            Err(_) if self.server.activation() != ActivationState::Enabled => None,
            Err(failure) => Some(failure.kind),
        }
    }
}

impl ProbeStep {
    pub fn new(name: &'static str, state: StepState, detail: impl std::fmt::Display) -> Self {
        Self { name, state, took: None, detail: detail.to_string(), evidence: Vec::new() }
    }

    #[must_use]
    pub fn with_duration(mut self, took: Duration) -> Self {
        self.took = Some(took);
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
    Ok(wait_with_status(session, &[entry.name.as_str()], target.probe()).await)
}

/// Probes all configured servers in parallel, except those that may not be used.
///
/// # Errors
///
/// Fails if the configuration cannot be read.
pub async fn probe_all(session: &CommandSession) -> Result<Vec<ProbedServer<'_>>, Failure> {
    let config = session.configuration.config()?;
    let wanted = |server: &&ConfiguredServer| usage_refusal(server).is_none();
    let servers: Vec<ConfiguredServer> = config.servers.iter().filter(wanted).cloned().collect();
    let resolved = session.configuration.resolve(servers, config.clone()).await;
    let entries: Vec<ServerEntry> = resolved.iter().flatten().cloned().collect();
    let hosted = start_connections(session, &entries, &ClientServices::default()).await?;
    let mut resolved = resolved.into_iter();
    let (mut looked, mut tasks) = (Vec::new(), JoinSet::new());
    for (position, server) in config.servers.iter().enumerate() {
        let entry = match usage_refusal(server) {
            Some(refused) => Err(refused),
            None => resolved
                .next()
                .unwrap_or_else(|| Err(Failure::other("internal error: the resolver task was cancelled"))),
        };
        looked.push(match entry {
            Err(failure) => Some(ProbedServer { server, outcome: Err(failure) }),
            Ok(entry) => {
                let target = ProbeTarget::new(&hosted, session, &entry);
                tasks.spawn(async move { (position, target.probe().await) });
                None
            }
        });
    }
    let is_under_way = |position: usize| looked[position].is_none();
    let started = config.servers.iter().enumerate().filter(|(position, _)| is_under_way(*position));
    let names: Vec<&str> = started.map(|(_, server)| server.name.as_str()).collect();
    let probed = wait_with_status(session, &names, tasks.join_all()).await;
    for (position, probed) in probed {
        looked[position] = Some(ProbedServer { server: &config.servers[position], outcome: Ok(probed) });
    }
    Ok(looked.into_iter().flatten().collect())
}

/// Interval of the status line.
pub const TICK: Duration = Duration::from_millis(100);
const SPINNER_FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Awaits a future. On a terminal, a status line shows the servers and the elapsed time.
pub async fn wait_with_status<T>(session: &CommandSession, names: &[&str], work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                session.console.clear_status();
                return done;
            }
            () = tokio::time::sleep(TICK), if session.console.shows_status() => {
                session.console.show_status(&status_frame(names, began.elapsed()));
            }
        }
    }
}

/// Formats the status line, as in `⠋ git, files · starting, 2 s`.
pub fn status_frame(names: &[&str], since: Duration) -> String {
    let turn = usize::try_from(since.as_millis() / TICK.as_millis()).unwrap_or(0);
    format!("{} {} · starting, {} s", SPINNER_FRAMES[turn % SPINNER_FRAMES.len()], names.join(", "), since.as_secs())
}
