//! `tools/call`: applies the outcome of each tool to the connection.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::DemoServer;
use crate::call_signal::CallSignal;
use crate::client_link::{CallStop, LiveContext, ProgressReporter, RequestLine};
use crate::elicitation::{PAPERS_IN_ORDER, harbour_page, page_completed};
use crate::envelope::ResultEnvelope;
use crate::message::{
    INTERNAL_ERROR, IncomingRequest, Outbox, RpcError, URL_ELICITATION_REQUIRED, lock_unpoisoned, result_reply,
};
use crate::port::HarbourChange;
use crate::questions::{ClientNeed, ServerQuestion};
use crate::revision::DemoRevision;
use crate::rounds::RoundReplay;
use crate::tasks::TaskWork;
use crate::tools::{self, DemoToolOutcome, ToolInputs, error_result, text_result};
use crate::{logging, subscriptions::ListenEnding};

/// A request in progress and its outbox.
#[derive(Clone, Copy)]
pub struct RequestExchange<'a> {
    pub request: &'a IncomingRequest,
    pub revision: DemoRevision,
    pub out: &'a Arc<dyn Outbox>,
}

impl DemoServer {
    /// Returns the result of a tool call, or `None` if the reply follows later.
    pub(super) fn call_tool(&self, exchange: RequestExchange<'_>) -> Result<Option<Value>, RpcError> {
        let RequestExchange { request, revision, .. } = exchange;
        let around = ToolInputs {
            revision,
            environment: &self.nature.environment,
            view: self.port.view(),
            mirrored: &self.mirrored,
        };
        let outcome = tools::call(&request.params, &around)?;
        if self.is_crash_due() {
            crash(3);
        }
        self.check_task_request(exchange)?;
        if revision.is_stateless() && !matches!(outcome, DemoToolOutcome::Talk(_) | DemoToolOutcome::Wait { .. }) {
            // Rejects round state that belongs to another call.
            self.rounds.resume(&request.params)?;
        }
        let answer = match outcome {
            // A requested task is created even for invalid arguments.
            DemoToolOutcome::Answer(result) if revision.has_core_tasks() && self.becomes_task(exchange) => {
                return self.run_long_call(exchange, Box::new(move |_| Ok(result)));
            }
            DemoToolOutcome::Answer(result) => result,
            DemoToolOutcome::Crash { exit_code } => crash(exit_code),
            DemoToolOutcome::Wait { wait, answer } => {
                return self.run_long_call(exchange, Box::new(move |talk| talk.wait(wait).map(|()| answer)));
            }
            DemoToolOutcome::Talk(script) => {
                return self.run_long_call(exchange, Box::new(move |talk| (script.play)(&script.given, talk)));
            }
            DemoToolOutcome::Change(change) => self.apply_change(exchange, change),
            DemoToolOutcome::Log { level, message } => self.log(exchange, &level, &message)?,
            DemoToolOutcome::EndListens(ending) => self.end_listens(exchange, ending),
            DemoToolOutcome::PageByError => return self.page_by_error(exchange),
        };
        Ok(Some(self.envelope(revision).complete(answer)))
    }

    /// Runs a long call, as a task if it becomes one.
    fn run_long_call(&self, exchange: RequestExchange<'_>, play: TaskWork) -> Result<Option<Value>, RpcError> {
        if self.becomes_task(exchange) {
            return self.start_task(exchange, play);
        }
        if exchange.revision.is_stateless() { self.run_round(exchange, play) } else { self.run_live(exchange, play) }
    }

    fn run_live(&self, exchange: RequestExchange<'_>, play: TaskWork) -> Result<Option<Value>, RpcError> {
        let (line, questions) = (self.line(exchange), Arc::clone(&self.questions));
        let (envelope, id) = (self.envelope(exchange.revision), exchange.request.id.clone());
        self.start(exchange, move |alarm| {
            let mut talk = LiveContext { line: line(alarm), questions };
            let result = play(&mut talk);
            // Only rounds have unanswered questions.
            finish_call(result, &envelope, |_| error_result("The question cannot be asked."))
                .map(|answer| reply(id, answer))
        })
    }

    pub(super) fn run_round(&self, exchange: RequestExchange<'_>, play: TaskWork) -> Result<Option<Value>, RpcError> {
        let conversation = self.rounds.resume(&exchange.request.params)?;
        let (line, rounds) = (self.line(exchange), Arc::clone(&self.rounds));
        let (envelope, id) = (self.envelope(exchange.revision), exchange.request.id.clone());
        self.start(exchange, move |alarm| {
            let mut talk = RoundReplay::new(line(alarm), conversation);
            let result = play(&mut talk);
            let ask = |questions: Vec<_>| rounds.park(talk.conversation, &questions);
            finish_call(result, &envelope, ask).map(|answer| reply(id, answer))
        })
    }

    pub(super) fn start(
        &self,
        exchange: RequestExchange<'_>,
        work: impl FnOnce(&Arc<CallSignal>) -> Option<Value> + Send + 'static,
    ) -> Result<Option<Value>, RpcError> {
        let started = self.calls.start(&exchange.request.id, exchange.out, work);
        started.map(|()| None).map_err(|reason| RpcError::new(INTERNAL_ERROR, reason))
    }

    /// Returns a constructor of the line to the client, which needs the alarm.
    fn line(&self, exchange: RequestExchange<'_>) -> impl FnOnce(&Arc<CallSignal>) -> RequestLine + Send + 'static {
        let RequestExchange { request, revision, out } = exchange;
        let (capabilities, out) = (self.capabilities_of_client(request, revision), Arc::clone(out));
        let progress = ProgressReporter::from_params(&request.params, revision);
        move |alarm| RequestLine { revision, capabilities, alarm: Arc::clone(alarm), progress, out }
    }

    fn apply_change(&self, exchange: RequestExchange<'_>, change: HarbourChange) -> Value {
        text_result(&self.apply(change, exchange.revision, &**exchange.out))
    }

    /// Applies a change and notifies subscribers.
    pub(super) fn apply(&self, change: HarbourChange, revision: DemoRevision, out: &dyn Outbox) -> String {
        let (sentence, event) = self.port.apply(change);
        match event {
            Some(event) if revision.is_stateless() => self.subscriptions.notify_listens(event),
            Some(event) => self.subscriptions.notify_session(event, out.session_outbox().as_deref().unwrap_or(out)),
            None => {}
        }
        sentence
    }

    fn log(&self, exchange: RequestExchange<'_>, level: &str, message: &str) -> Result<Value, RpcError> {
        let is_wanted = self.logging.wants(level, &exchange.request.params, exchange.revision)?;
        if is_wanted {
            exchange.out.send(logging::log_notification(level, message));
        }
        Ok(text_result(if is_wanted { "Logged." } else { "Not logged: the client does not want that level." }))
    }

    fn end_listens(&self, exchange: RequestExchange<'_>, ending: ListenEnding) -> Value {
        let result = self.envelope(exchange.revision).complete(json!({}));
        let count = self.subscriptions.end_all(ending, &result);
        text_result(&format!("Ended {count} subscriptions."))
    }

    /// Fails a call until the user has visited a page (2025-11-25 client/elicitation, "URL Mode With Errors").
    fn page_by_error(&self, exchange: RequestExchange<'_>) -> Result<Option<Value>, RpcError> {
        let RequestExchange { request, revision, out } = exchange;
        let envelope = self.envelope(revision);
        if self.port.take_papers() {
            return Ok(Some(envelope.complete(text_result(PAPERS_IN_ORDER))));
        }
        if !ClientNeed::Url.is_met_by(&self.capabilities_of_client(request, revision)) {
            return envelope.missing_capability_reply(ClientNeed::Url).map(Some);
        }
        let page = harbour_page();
        let done = page_completed(&page["elicitationId"]);
        let error = RpcError::new(URL_ELICITATION_REQUIRED, "the ship's papers are missing");
        out.send(error.with_data(json!({"elicitations": [page]})).reply(request.id.clone()));
        self.port.grant_papers();
        out.send(done);
        Ok(None)
    }

    fn is_crash_due(&self) -> bool {
        match &mut *lock_unpoisoned(&self.nature.calls_left) {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }
}

/// Returns the reply of a call, or `None` if it was cancelled. `ask` converts questions to a result.
fn finish_call(
    result: Result<Value, CallStop>,
    envelope: &ResultEnvelope,
    ask: impl FnOnce(Vec<ServerQuestion>) -> Value,
) -> Option<Result<Value, RpcError>> {
    Some(match result {
        Ok(result) => Ok(envelope.complete(result)),
        Err(CallStop::Withdrawn) => return None,
        Err(CallStop::Unanswered(questions)) => Ok(envelope.with_type("input_required", ask(questions))),
        Err(CallStop::Lacking(need)) => envelope.missing_capability_reply(need),
        Err(CallStop::Failed(complaint)) => Ok(envelope.complete(error_result(&complaint))),
    })
}

pub(super) fn reply(id: Value, answer: Result<Value, RpcError>) -> Value {
    match answer {
        Ok(result) => result_reply(id, result),
        Err(error) => error.reply(id),
    }
}

/// Exits the process like a buggy server: with a message on stderr and without a reply.
#[expect(clippy::exit, reason = "crashing is what the caller asked for")]
fn crash(exit_code: i32) -> ! {
    // Ignore a closed stderr.
    let _ = std::io::stderr().lock().write_all(
        b"demo: fatal: the cargo shifted\n\
          demo: listing to starboard, abandoning ship\n",
    );
    std::process::exit(exit_code)
}
