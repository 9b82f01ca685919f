//! Executes tasks: questions, waits, notifications and the end.

use std::sync::{Arc, Weak};

use serde_json::{Map, Value, json};

use super::wire::{self, RELATED_TASK_KEY};
use super::{Phase, Play, Task};
use crate::envelope::Envelope;
use crate::message::Outbox;
use crate::questions::{PendingQuestions, Question};
use crate::revision::Revision;
use crate::subscriptions::DemoSubscriptions;
use crate::talk::{Progress, Stop, Talk, Wait, check_needs, result_of};
use crate::tools::failure;

/// Parts of the server that a task needs.
pub struct TaskServices {
    pub envelope: Envelope,
    /// Client capabilities, as declared when the task started.
    pub capabilities: Value,
    pub questions: Arc<PendingQuestions>,
    pub subscriptions: Arc<DemoSubscriptions>,
    pub progress: Option<Progress>,
    /// Outbox of the call. Weak, because a task must not keep it open.
    pub out: Weak<dyn Outbox>,
}

/// Runs a task to its end.
pub fn carry_out(play: Play, crew: TaskServices, task: Arc<Task>) {
    let mut talk = TaskPeer { crew, task };
    let end = match play(&mut talk) {
        Ok(result) => Phase::Completed(talk.crew.envelope.complete(result)),
        Err(Stop::Failed(complaint)) => Phase::Completed(talk.crew.envelope.complete(failure(&complaint))),
        Err(Stop::Lacking(need)) => match talk.crew.envelope.lacking(need) {
            Ok(result) => Phase::Completed(result),
            Err(error) => Phase::Failed(error.to_json()),
        },
        // Only rounds have unanswered questions, and a task has no rounds.
        Err(Stop::Withdrawn | Stop::Unanswered(_)) => Phase::Cancelled,
    };
    talk.enter(end, "The work is over.");
}

struct TaskPeer {
    crew: TaskServices,
    task: Arc<Task>,
}

impl TaskPeer {
    fn enter(&self, phase: Phase, message: &str) {
        if !self.task.enter(phase, message) {
            return;
        }
        if self.revision().is_stateless() {
            self.crew.subscriptions.announce_task(&wire::stateless(&self.task));
        } else {
            let params = wire::handshake(&self.task);
            self.tell(json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params}));
        }
    }

    /// Asks by a request that names the task.
    fn ask_live(&self, question: &Question) -> Result<Value, Stop> {
        let mut request = question.to_request();
        request["params"]["_meta"][RELATED_TASK_KEY] = json!({"taskId": self.task.id});
        let out = self.crew.out.upgrade().ok_or(Stop::Withdrawn)?;
        let response = self.crew.questions.ask(request, &self.task.alarm, &*out);
        result_of(response.ok_or(Stop::Withdrawn)?)
    }

    fn ask_by_status(&self, question: &Question) -> Result<Value, Stop> {
        self.task.alarm.fetch(&question.key).ok_or(Stop::Withdrawn)
    }
}

impl Talk for TaskPeer {
    fn revision(&self) -> Revision {
        self.crew.envelope.revision
    }

    fn ask(&mut self, questions: Vec<Question>) -> Result<Vec<Value>, Stop> {
        check_needs(&questions, &self.crew.capabilities)?;
        let open: Map<_, _> = questions.iter().map(|question| (question.key.clone(), question.to_request())).collect();
        self.enter(Phase::InputRequired(open), "The work waits for an answer.");
        let ask = |question: &Question| {
            if self.revision().is_stateless() { self.ask_by_status(question) } else { self.ask_live(question) }
        };
        let answers = questions.iter().map(ask).collect::<Result<_, _>>()?;
        self.enter(Phase::Working, "The work goes on.");
        Ok(answers)
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Stop> {
        wait.pass(&self.task.alarm, |step| {
            self.enter(Phase::Working, &format!("step {step} of {}", wait.steps));
            // 2025-11-25 basic/utilities/progress: a token is valid for the lifetime of the task.
            if let (Some(progress), false) = (&self.crew.progress, self.revision().is_stateless()) {
                self.tell(progress.after(step, wait.steps));
            }
        })
    }

    fn tell(&self, notification: Value) {
        if let Some(out) = self.crew.out.upgrade() {
            out.send(notification);
        }
    }
}
