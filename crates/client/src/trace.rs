//! What happened while connecting, step by step. `test`, `why` and `status` only render it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_spec::Redactor;

use crate::options::StepSink;

/// Every step taken, in order.
#[derive(Debug, Clone, Default)]
pub struct ConnectTrace {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step of connecting.
#[derive(Debug, Clone)]
pub struct Step {
    /// A stable name: `resolve`, `spawn`, `probe`, `respawn`, `initialize`; over HTTP `recall`, `open`, `fall back`.
    pub name: &'static str,
    /// How it went.
    pub outcome: StepOutcome,
    /// How long it took.
    pub duration: Duration,
    /// The evidence, escaped and without the secrets of the server.
    pub detail: String,
}

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// As hoped.
    Fine,
    /// Not as hoped, but there was another way.
    Detour,
    /// It ended the attempt.
    Failed,
}

impl ConnectTrace {
    /// The step that ended the attempt.
    pub fn failed(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.outcome == StepOutcome::Failed)
    }

    /// How long it all took.
    pub fn duration(&self) -> Duration {
        self.steps.iter().map(|step| step.duration).sum()
    }
}

/// Writes a trace while connecting.
pub(crate) struct Tracer {
    trace: ConnectTrace,
    began: Instant,
    on_step: Option<StepSink>,
    redactor: Arc<Redactor>,
}

impl Tracer {
    pub fn new(on_step: Option<StepSink>, redactor: Arc<Redactor>) -> Self {
        Self { trace: ConnectTrace::default(), began: Instant::now(), on_step, redactor }
    }

    /// Ends the current step; the next one begins.
    pub fn step(&mut self, name: &'static str, outcome: StepOutcome, detail: impl fmt::Display) {
        let now = Instant::now();
        let detail = self.redactor.redact_cut(&detail.to_string()).into_owned();
        let step = Step { name, outcome, duration: now - self.began, detail };
        self.began = now;
        if let Some(on_step) = &self.on_step {
            on_step(&step);
        }
        self.trace.steps.push(step);
    }

    /// The last step did not end the attempt after all: there is another way.
    pub fn excuse(&mut self) {
        if let Some(step) = self.trace.steps.last_mut().filter(|step| step.outcome == StepOutcome::Failed) {
            step.outcome = StepOutcome::Detour;
        }
    }

    pub fn finish(self) -> ConnectTrace {
        self.trace
    }
}
