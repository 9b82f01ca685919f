//! Communication of a running call with the client.
//!
//! A tool is written once, as a function of a [`Talk`]. The implementation of `Talk` decides whether its questions are
//! sent as requests, as rounds of the same call, or as the state of a task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::call_signal::CallSignal;
use super::message::{Outbox, is_request_id};
use super::questions::{ClientNeed, PendingQuestions, ServerQuestion};
use super::revision::DemoRevision;

/// The client, as seen by a running call.
pub trait CallContext {
    fn revision(&self) -> DemoRevision;

    /// Asks the questions and returns the answers in the same order.
    ///
    /// # Errors
    ///
    /// Stops the call if it was cancelled, or if an answer is not available.
    fn ask(&mut self, questions: Vec<ServerQuestion>) -> Result<Vec<Value>, CallStop>;

    /// Makes the client call again without a question, if the revision supports that.
    fn pause(&mut self) -> Result<(), CallStop> {
        Ok(())
    }

    /// Waits and reports progress to the client.
    fn wait(&mut self, wait: SteppedWait) -> Result<(), CallStop>;

    fn notify(&self, notification: Value);
}

impl dyn CallContext + '_ {
    /// Asks a single question.
    pub fn ask_one(&mut self, question: ServerQuestion) -> Result<Value, CallStop> {
        let answers = self.ask(vec![question])?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }
}

/// Reason that a call stops without a result of its own.
#[derive(Debug)]
pub enum CallStop {
    /// The call was cancelled.
    Withdrawn,
    /// The client has to answer these questions, if any, and call again.
    Unanswered(Vec<ServerQuestion>),
    /// The client has not declared the required capability.
    Lacking(ClientNeed),
    /// The tool failed with this message.
    Failed(String),
}

/// A wait in equal steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteppedWait {
    pub duration: Duration,
    pub steps: u32,
}

impl SteppedWait {
    /// Waits. Calls `after` with the number of each finished step.
    pub fn run(self, alarm: &CallSignal, mut after: impl FnMut(u32)) -> Result<(), CallStop> {
        let started = Instant::now();
        for step in 1..=self.steps {
            let due = self.duration.mul_f64(f64::from(step) / f64::from(self.steps));
            if alarm.is_cancelled_within(started, due) {
                return Err(CallStop::Withdrawn);
            }
            after(step);
        }
        Ok(())
    }
}

/// Progress notifications of a request.
#[derive(Clone)]
pub struct ProgressReporter {
    token: Value,
    with_message: bool,
}

impl ProgressReporter {
    /// Returns the progress that `params` request.
    pub fn from_params(params: &Map<String, Value>, revision: DemoRevision) -> Option<Self> {
        let token = params.get("_meta")?.get("progressToken")?;
        // A token has the same types as an id. Ignore others, since progress is optional.
        is_request_id(token).then(|| Self { token: token.clone(), with_message: revision.has_progress_messages() })
    }

    pub fn notification(&self, step: u32, steps: u32) -> Value {
        let mut params = json!({"progressToken": self.token, "progress": step, "total": steps});
        if self.with_message {
            params["message"] = format!("step {step} of {steps}").into();
        }
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    }
}

/// The connection to the client during a request.
pub struct RequestLine {
    pub revision: DemoRevision,
    /// Declared client capabilities.
    pub capabilities: Value,
    pub alarm: Arc<CallSignal>,
    pub progress: Option<ProgressReporter>,
    pub out: Arc<dyn Outbox>,
}

impl RequestLine {
    pub fn wait(&self, wait: SteppedWait) -> Result<(), CallStop> {
        wait.run(&self.alarm, |step| {
            if let Some(progress) = &self.progress {
                self.out.send(progress.notification(step, wait.steps));
            }
        })
    }
}

/// Fails with the first capability that the client lacks.
pub fn check_needs(questions: &[ServerQuestion], capabilities: &Value) -> Result<(), CallStop> {
    match questions.iter().find(|question| !question.need.is_met_by(capabilities)) {
        Some(question) => Err(CallStop::Lacking(question.need)),
        None => Ok(()),
    }
}

/// Returns the result of a client's response, or stops with its error.
pub fn result_of(mut response: Value) -> Result<Value, CallStop> {
    match response.get("error") {
        Some(error) => Err(CallStop::Failed(format!("The client answered with an error: {}.", error["message"]))),
        None => Ok(response["result"].take()),
    }
}

/// Asks by requests during the call, as the handshake revisions do.
pub struct LiveContext {
    pub line: RequestLine,
    pub questions: Arc<PendingQuestions>,
}

impl CallContext for LiveContext {
    fn revision(&self) -> DemoRevision {
        self.line.revision
    }

    fn ask(&mut self, questions: Vec<ServerQuestion>) -> Result<Vec<Value>, CallStop> {
        check_needs(&questions, &self.line.capabilities)?;
        let RequestLine { alarm, out, .. } = &self.line;
        let ask = |question: ServerQuestion| {
            let response = self.questions.ask(question.to_request(), alarm, &**out);
            result_of(response.ok_or(CallStop::Withdrawn)?)
        };
        questions.into_iter().map(ask).collect()
    }

    fn wait(&mut self, wait: SteppedWait) -> Result<(), CallStop> {
        self.line.wait(wait)
    }

    fn notify(&self, notification: Value) {
        self.line.out.send(notification);
    }
}
