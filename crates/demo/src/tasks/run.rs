//! Executes tasks: questions, waits, notifications and the end.

use std::sync::{Arc, Weak};

use serde_json::{Map, Value, json};

use super::wire::{self, RELATED_TASK_KEY};
use super::{DemoTask, DemoTaskPhase, TaskWork};
use crate::client_link::{CallContext, CallStop, ProgressReporter, SteppedWait, check_needs, result_of};
use crate::envelope::ResultEnvelope;
use crate::message::Outbox;
use crate::questions::{PendingQuestions, ServerQuestion};
use crate::revision::DemoRevision;
use crate::subscriptions::DemoSubscriptions;
use crate::tools::error_result;

/// Parts of the server that a task needs.
pub struct TaskServices {
    pub envelope: ResultEnvelope,
    /// Client capabilities, as declared when the task started.
    pub capabilities: Value,
    pub questions: Arc<PendingQuestions>,
    pub subscriptions: Arc<DemoSubscriptions>,
    pub progress: Option<ProgressReporter>,
    /// Outbox of the call. Weak, because a task must not keep it open.
    pub out: Weak<dyn Outbox>,
}

/// Runs a task to its end.
pub fn run_task(play: TaskWork, crew: TaskServices, task: Arc<DemoTask>) {
    let mut talk = TaskPeer { crew, task };
    let end = match play(&mut talk) {
        Ok(result) => DemoTaskPhase::Completed(talk.crew.envelope.complete(result)),
        Err(CallStop::Failed(complaint)) => {
            DemoTaskPhase::Completed(talk.crew.envelope.complete(error_result(&complaint)))
        }
        Err(CallStop::Lacking(need)) => match talk.crew.envelope.missing_capability_reply(need) {
            Ok(result) => DemoTaskPhase::Completed(result),
            Err(error) => DemoTaskPhase::Failed(error.to_json()),
        },
        // Only rounds have unanswered questions, and a task has no rounds.
        Err(CallStop::Withdrawn | CallStop::Unanswered(_)) => DemoTaskPhase::Cancelled,
    };
    talk.enter(end, "The work is over.");
}

struct TaskPeer {
    crew: TaskServices,
    task: Arc<DemoTask>,
}

impl TaskPeer {
    fn enter(&self, phase: DemoTaskPhase, message: &str) {
        if !self.task.enter(phase, message) {
            return;
        }
        if self.revision().is_stateless() {
            self.crew.subscriptions.notify_task(&wire::stateless_task(&self.task));
        } else {
            let params = wire::handshake_task(&self.task);
            self.notify(json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params}));
        }
    }

    /// Asks by a request that names the task.
    fn ask_live(&self, question: &ServerQuestion) -> Result<Value, CallStop> {
        let mut request = question.to_request();
        request["params"]["_meta"][RELATED_TASK_KEY] = json!({"taskId": self.task.id});
        let out = self.crew.out.upgrade().ok_or(CallStop::Withdrawn)?;
        let response = self.crew.questions.ask(request, &self.task.alarm, &*out);
        result_of(response.ok_or(CallStop::Withdrawn)?)
    }

    fn ask_by_status(&self, question: &ServerQuestion) -> Result<Value, CallStop> {
        self.task.alarm.wait_for_answer(&question.key).ok_or(CallStop::Withdrawn)
    }
}

impl CallContext for TaskPeer {
    fn revision(&self) -> DemoRevision {
        self.crew.envelope.revision
    }

    fn ask(&mut self, questions: Vec<ServerQuestion>) -> Result<Vec<Value>, CallStop> {
        check_needs(&questions, &self.crew.capabilities)?;
        let open: Map<_, _> = questions.iter().map(|question| (question.key.clone(), question.to_request())).collect();
        self.enter(DemoTaskPhase::InputRequired(open), "The work waits for an answer.");
        let ask = |question: &ServerQuestion| {
            if self.revision().is_stateless() { self.ask_by_status(question) } else { self.ask_live(question) }
        };
        let answers = questions.iter().map(ask).collect::<Result<_, _>>()?;
        self.enter(DemoTaskPhase::Working, "The work goes on.");
        Ok(answers)
    }

    fn wait(&mut self, wait: SteppedWait) -> Result<(), CallStop> {
        wait.run(&self.task.alarm, |step| {
            self.enter(DemoTaskPhase::Working, &format!("step {step} of {}", wait.steps));
            // 2025-11-25 basic/utilities/progress: a token is valid for the lifetime of the task.
            if let (Some(progress), false) = (&self.crew.progress, self.revision().is_stateless()) {
                self.notify(progress.notification(step, wait.steps));
            }
        })
    }

    fn notify(&self, notification: Value) {
        if let Some(out) = self.crew.out.upgrade() {
            out.send(notification);
        }
    }
}
