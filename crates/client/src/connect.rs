//! From a spec to a connection: start, probe, and whichever handshake the server understands.
//!
//! The probe always goes first and never after `initialize`: a server that speaks both eras settles on the one it
//! sees first.

use std::sync::Arc;

use tokio::time::Instant;
use wharf_spec::{StdioSpec, Untrusted};
use wharf_wire::{DiscoverResult, Implementation, Revision, ServerCapabilities};

use crate::connection::{Connection, ServerFacts};
use crate::engine::{Answer, Call, Effect, Request, WhenDropped};
use crate::era::{self, Manners, Verdict};
use crate::error::{CallError, ConnectCause, ConnectError, GoneCause};
use crate::options::{ConnectOptions, Negotiation};
use crate::trace::{StepOutcome, Tracer};
use crate::transport::stdio::{self, Open, Opening, Prepared};

/// Starts a server and agrees with it on a revision.
///
/// Dropped while it waits, it ends whatever it has started.
pub async fn connect(spec: &StdioSpec, options: ConnectOptions) -> Result<Connection, ConnectError> {
    let mut attempt = Attempt { tracer: Tracer::new(options.on_step.clone()), options, stderr: Vec::new() };
    match attempt.run(spec).await {
        Ok((open, facts)) => Ok(Connection::new(open, facts, attempt.tracer.finish(), attempt.options.limits)),
        Err(cause) => Err(ConnectError { cause, trace: attempt.tracer.finish(), stderr: attempt.stderr }),
    }
}

struct Attempt {
    options: ConnectOptions,
    tracer: Tracer,
    stderr: Vec<String>,
}

/// A process that has been started, and the manners it will be held to.
struct Started {
    open: Open,
    manners: Arc<Manners>,
    deadline: Instant,
}

/// What a server said of itself.
struct Introduction {
    revision: Revision,
    capabilities: ServerCapabilities,
    server_info: Option<Implementation>,
    instructions: Option<String>,
}

impl From<DiscoverResult> for Introduction {
    fn from(found: DiscoverResult) -> Self {
        let DiscoverResult { capabilities, server_info, instructions, .. } = found;
        Self { revision: Revision::LATEST_STATELESS, capabilities, server_info, instructions }
    }
}

/// How the probe ended.
enum Probed {
    Introduced(Introduction),
    /// The handshake comes next; a probe that is still unanswered may yet decide otherwise.
    Handshake(Option<Call>),
    /// The server died of it.
    Died,
}

/// Lines of stderr that go into an error.
const STDERR_SHOWN: usize = 20;

impl Attempt {
    async fn run(&mut self, spec: &StdioSpec) -> Result<(Open, ServerFacts), ConnectCause> {
        let prepared = match stdio::prepare(spec, &self.options.surroundings) {
            Ok(prepared) => prepared,
            Err(cause) => return Err(self.failed("resolve", cause)),
        };
        self.tracer.step("resolve", StepOutcome::Fine, prepared.program.display());
        let started = self.start(&prepared, "spawn").await?;
        let (started, met) = self.meet(started, &prepared).await;
        match met {
            Ok(introduction) => Ok(self.settle(started, introduction)),
            Err(cause) => {
                self.stderr = started.open.stderr_tail(STDERR_SHOWN);
                started.open.close().await;
                Err(cause)
            }
        }
    }

    async fn start(&mut self, prepared: &Prepared, step: &'static str) -> Result<Started, ConnectCause> {
        let limits = &self.options.limits;
        let manners = Arc::new(Manners::new(self.options.observer.clone(), limits.bounds));
        let opening = Opening {
            name: self.options.name.clone(),
            dialect: manners.clone(),
            tap: self.options.tap.clone(),
            limits: limits.clone(),
            guard: self.options.guard.clone(),
        };
        let deadline = Instant::now() + limits.startup;
        match stdio::open(prepared, opening).await {
            Ok(open) => {
                let detail = format!("process {}, containment: {}", open.pid, open.containment);
                self.tracer.step(step, StepOutcome::Fine, detail);
                Ok(Started { open, manners, deadline })
            }
            Err(cause) => Err(self.failed(step, cause)),
        }
    }

    /// Gets the server to introduce itself, with a second process if the first one dies of the question.
    async fn meet(
        &mut self,
        mut started: Started,
        prepared: &Prepared,
    ) -> (Started, Result<Introduction, ConnectCause>) {
        let late = match self.options.negotiation {
            Negotiation::Handshake => None,
            Negotiation::Automatic => match self.probe(&started).await {
                Ok(Probed::Introduced(introduction)) => return (started, Ok(introduction)),
                Ok(Probed::Handshake(late)) => late,
                Ok(Probed::Died) => {
                    started.open.close().await;
                    match self.start(prepared, "respawn").await {
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

    async fn probe(&mut self, started: &Started) -> Result<Probed, ConnectCause> {
        let mut asked = Revision::LATEST_STATELESS;
        let mut again = false;
        loop {
            let mut call = match started.ask(era::DISCOVER, &era::discover_params(asked)) {
                Ok(call) => call,
                Err(error) => return self.probe_failed(error),
            };
            let patience = self.options.limits.probe.min(started.deadline.saturating_duration_since(Instant::now()));
            let Ok(outcome) = tokio::time::timeout(patience, &mut call).await else {
                self.tracer.step("probe", StepOutcome::Detour, "no answer yet: trying the handshake as well");
                return Ok(Probed::Handshake(Some(call)));
            };
            if let Err(error @ (CallError::ServerGone(_) | CallError::OutcomeUnknown(_))) = outcome {
                return self.probe_failed(error);
            }
            match era::judge_probe(outcome, asked, again, &self.options.limits.bounds) {
                Verdict::Stateless(revision, found) => {
                    self.tracer.step("probe", StepOutcome::Fine, format!("speaks {revision}"));
                    return Ok(Probed::Introduced(Introduction { revision, ..Introduction::from(*found) }));
                }
                Verdict::AskAgain(revision) => {
                    self.tracer.step("probe", StepOutcome::Detour, format!("asked to name {revision}"));
                    (asked, again) = (revision, true);
                }
                Verdict::Handshake(reason) => {
                    self.tracer.step("probe", StepOutcome::Detour, reason);
                    return Ok(Probed::Handshake(None));
                }
                Verdict::Hopeless(cause) => return Err(self.failed("probe", cause)),
            }
        }
    }

    /// A server that ended may have ended because it was asked something before `initialize`; one that does not speak
    /// the protocol at all will not do so the second time.
    fn probe_failed(&mut self, error: CallError) -> Result<Probed, ConnectCause> {
        match error {
            CallError::ServerGone(gone) | CallError::OutcomeUnknown(gone)
                if !matches!(gone.cause, GoneCause::NotMcp(_) | GoneCause::EndlessLine) =>
            {
                self.tracer.step("probe", StepOutcome::Detour, format!("{gone}; starting it again"));
                Ok(Probed::Died)
            }
            error => Err(self.failed("probe", ConnectError::cause_of(error))),
        }
    }

    /// `initialize`, while an unanswered probe may still win: a server that answers both late serves the era it saw first.
    async fn handshake(&mut self, started: &Started, mut late: Option<Call>) -> Result<Introduction, ConnectCause> {
        let mut call = match started.ask(era::INITIALIZE, &era::initialize_params()) {
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
                    if let Verdict::Stateless(revision, found) = verdict {
                        self.tracer.step("probe", StepOutcome::Fine, format!("answered late: speaks {revision}"));
                        return Ok(Introduction { revision, ..Introduction::from(*found) });
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

    fn initialized(&mut self, started: &Started, answer: Answer) -> Result<Introduction, ConnectCause> {
        match era::judge_initialize(answer.result, &self.options.limits.bounds) {
            Ok((revision, result)) => {
                started.manners.settle(revision);
                started.open.engine.post(era::INITIALIZED);
                self.tracer.step("initialize", StepOutcome::Fine, format!("agreed on {revision}"));
                let (capabilities, server_info) = (result.capabilities, result.server_info);
                Ok(Introduction { revision, capabilities, server_info, instructions: result.instructions })
            }
            Err(cause) => Err(self.failed("initialize", cause)),
        }
    }

    fn settle(&self, started: Started, introduction: Introduction) -> (Open, ServerFacts) {
        let Introduction { revision, capabilities, server_info, instructions } = introduction;
        started.manners.settle(revision);
        let facts = ServerFacts {
            name: self.options.name.clone(),
            revision,
            capabilities,
            server_info,
            instructions,
            pid: started.open.pid,
            containment: started.open.containment,
        };
        (started.open, facts)
    }

    fn failed(&mut self, step: &'static str, mut cause: ConnectCause) -> ConnectCause {
        if let ConnectCause::TimedOut { after, .. } = &mut cause {
            // Whatever was asked last: what ran out is the time to get ready.
            *after = self.options.limits.startup;
        }
        let source = std::error::Error::source(&cause).map(|source| format!(": {source}")).unwrap_or_default();
        let detail = format!("{cause}{source}");
        self.tracer.step(step, StepOutcome::Failed, Untrusted::new(detail));
        cause
    }
}

impl Started {
    /// A request of the opening itself: it has until the server's time to get ready is up, and is never withdrawn.
    fn ask(&self, method: &'static str, params: &str) -> Result<Call, CallError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let request = Request {
            timeout: left,
            timeout_max: left,
            progress: None,
            effect: Effect::Reads,
            when_dropped: WhenDropped::Forget,
        };
        let reserved = self.open.engine.reserve(request)?;
        let id = reserved.id();
        let head: [&[u8]; 5] =
            [b"{\"jsonrpc\":\"2.0\",\"id\":", id.text(), b",\"method\":\"", method.as_bytes(), b"\",\"params\":"];
        self.open.engine.send(reserved, &[&head[..], &[params.as_bytes(), b"}\n"]].concat())
    }
}

/// The outcome of a call that is there.
async fn answer(call: &mut Option<Call>) -> Result<Answer, CallError> {
    match call {
        Some(call) => call.await,
        None => std::future::pending().await,
    }
}
