//! Trace of a connection attempt. `test`, `why` and `status` only render it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_spec::Redactor;

use crate::options::StepSink;

/// The steps of a connection attempt, in order.
#[derive(Debug, Clone, Default)]
pub struct ConnectTrace {
    /// The steps.
    pub steps: Vec<ConnectStep>,
}

/// One step of connecting.
#[derive(Debug, Clone)]
pub struct ConnectStep {
    /// A stable name: `resolve`, `spawn`, `probe`, `respawn`, `initialize`; over HTTP `recall`, `open`, `fall back`.
    pub name: &'static str,
    /// Outcome of the step.
    pub outcome: StepOutcome,
    /// Duration of the step.
    pub duration: Duration,
    /// Evidence, escaped and with the server's secrets removed.
    pub detail: String,
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step succeeded.
    Fine,
    /// The step failed, but an alternative was tried.
    Detour,
    /// The step ended the attempt.
    Failed,
}

impl ConnectTrace {
    /// Returns the step that ended the attempt.
    pub fn failed_step(&self) -> Option<&ConnectStep> {
        self.steps.iter().find(|step| step.outcome == StepOutcome::Failed)
    }

    /// Returns the total duration.
    pub fn duration(&self) -> Duration {
        self.steps.iter().map(|step| step.duration).sum()
    }
}

/// Records a trace while connecting.
pub(crate) struct TraceRecorder {
    trace: ConnectTrace,
    began: Instant,
    on_step: Option<StepSink>,
    redactor: Arc<Redactor>,
}

impl TraceRecorder {
    pub fn new(on_step: Option<StepSink>, redactor: Arc<Redactor>) -> Self {
        Self { trace: ConnectTrace::default(), began: Instant::now(), on_step, redactor }
    }

    /// Ends the current step with its evidence and starts the next one.
    pub fn record(&mut self, name: &'static str, outcome: StepOutcome, detail: impl fmt::Display) {
        let detail = self.redactor.redact_truncated(&detail.to_string()).into_owned();
        self.record_unredacted(name, outcome, detail);
    }

    /// Like [`TraceRecorder::record`], for a detail written by the client, which is not redacted.
    pub fn record_unredacted(&mut self, name: &'static str, outcome: StepOutcome, detail: impl fmt::Display) {
        let (now, detail) = (Instant::now(), detail.to_string());
        let step = ConnectStep { name, outcome, duration: now - self.began, detail };
        self.began = now;
        if let Some(on_step) = &self.on_step {
            on_step(&step);
        }
        self.trace.steps.push(step);
    }

    /// Marks the last failed step as a detour, because an alternative is tried.
    pub fn mark_detour(&mut self) {
        if let Some(step) = self.trace.steps.last_mut().filter(|step| step.outcome == StepOutcome::Failed) {
            step.outcome = StepOutcome::Detour;
        }
    }

    pub fn finish(self) -> ConnectTrace {
        self.trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_details_are_redacted_but_fixed_text_is_not() {
        let mut redactor = Redactor::default();
        redactor.add("handshake");
        let mut tracer = TraceRecorder::new(None, Arc::new(redactor));
        tracer.record("resolve", StepOutcome::Fine, "/bin/handshake");
        tracer.record_unredacted("probe", StepOutcome::Detour, "trying the handshake");
        let details: Vec<String> = tracer.finish().steps.into_iter().map(|step| step.detail).collect();
        assert_eq!(details, ["/bin/***", "trying the handshake"]);
    }
}
