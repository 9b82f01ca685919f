//! Establishes connections: starts the server, probes it and negotiates the handshake it supports.
//!
//! The probe is always sent before `initialize`: a server that supports both eras commits to the one it sees first.

mod remote;
mod transport_cache;

use std::sync::Arc;

use tokio::time::Instant;
use wharf_spec::{Redactor, ServerSpec, StdioSpec, UntrustedText};
use wharf_wire::{DiscoverResult, Era, Implementation, Revision, ServerCapabilities};

use crate::connection::{Connection, ConnectionInner, ServerFacts};
use crate::engine::{CallEffect, CallRequest, DropAction, PendingCall, RawResult, RequestTarget};
use crate::era::{self, ProbeVerdict, ProtocolState};
use crate::error::{CallError, ConnectCause, ConnectError, DisconnectCause, DisconnectReport};
use crate::flow::ReadRetryBudget;
use crate::flow::header_params::HeaderParamTable;
use crate::notifications::NotificationHub;
use crate::options::{ConnectOptions, NegotiationMode};
use crate::request::constant_meta;
use crate::server_requests::ServerRequestHandler;
use crate::tap::WireObserver;
use crate::trace::{StepOutcome, TraceRecorder};
use crate::transport::memory::{self, LocalServer};
use crate::transport::{HeaderMirroring, LinkSetup, ServerLink, ServerStarter, Transport, stdio};

/// Starts or dials a server and negotiates a revision.
///
/// # Cancel safety
///
/// Dropping the future ends the server or connection it has started.
pub async fn connect_to(spec: &ServerSpec, options: ConnectOptions) -> Result<Connection, ConnectError> {
    match spec {
        ServerSpec::Stdio(spec) => connect(spec, options).await,
        ServerSpec::Http(spec) => connect_http(spec, options).await,
    }
}

/// Starts a server and negotiates a revision.
///
/// # Cancel safety
///
/// Dropping the future ends the server it has started.
pub async fn connect(spec: &StdioSpec, options: ConnectOptions) -> Result<Connection, ConnectError> {
    let redactor = Redactor::for_process(spec, &options.surroundings);
    let mut attempt = ConnectAttempt::new(options, redactor);
    match stdio::prepare(spec, &attempt.options.surroundings) {
        Ok(prepared) => {
            attempt.tracer.step("resolve", StepOutcome::Fine, prepared.program.display());
            attempt.connect(&Arc::new(prepared)).await
        }
        Err(cause) => {
            let cause = attempt.failed("resolve", cause);
            attempt.give_up(cause)
        }
    }
}

pub use remote::connect_http;
pub use transport_cache::TransportCache;

/// Connects to an in-process server and negotiates a revision.
///
/// # Cancel safety
///
/// Dropping the future ends the server.
pub async fn connect_local(server: impl LocalServer, options: ConnectOptions) -> Result<Connection, ConnectError> {
    ConnectAttempt::new(options, Redactor::default()).connect(&memory::LocalServerStarter::new(server)).await
}

struct ConnectAttempt {
    options: ConnectOptions,
    redactor: Arc<Redactor>,
    tracer: TraceRecorder,
    stderr: Vec<String>,
}

/// An opened link and its protocol state.
struct OpenedServer {
    open: ServerLink,
    manners: Arc<ProtocolState>,
    deadline: Instant,
}

/// A server's description of itself.
struct NegotiatedServer {
    revision: Revision,
    capabilities: ServerCapabilities,
    server_info: Option<Implementation>,
    instructions: Option<String>,
}

impl From<DiscoverResult> for NegotiatedServer {
    fn from(found: DiscoverResult) -> Self {
        let DiscoverResult { capabilities, server_info, instructions, .. } = found;
        Self { revision: Revision::LATEST_STATELESS, capabilities, server_info, instructions }
    }
}

/// The outcome of the probe.
enum ProbeOutcome {
    Introduced(NegotiatedServer),
    /// Continue with the handshake. A probe that is still pending may yet succeed.
    Handshake(Option<PendingCall>),
    /// The server exited after the probe.
    Died(Arc<DisconnectReport>),
}

/// Lines of stderr included in an error.
const STDERR_SHOWN: usize = 20;

impl ConnectAttempt {
    fn new(options: ConnectOptions, redactor: Redactor) -> Self {
        let redactor = Arc::new(redactor);
        let tracer = TraceRecorder::new(options.on_step.clone(), redactor.clone());
        Self { options, redactor, tracer, stderr: Vec::new() }
    }

    async fn connect(mut self, server: &dyn ServerStarter) -> Result<Connection, ConnectError> {
        match self.introduce(server).await {
            Ok((started, introduction)) => Ok(self.settle(started, introduction)),
            Err(cause) => self.give_up(cause),
        }
    }

    /// Starts a server and negotiates with it.
    async fn introduce(
        &mut self,
        server: &dyn ServerStarter,
    ) -> Result<(OpenedServer, NegotiatedServer), ConnectCause> {
        let step = if server.is_remote() { "open" } else { "spawn" };
        let started = self.start(server, step).await?;
        let (started, met) = self.meet(started, server).await;
        match met {
            Ok(introduction) => {
                if introduction.revision.era() == Era::Handshake {
                    started.open.ready().await;
                }
                Ok((started, introduction))
            }
            Err(cause) => {
                self.stderr = started.open.stderr_tail(STDERR_SHOWN);
                started.open.close().await;
                Err(cause)
            }
        }
    }

    fn give_up(self, cause: ConnectCause) -> Result<Connection, ConnectError> {
        let cause = cause.masked(&self.redactor);
        Err(ConnectError { cause, trace: self.tracer.finish(), stderr: self.stderr })
    }

    async fn start(&mut self, server: &dyn ServerStarter, step: &'static str) -> Result<OpenedServer, ConnectCause> {
        let ConnectOptions { name, services, limits, cache, observer, .. } = &self.options;
        let desk = ServerRequestHandler::new(name.clone(), services.clone(), limits.clone(), self.redactor.clone());
        let bulletin = NotificationHub::new(cache.clone().unwrap_or_default(), limits.bounds);
        let manners = Arc::new(ProtocolState::new(desk, bulletin, observer.clone()));
        let (tap, redactor) = (self.options.tap.clone(), self.redactor.clone());
        let opening = LinkSetup {
            onlooker: WireObserver { server: name.clone(), redactor, tap },
            log: self.options.process_log.clone(),
            dialect: manners.clone(),
            limits: limits.clone(),
            budget: limits.held_in_all.of_server(limits.held),
            guard: self.options.guard.clone(),
        };
        let deadline = Instant::now() + limits.startup;
        match server.start(opening).await {
            Ok(open) => {
                self.tracer.step(step, StepOutcome::Fine, &open.detail);
                Ok(OpenedServer { open, manners, deadline })
            }
            Err(cause) => Err(self.failed(step, cause)),
        }
    }

    /// Negotiates with the server. Starts a second process if the first one exits after the probe.
    async fn meet(
        &mut self,
        mut started: OpenedServer,
        server: &dyn ServerStarter,
    ) -> (OpenedServer, Result<NegotiatedServer, ConnectCause>) {
        let late = match self.options.negotiation {
            NegotiationMode::Handshake => None,
            // This transport predates the stateless era.
            NegotiationMode::Automatic if started.open.transport == Transport::HttpSse => None,
            NegotiationMode::Automatic => match self.probe(&started, server.is_remote()).await {
                Ok(ProbeOutcome::Introduced(introduction)) => return (started, Ok(introduction)),
                Ok(ProbeOutcome::Handshake(late)) => late,
                Ok(ProbeOutcome::Died(gone)) if !server.can_restart() => {
                    return (started, Err(ConnectCause::Gone(gone)));
                }
                Ok(ProbeOutcome::Died(_)) => {
                    started.open.close().await;
                    match self.start(server, "respawn").await {
                        Ok(second) => started = second,
                        Err(cause) => return (started, Err(cause)),
                    }
                    None
                }
                Err(cause) => return (started, Err(cause)),
            },
        };
        let met = self.handshake(&started, late).await;
        (started, met)
    }

    async fn probe(&mut self, started: &OpenedServer, remote: bool) -> Result<ProbeOutcome, ConnectCause> {
        let mut asked = Revision::LATEST_STATELESS;
        let mut again = false;
        loop {
            let mut call = match started.ask(era::DISCOVER, &era::discover_params(asked, &started.manners.desk)) {
                Ok(call) => call,
                Err(error) => return self.probe_failed(error),
            };
            let left = started.deadline.saturating_duration_since(Instant::now());
            let patience = if remote { left } else { left.min(self.options.limits.probe) };
            let Ok(outcome) = tokio::time::timeout(patience, &mut call).await else {
                if remote {
                    let after = self.options.limits.startup;
                    return Err(self.failed("probe", ConnectCause::TimedOut { after, hint: None }));
                }
                self.tracer.say("probe", StepOutcome::Detour, "no response yet, also trying the handshake");
                return Ok(ProbeOutcome::Handshake(Some(call)));
            };
            match outcome {
                Err(error @ (CallError::ServerGone(_) | CallError::OutcomeUnknown(_))) if !remote => {
                    return self.probe_failed(error);
                }
                // An outage or a required login is no evidence about the revision.
                Err(error) if remote && !says_something(&error) => {
                    return Err(self.failed("probe", ConnectError::cause_of(error)));
                }
                _ => {}
            }
            match era::judge_probe(outcome, asked, again, &self.options.limits.bounds) {
                ProbeVerdict::Stateless(revision, found) => {
                    self.tracer.say("probe", StepOutcome::Fine, format!("speaks {revision}"));
                    return Ok(ProbeOutcome::Introduced(NegotiatedServer {
                        revision,
                        ..NegotiatedServer::from(*found)
                    }));
                }
                ProbeVerdict::AskAgain(revision) => {
                    self.tracer.say("probe", StepOutcome::Detour, format!("retrying with {revision}"));
                    (asked, again) = (revision, true);
                }
                ProbeVerdict::Handshake(reason) => {
                    self.tracer.step("probe", StepOutcome::Detour, reason);
                    return Ok(ProbeOutcome::Handshake(None));
                }
                ProbeVerdict::Hopeless(cause) => return Err(self.failed("probe", cause)),
            }
        }
    }

    /// Classifies a failed probe. A server that exited may have rejected a request before `initialize`, so it is
    /// started again. A server that does not speak MCP is not.
    fn probe_failed(&mut self, error: CallError) -> Result<ProbeOutcome, ConnectCause> {
        match error {
            CallError::ServerGone(gone) | CallError::OutcomeUnknown(gone)
                if !matches!(gone.cause, DisconnectCause::NotMcp(_) | DisconnectCause::EndlessLine) =>
            {
                self.tracer.step("probe", StepOutcome::Detour, format!("{gone}, restarting the server"));
                Ok(ProbeOutcome::Died(gone))
            }
            error => Err(self.failed("probe", ConnectError::cause_of(error))),
        }
    }

    /// Sends `initialize` while a pending probe may still succeed: a server that answers both late serves the era it
    /// saw first.
    async fn handshake(
        &mut self,
        started: &OpenedServer,
        mut late: Option<PendingCall>,
    ) -> Result<NegotiatedServer, ConnectCause> {
        let mut call = match started.ask(era::INITIALIZE, &era::initialize_params(&started.manners.desk)) {
            Ok(call) => call,
            Err(error) => return Err(self.failed("initialize", ConnectError::cause_of(error))),
        };
        let mut refused = None;
        loop {
            tokio::select! {
                biased;
                outcome = answer(&mut late), if late.is_some() => {
                    late = None;
                    let verdict = era::judge_probe(outcome, Revision::LATEST_STATELESS, true, &self.options.limits.bounds);
                    if let ProbeVerdict::Stateless(revision, found) = verdict {
                        self.tracer.say("probe", StepOutcome::Fine, format!("late response: speaks {revision}"));
                        return Ok(NegotiatedServer { revision, ..NegotiatedServer::from(*found) });
                    }
                }
                outcome = &mut call, if refused.is_none() => match outcome {
                    Ok(answer) => return self.initialized(started, answer),
                    Err(error) => refused = Some(error),
                },
            }
            if late.is_none()
                && let Some(error) = refused.take()
            {
                return Err(self.failed("initialize", ConnectError::cause_of(error)));
            }
        }
    }

    fn initialized(&mut self, started: &OpenedServer, answer: RawResult) -> Result<NegotiatedServer, ConnectCause> {
        match era::judge_initialize(answer.result, &self.options.limits.bounds) {
            Ok((revision, result)) => {
                started.manners.settle(revision);
                started.open.engine.post(era::INITIALIZED);
                self.tracer.say("initialize", StepOutcome::Fine, format!("negotiated {revision}"));
                let (capabilities, server_info) = (result.capabilities, result.server_info);
                Ok(NegotiatedServer { revision, capabilities, server_info, instructions: result.instructions })
            }
            Err(cause) => Err(self.failed("initialize", cause)),
        }
    }

    fn settle(self, started: OpenedServer, introduction: NegotiatedServer) -> Connection {
        let NegotiatedServer { revision, capabilities, server_info, instructions } = introduction;
        let most = self.options.limits.remark;
        let instructions = instructions.map(|text| cut(text, most));
        let server_info = server_info.map(|Implementation { name, version, title }| Implementation {
            name: cut(name, most),
            version: cut(version, most),
            title: title.map(|title| cut(title, most)),
        });
        let OpenedServer { open, manners, .. } = started;
        manners.settle(revision);
        let name = self.options.name;
        let (transport, process) = (open.transport, open.process);
        let facts = ServerFacts { name, revision, capabilities, server_info, instructions, transport, process };
        let mirrors = revision.era() == Era::Stateless && open.mirroring != HeaderMirroring::Unknown;
        let connection = Connection::new(ConnectionInner {
            meta: constant_meta(revision, &manners.desk),
            mirror: mirrors.then(|| HeaderParamTable::new(open.mirroring)),
            open,
            facts,
            manners,
            trace: self.tracer.finish(),
            lists: self.options.limits.lists_in_all.of_server(self.options.limits.lists),
            limits: self.options.limits,
            authorization: self.options.authorization,
            rereads: ReadRetryBudget::default(),
        });
        let ServerFacts { name, transport, .. } = connection.facts();
        let millis = connection.trace().duration().as_millis();
        tracing::info!(server = name, %revision, ?transport, millis, "connected");
        connection.ask_for_logs();
        connection
    }

    fn failed(&mut self, step: &'static str, mut cause: ConnectCause) -> ConnectCause {
        if let ConnectCause::TimedOut { after, .. } = &mut cause {
            // The startup timeout applies regardless of the request that was pending.
            *after = self.options.limits.startup;
        }
        let source = std::error::Error::source(&cause).map(|source| format!(": {source}")).unwrap_or_default();
        let detail = format!("{cause}{source}");
        self.tracer.step(step, StepOutcome::Failed, UntrustedText::new(detail));
        cause
    }
}

impl OpenedServer {
    /// Sends a request of the negotiation. Its deadline is the startup deadline, and it is never cancelled.
    fn ask(&self, method: &'static str, params: &str) -> Result<PendingCall, CallError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let request = CallRequest {
            timeout: left,
            timeout_max: left,
            progress: None,
            effect: CallEffect::Reads,
            when_dropped: DropAction::Forget,
        };
        let reserved = self.open.engine.reserve(request)?;
        let id = reserved.id();
        let head: [&[u8]; 5] =
            [b"{\"jsonrpc\":\"2.0\",\"id\":", id.text(), b",\"method\":\"", method.as_bytes(), b"\",\"params\":"];
        let subject = RequestTarget { method, ..RequestTarget::default() };
        self.open.engine.send(reserved, subject, &[&head[..], &[params.as_bytes(), b"}\n"]].concat())
    }
}

/// Reports whether the result of a probe over HTTP is evidence about the revision.
fn says_something(error: &CallError) -> bool {
    let silent = error.gone().is_some()
        || matches!(error, CallError::TimedOut { .. } | CallError::Unauthorized { .. })
        || matches!(error, CallError::Status { status, .. } if matches!(status, 408 | 429) || *status >= 500);
    !silent
}

/// Truncates a text from the server.
fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text.shrink_to_fit();
    text
}

/// Waits for the outcome of a call, or forever if there is none.
async fn answer(call: &mut Option<PendingCall>) -> Result<RawResult, CallError> {
    match call {
        Some(call) => call.await,
        None => std::future::pending().await,
    }
}
