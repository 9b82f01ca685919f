//! Establishes connections: starts the server, probes it and negotiates the handshake it supports.
//!
//! The probe is always sent before `initialize`: some servers that support both eras commit to the one they see first.
//! Others commit to `initialize` whenever it comes, so its response counts more than a late response to the probe.

mod remote;
mod transport_cache;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{Instrument as _, Span};
use wharf_spec::{Redactor, ServerSpec, StdioSpec, UntrustedText};
use wharf_wire::{DiscoverResult, Era, Implementation, Revision, ServerCapabilities};

use crate::connection::{Connection, ConnectionInner, ServerFacts};
use crate::engine::{CallEffect, CallRequest, CancelPolicy, HeaderFields, PendingCall, RawResult};
use crate::era::{self, ProbeVerdict, ProtocolState};
use crate::error::{CallError, ConnectCause, ConnectError, DisconnectCause, DisconnectReport};
use crate::flow::ReadRetryBudget;
use crate::flow::header_params::HeaderParamTable;
use crate::notifications::NotificationHub;
use crate::options::{ConnectOptions, NegotiationMode};
use crate::request::fixed_meta;
use crate::server_requests::ServerRequestHandler;
use crate::tap::WireObserver;
use crate::trace::{StepOutcome, TraceRecorder};
use crate::trace_context::TraceContext;
use crate::transport::memory::{self, LocalServer};
use crate::transport::{HeaderParamMode, LinkSetup, ServerStarter, StartedServer, Transport, stdio};

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
    let redactor = Redactor::for_stdio(spec, &options.surroundings);
    let mut attempt = ConnectAttempt::new(options, redactor);
    match stdio::prepare(spec, &attempt.options.surroundings) {
        Ok(prepared) => {
            attempt.tracer.record("resolve", StepOutcome::Fine, prepared.program.display());
            attempt.connect(&Arc::new(prepared)).await
        }
        Err(cause) => {
            let cause = attempt.record_failure("resolve", cause);
            Err(attempt.into_error(cause))
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
    /// The span of the connection, from its start to its end.
    span: Span,
}

/// An opened link and its protocol state.
struct OpenedServer {
    server: StartedServer,
    protocol: Arc<ProtocolState>,
    deadline: Instant,
    /// Startup timeout.
    startup: Duration,
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
/// Maximum time that the negotiation waits for a message after an unreadable line in place of a response.
const UNREADABLE_GRACE: Duration = Duration::from_secs(1);
/// Interval of the checks whether the server has read the probe. The kernel has no event for it.
const READ_CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl ConnectAttempt {
    fn new(options: ConnectOptions, redactor: Redactor) -> Self {
        let redactor = Arc::new(redactor);
        let tracer = TraceRecorder::new(options.on_step.clone(), redactor.clone());
        let span = tracing::debug_span!("connection", server = options.name);
        Self { options, redactor, tracer, stderr: Vec::new(), span }
    }

    async fn connect(mut self, server: &dyn ServerStarter) -> Result<Connection, ConnectError> {
        match self.start_and_negotiate(server).await {
            Ok((started, introduction)) => Ok(self.into_connection(started, introduction)),
            Err(cause) => Err(self.into_error(cause)),
        }
    }

    /// Starts a server and negotiates with it, in the span of the connection.
    async fn start_and_negotiate(
        &mut self,
        server: &dyn ServerStarter,
    ) -> Result<(OpenedServer, NegotiatedServer), ConnectCause> {
        let span = self.span.clone();
        self.start_and_negotiate_in_span(server).instrument(span).await
    }

    async fn start_and_negotiate_in_span(
        &mut self,
        server: &dyn ServerStarter,
    ) -> Result<(OpenedServer, NegotiatedServer), ConnectCause> {
        let step = if server.is_remote() { "open" } else { "spawn" };
        let started = self.start(server, step).await?;
        let (started, met) = self.negotiate(started, server).await;
        match met {
            Ok(introduction) => {
                if introduction.revision.era() == Era::Handshake {
                    started.server.ready().await;
                }
                Ok((started, introduction))
            }
            Err(cause) => {
                self.stderr = started.server.stderr_tail(STDERR_SHOWN);
                started.server.close().await;
                Err(cause)
            }
        }
    }

    fn into_error(self, cause: ConnectCause) -> ConnectError {
        let cause = cause.without_secrets(&self.redactor);
        ConnectError { cause, trace: self.tracer.finish(), stderr: self.stderr }
    }

    async fn start(&mut self, server: &dyn ServerStarter, step: &'static str) -> Result<OpenedServer, ConnectCause> {
        let ConnectOptions { name, services, limits, cache, observer, .. } = &self.options;
        let request_handler =
            ServerRequestHandler::new(name.clone(), services.clone(), limits.clone(), self.redactor.clone());
        let notifications = NotificationHub::new(cache.clone().unwrap_or_default(), limits.bounds);
        let protocol = Arc::new(ProtocolState::new(request_handler, notifications, observer.clone()));
        let (tap, redactor) = (self.options.tap.clone(), self.redactor.clone());
        let opening = LinkSetup {
            observer: WireObserver { server: name.clone(), redactor, tap },
            log: self.options.process_log.clone(),
            protocol: protocol.clone(),
            limits: limits.clone(),
            budget: limits.memory_budget_in_all.for_server(limits.memory_budget),
            guard: self.options.guard.clone(),
            span: self.span.clone(),
        };
        let deadline = Instant::now() + limits.startup;
        match server.start(opening).await {
            Ok(started) => {
                self.tracer.record(step, StepOutcome::Fine, &started.detail);
                let startup = self.options.limits.startup;
                Ok(OpenedServer { server: started, protocol, deadline, startup })
            }
            Err(cause) => Err(self.record_failure(step, cause)),
        }
    }

    /// Negotiates with the server. Starts a second process if the first one exits after the probe.
    async fn negotiate(
        &mut self,
        mut started: OpenedServer,
        server: &dyn ServerStarter,
    ) -> (OpenedServer, Result<NegotiatedServer, ConnectCause>) {
        let late = match self.options.negotiation {
            NegotiationMode::Handshake => None,
            // This transport predates the stateless era.
            NegotiationMode::Automatic if started.server.transport == Transport::HttpSse => None,
            NegotiationMode::Automatic => match self.probe(&started, server.is_remote()).await {
                Ok(ProbeOutcome::Introduced(introduction)) => return (started, Ok(introduction)),
                Ok(ProbeOutcome::Handshake(late)) => late,
                Ok(ProbeOutcome::Died(gone)) if !server.can_restart() => {
                    return (started, Err(ConnectCause::Gone(gone)));
                }
                Ok(ProbeOutcome::Died(_)) => {
                    started.server.close().await;
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
            let mut call = match started
                .send_request(era::DISCOVER, &era::discover_params(asked, &started.protocol.request_handler))
            {
                Ok(call) => call,
                Err(error) => return self.probe_failed(started, error),
            };
            let left = started.deadline.saturating_duration_since(Instant::now());
            let max_wait = if remote { left } else { left.min(self.options.limits.probe) };
            let answered = async {
                tokio::select! {
                    biased;
                    outcome = &mut call => Some(outcome),
                    () = started.wait_for_unreadable(0), if !remote => None,
                    () = started.wait_for_ignored_probe(self.options.limits.probe_response), if !remote => None,
                }
            };
            let Ok(Some(outcome)) = tokio::time::timeout(max_wait, answered).await else {
                if remote {
                    let after = self.options.limits.startup;
                    return Err(self.record_failure("probe", ConnectCause::TimedOut { after, hint: None }));
                }
                self.tracer.record_unredacted("probe", StepOutcome::Fine, "no response yet, also trying the handshake");
                return Ok(ProbeOutcome::Handshake(Some(call)));
            };
            match outcome {
                Err(error @ (CallError::RetryableDisconnect(_) | CallError::OutcomeUnknown(_))) if !remote => {
                    return self.probe_failed(started, error);
                }
                // An outage or a required login is no evidence about the revision.
                Err(error) if remote && !is_protocol_evidence(&error) => {
                    return Err(self.record_failure("probe", ConnectError::cause_from_call(error)));
                }
                _ => {}
            }
            match era::evaluate_probe(outcome, asked, again, &self.options.limits.bounds) {
                ProbeVerdict::Stateless(revision, found) => {
                    self.tracer.record_unredacted("probe", StepOutcome::Fine, format!("speaks {revision}"));
                    return Ok(ProbeOutcome::Introduced(NegotiatedServer {
                        revision,
                        ..NegotiatedServer::from(*found)
                    }));
                }
                ProbeVerdict::AskAgain(revision) => {
                    self.tracer.record_unredacted("probe", StepOutcome::Detour, format!("retrying with {revision}"));
                    (asked, again) = (revision, true);
                }
                ProbeVerdict::Handshake(reason) => {
                    // An older revision is not a problem.
                    self.tracer.record("probe", StepOutcome::Fine, reason);
                    return Ok(ProbeOutcome::Handshake(None));
                }
                ProbeVerdict::Hopeless(cause) => return Err(self.record_failure("probe", cause)),
            }
        }
    }

    /// Classifies a failed probe. A server that exited after reading the probe may have rejected a request before
    /// `initialize`, so it is started again. A server that read nothing or does not speak MCP is not.
    fn probe_failed(&mut self, started: &OpenedServer, error: CallError) -> Result<ProbeOutcome, ConnectCause> {
        match error {
            CallError::RetryableDisconnect(gone) | CallError::OutcomeUnknown(gone)
                if started.server.has_read_input()
                    && !matches!(gone.cause, DisconnectCause::NotMcp(_) | DisconnectCause::EndlessLine) =>
            {
                self.tracer.record("probe", StepOutcome::Detour, format!("{gone}, restarting the server"));
                Ok(ProbeOutcome::Died(gone))
            }
            error => Err(self.record_failure("probe", ConnectError::cause_from_call(error))),
        }
    }

    /// Sends `initialize` while a pending probe may still succeed.
    async fn handshake(
        &mut self,
        started: &OpenedServer,
        mut late: Option<PendingCall>,
    ) -> Result<NegotiatedServer, ConnectCause> {
        let mut call =
            match started.send_request(era::INITIALIZE, &era::initialize_params(&started.protocol.request_handler)) {
                Ok(call) => call,
                Err(error) => return Err(self.record_failure("initialize", ConnectError::cause_from_call(error))),
            };
        let (mut refused, before) = (None, started.server.engine.unreadable.count());
        loop {
            tokio::select! {
                biased;
                outcome = await_optional_call(&mut late), if late.is_some() => {
                    late = None;
                    let verdict = era::evaluate_probe(outcome, Revision::LATEST_STATELESS, true, &self.options.limits.bounds);
                    if let ProbeVerdict::Stateless(revision, found) = verdict {
                        self.tracer.record_unredacted("probe", StepOutcome::Fine, format!("late response: speaks {revision}"));
                        let discovered = NegotiatedServer { revision, ..NegotiatedServer::from(*found) };
                        return if refused.is_some() { Ok(discovered) } else { self.choose_era(started, discovered, call).await };
                    }
                }
                outcome = &mut call, if refused.is_none() => match outcome {
                    Ok(answer) => return self.on_initialize_result(started, answer),
                    Err(error) => refused = Some(error),
                },
                () = started.wait_for_unreadable(before), if before == 1 => {
                    let gone = started.not_mcp_report();
                    return Err(self.record_failure("initialize", ConnectCause::Gone(Arc::new(gone))));
                }
            }
            if late.is_none()
                && let Some(error) = refused.take()
            {
                return Err(self.record_failure("initialize", ConnectError::cause_from_call(error)));
            }
        }
    }

    /// Decides between a probe that succeeded late and a pending `initialize`. A server that accepts both has begun the
    /// handshake era and rejects stateless requests; one that refuses or ignores `initialize` is stateless.
    async fn choose_era(
        &mut self,
        started: &OpenedServer,
        discovered: NegotiatedServer,
        initialize: PendingCall,
    ) -> Result<NegotiatedServer, ConnectCause> {
        let left = started.deadline.saturating_duration_since(Instant::now());
        match tokio::time::timeout(left.min(self.options.limits.probe), initialize).await {
            Ok(Ok(answer)) => self.on_initialize_result(started, answer),
            Ok(Err(_)) | Err(_) => Ok(discovered),
        }
    }

    fn on_initialize_result(
        &mut self,
        started: &OpenedServer,
        answer: RawResult,
    ) -> Result<NegotiatedServer, ConnectCause> {
        match era::evaluate_initialize(answer.result, &self.options.limits.bounds) {
            Ok((revision, result)) => {
                started.protocol.set_revision(revision);
                started.server.engine.send_message(era::INITIALIZED);
                self.tracer.record_unredacted("initialize", StepOutcome::Fine, format!("negotiated {revision}"));
                let (capabilities, server_info) = (result.capabilities, result.server_info);
                Ok(NegotiatedServer { revision, capabilities, server_info, instructions: result.instructions })
            }
            Err(cause) => Err(self.record_failure("initialize", cause)),
        }
    }

    fn into_connection(self, started: OpenedServer, introduction: NegotiatedServer) -> Connection {
        let NegotiatedServer { revision, capabilities, server_info, instructions } = introduction;
        let most = self.options.limits.max_server_text;
        let instructions = instructions.map(|text| truncate_text(text, most));
        let server_info = server_info.map(|Implementation { name, version, title }| Implementation {
            name: truncate_text(name, most),
            version: truncate_text(version, most),
            title: title.map(|title| truncate_text(title, most)),
        });
        let OpenedServer { server, protocol, .. } = started;
        protocol.set_revision(revision);
        let name = self.options.name;
        let (transport, process) = (server.transport, server.process);
        let facts = ServerFacts { name, revision, capabilities, server_info, instructions, transport, process };
        let has_header_params =
            revision.era() == Era::Stateless && server.header_param_mode != HeaderParamMode::Unknown;
        let connection = Connection::new(ConnectionInner {
            meta: fixed_meta(revision, &protocol.request_handler),
            header_params: has_header_params.then(|| HeaderParamTable::new(server.header_param_mode)),
            server,
            facts,
            protocol,
            trace: self.tracer.finish(),
            lists: self.options.limits.lists_in_all.for_server(self.options.limits.lists),
            limits: self.options.limits,
            authorization: self.options.authorization,
            read_retries: ReadRetryBudget::default(),
            trace_context: TraceContext::from_environment(&self.options.surroundings),
        });
        let _entered = self.span.enter();
        let ServerFacts { name, transport, .. } = connection.facts();
        let millis = connection.trace().duration().as_millis();
        tracing::info!(server = name, %revision, ?transport, millis, "connected");
        connection.request_logs();
        connection
    }

    fn record_failure(&mut self, step: &'static str, mut cause: ConnectCause) -> ConnectCause {
        if let ConnectCause::TimedOut { after, .. } = &mut cause {
            // The startup timeout applies regardless of the request that was pending.
            *after = self.options.limits.startup;
        }
        let source = std::error::Error::source(&cause).map(|source| format!(": {source}")).unwrap_or_default();
        let detail = format!("{cause}{source}");
        self.tracer.record(step, StepOutcome::Failed, UntrustedText::new(detail));
        cause
    }
}

impl OpenedServer {
    /// Resolves this long after the server has read everything sent to it. A server that takes long to start has not
    /// read the probe yet; one that has read it and does not respond most likely ignores it.
    async fn wait_for_ignored_probe(&self, after_reading: Duration) {
        while self.server.has_unread_input() {
            tokio::time::sleep(READ_CHECK_INTERVAL).await;
        }
        tokio::time::sleep(after_reading).await;
    }

    /// Waits until more than `count` lines in place of responses were unreadable and no message followed. Each request
    /// gets one response: a server that has written more lines logs to stdout, and may still answer. Cancel-safe.
    async fn wait_for_unreadable(&self, count: u64) {
        let unreadable = &self.server.engine.unreadable;
        unreadable.wait_for_more(count).await;
        tokio::time::sleep(UNREADABLE_GRACE.min(self.startup / 4)).await;
        if unreadable.has_message() || unreadable.count() > count + 1 {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the report of a server whose responses are unreadable.
    fn not_mcp_report(&self) -> DisconnectReport {
        let cause = DisconnectCause::NotMcp("its responses are not JSON-RPC messages");
        let (stderr, hint) = (self.server.stderr_tail(STDERR_SHOWN), self.server.engine.last_anomaly());
        DisconnectReport { cause, exit: None, stderr, hint }
    }

    /// Sends a request of the negotiation. Its deadline is the startup deadline, and it is never cancelled.
    fn send_request(&self, method: &'static str, params: &str) -> Result<PendingCall, CallError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let request = CallRequest {
            timeout: left,
            timeout_max: left,
            progress: None,
            effect: CallEffect::Reads,
            cancel_policy: CancelPolicy::Forget,
            tag: None,
        };
        let reserved = self.server.engine.reserve(request)?;
        let id = reserved.id_text();
        let head: [&[u8]; 5] =
            [b"{\"jsonrpc\":\"2.0\",\"id\":", id.text(), b",\"method\":\"", method.as_bytes(), b"\",\"params\":"];
        let fields = HeaderFields { method, ..HeaderFields::default() };
        self.server.engine.send(reserved, fields, &[&head[..], &[params.as_bytes(), b"}\n"]].concat())
    }
}

/// Reports whether the result of a probe over HTTP is evidence about the revision.
fn is_protocol_evidence(error: &CallError) -> bool {
    let silent = error.disconnect_report().is_some()
        || matches!(error, CallError::TimedOut { .. } | CallError::Unauthorized { .. })
        || matches!(error, CallError::Status { status, .. } if matches!(status, 408 | 429) || *status >= 500);
    !silent
}

/// Truncates a text from the server.
fn truncate_text(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text.shrink_to_fit();
    text
}

/// Waits for the outcome of a call, or forever if there is none.
async fn await_optional_call(call: &mut Option<PendingCall>) -> Result<RawResult, CallError> {
    match call {
        Some(call) => call.await,
        None => std::future::pending().await,
    }
}
