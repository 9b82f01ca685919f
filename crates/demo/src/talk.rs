//! How a call that takes time talks with the client while it runs.
//!
//! A tool is written once, as a function of a [`Talk`]; whether its questions travel as requests,
//! as rounds of the same call or as the state of a task is the business of the `Talk` it is given.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::alarm::Alarm;
use super::message::{Outbox, is_request_id};
use super::questions::{Need, Question, Questions};
use super::revision::Revision;

/// The client, as a running call sees it.
pub trait Talk {
    fn revision(&self) -> Revision;

    /// Asks the questions and gives the answers, in the same order.
    fn ask(&mut self, questions: Vec<Question>) -> Result<Vec<Value>, Stop>;

    /// Makes the client come back once more with nothing to answer, where the revision has that.
    fn pause(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Takes time, telling the client how far it is.
    fn wait(&mut self, wait: Wait) -> Result<(), Stop>;

    fn tell(&self, notification: Value);
}

impl dyn Talk + '_ {
    /// Asks a single question.
    pub fn ask_one(&mut self, question: Question) -> Result<Value, Stop> {
        let answers = self.ask(vec![question])?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }
}

/// Why a call stops before it has a result of its own.
#[derive(Debug)]
pub enum Stop {
    /// Nobody waits for it any more.
    Withdrawn,
    /// The client has to answer these and call again; without any, it has to call again.
    Unanswered(Vec<Question>),
    /// The client has not declared what the tool needs.
    Lacking(Need),
    /// It went wrong, as the sentence says.
    Failed(String),
}

/// A wait in equal steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    pub duration: Duration,
    pub steps: u32,
}

impl Wait {
    /// Waits, calling `after` at the end of each step with its number.
    pub fn pass(self, alarm: &Alarm, mut after: impl FnMut(u32)) -> Result<(), Stop> {
        let started = Instant::now();
        for step in 1..=self.steps {
            let due = self.duration.mul_f64(f64::from(step) / f64::from(self.steps));
            if alarm.rings_before(started, due) {
                return Err(Stop::Withdrawn);
            }
            after(step);
        }
        Ok(())
    }
}

/// How the client wants to hear of progress.
#[derive(Clone)]
pub struct Progress {
    token: Value,
    with_message: bool,
}

impl Progress {
    /// The progress that a request's `params` ask for.
    pub fn wanted(params: &Map<String, Value>, revision: Revision) -> Option<Self> {
        let token = params.get("_meta")?.get("progressToken")?;
        // Tokens may be what ids may be; anything else is ignored, since progress is a courtesy.
        is_request_id(token).then(|| Self { token: token.clone(), with_message: revision.has_progress_messages() })
    }

    pub fn after(&self, step: u32, steps: u32) -> Value {
        let mut params = json!({"progressToken": self.token, "progress": step, "total": steps});
        if self.with_message {
            params["message"] = format!("step {step} of {steps}").into();
        }
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    }
}

/// The line to the client while a request is under way.
pub struct Line {
    pub revision: Revision,
    /// What the client can do, as it declared it.
    pub capabilities: Value,
    pub alarm: Arc<Alarm>,
    pub progress: Option<Progress>,
    pub out: Arc<dyn Outbox>,
}

impl Line {
    pub fn wait(&self, wait: Wait) -> Result<(), Stop> {
        wait.pass(&self.alarm, |step| {
            if let Some(progress) = &self.progress {
                self.out.send(progress.after(step, wait.steps));
            }
        })
    }
}

/// Fails with the first need that `capabilities` do not meet.
pub fn check_needs(questions: &[Question], capabilities: &Value) -> Result<(), Stop> {
    match questions.iter().find(|question| !question.need.is_met_by(capabilities)) {
        Some(question) => Err(Stop::Lacking(question.need)),
        None => Ok(()),
    }
}

/// The result in a client's response, or what a tool makes of an error in it.
pub fn result_of(mut response: Value) -> Result<Value, Stop> {
    match response.get("error") {
        Some(error) => Err(Stop::Failed(format!("The client answered with an error: {}.", error["message"]))),
        None => Ok(response["result"].take()),
    }
}

/// Asks by requests of its own while the call is under way, as the handshake revisions do.
pub struct Live {
    pub line: Line,
    pub questions: Arc<Questions>,
}

impl Talk for Live {
    fn revision(&self) -> Revision {
        self.line.revision
    }

    fn ask(&mut self, questions: Vec<Question>) -> Result<Vec<Value>, Stop> {
        check_needs(&questions, &self.line.capabilities)?;
        let Line { alarm, out, .. } = &self.line;
        let ask = |question: Question| {
            let response = self.questions.ask(question.to_request(), alarm, &**out);
            result_of(response.ok_or(Stop::Withdrawn)?)
        };
        questions.into_iter().map(ask).collect()
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Stop> {
        self.line.wait(wait)
    }

    fn tell(&self, notification: Value) {
        self.line.out.send(notification);
    }
}
