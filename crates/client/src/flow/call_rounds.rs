//! Runs one call until it has its result: input rounds, pages to visit, and a task the server creates for the call.

use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;
use wharf_wire::{RawJson, code};

use super::header_params::call_with_headers;
use super::{input_rounds, tasks};
use crate::connection::Connection;
use crate::engine::{CallEffect, RawResult, ResultKind};
use crate::error::{CallError, TimeoutKind};
use crate::options::{InputHandling, InputRound, RequestOptions};
use crate::request::{OutgoingRequest, escape_tool_name, tool_members};

/// A call that needs no further request: its result, or the input requests or the task that its caller handles.
pub(crate) struct CompletedCall {
    pub raw_result: RawResult,
    /// Number of input rounds before the result.
    pub rounds: usize,
}

/// The methods that a server may answer with input requests (2026-07-28, basic/patterns/mrtr).
const INPUT_METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The action when a server turns a call into a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskHandling {
    /// Wait for the task and return its result.
    Follow,
    /// Return the created task to the caller.
    ReturnTask,
}

/// A `tools/call` request, and what it was made from.
#[derive(Clone, Copy)]
pub(super) struct ToolRequest<'a> {
    pub tool: &'a str,
    pub arguments: &'a RawJson,
    pub outgoing: OutgoingRequest<'a>,
}

/// Calls a tool and waits for its result, through all rounds.
///
/// # Cancel safety
///
/// Dropping the future cancels the pending request, or the task that the server has created for the call.
pub(crate) async fn call_tool(
    connection: &Connection,
    tool: &str,
    arguments: &RawJson,
    options: RequestOptions,
    when_task: TaskHandling,
) -> Result<CompletedCall, CallError> {
    let name = escape_tool_name(tool, arguments)?;
    let body = tool_members(&name, arguments);
    let outgoing = OutgoingRequest::new("tools/call", &body, CallEffect::MayWrite).with_name(tool);
    match &connection.inner().header_params {
        None => run_with_task_handling(connection, outgoing, options, when_task).await,
        Some(table) => {
            let call = ToolRequest { tool, arguments, outgoing };
            Box::pin(call_with_headers(connection, table, call, options, when_task)).await
        }
    }
}

/// Makes a call and waits for its result, through all rounds. The responses of one round are used only in the next
/// request of this call.
///
/// # Cancel safety
///
/// Dropping the future cancels the pending request, or the task that the server has created for the call.
pub(crate) async fn run_call(
    connection: &Connection,
    call: OutgoingRequest<'_>,
    options: RequestOptions,
) -> Result<CompletedCall, CallError> {
    run_with_task_handling(connection, call, options, TaskHandling::Follow).await
}

pub(super) async fn run_with_task_handling(
    connection: &Connection,
    call: OutgoingRequest<'_>,
    options: RequestOptions,
    when_task: TaskHandling,
) -> Result<CompletedCall, CallError> {
    let span = call.open_span(&connection.facts().name);
    run_in_span(connection, OutgoingRequest { span: Some(&span), ..call }, options, when_task)
        .instrument(span.clone())
        .await
}

async fn run_in_span(
    connection: &Connection,
    call: OutgoingRequest<'_>,
    options: RequestOptions,
    when_task: TaskHandling,
) -> Result<CompletedCall, CallError> {
    let timer = ServerTimer::start(connection);
    let round = options.input_round.as_ref().map(|round| round_members(connection, call, round)).transpose()?;
    let round = round.unwrap_or_default();
    let first = OutgoingRequest { more: &round, ..call };
    let mut outcome = connection.send(first, &options)?.await;
    if call.effect == CallEffect::Reads && outcome.as_ref().is_err_and(CallError::is_retryable) {
        outcome = retry_read(connection, first, &options, timer.elapsed(), outcome).await;
    }
    if options.inputs == InputHandling::Forward || is_final_outcome(&outcome) {
        return outcome.map(|raw_result| CompletedCall { raw_result, rounds: 0 });
    }
    let budget = TimeBudget { limit: options.total_timeout(connection.limits()), spent: timer.elapsed() };
    // Boxed because the future is large and rarely needed.
    Box::pin(UnfinishedCall { connection, call, options, when_task, budget }.resume(outcome)).await
}

/// Returns the members of a forwarded input round.
fn round_members(connection: &Connection, call: OutgoingRequest<'_>, round: &InputRound) -> Result<String, CallError> {
    let takes_answers = INPUT_METHODS.contains(&call.method) || call.method == "tasks/update";
    if !connection.is_stateless() || !takes_answers {
        return Err(CallError::Invalid(format!(
            "`{}` of this server's revision takes no `inputResponses` or `requestState`",
            call.method
        )));
    }
    round.members()
}

/// Retries a read that was lost on the way, if the server is still connected.
async fn retry_read(
    connection: &Connection,
    call: OutgoingRequest<'_>,
    options: &RequestOptions,
    spent: Duration,
    lost: Result<RawResult, CallError>,
) -> Result<RawResult, CallError> {
    let inner = connection.inner();
    let pause = inner.limits.send_again;
    let left = options.total_timeout(&inner.limits).saturating_sub(spent + pause);
    if left.is_zero() || inner.server.engine.is_closed() || !inner.read_retries.try_take() {
        return lost;
    }
    tokio::time::sleep(pause).await;
    let timeout = options.timeout.unwrap_or(inner.limits.call_timeout).min(left);
    let again = RequestOptions { timeout: Some(timeout), timeout_max: Some(left), ..options.clone() };
    connection.send(call, &again)?.await
}

/// A call without a final result.
struct UnfinishedCall<'a> {
    connection: &'a Connection,
    call: OutgoingRequest<'a>,
    options: RequestOptions,
    when_task: TaskHandling,
    budget: TimeBudget,
}

impl UnfinishedCall<'_> {
    async fn resume(mut self, mut outcome: Result<RawResult, CallError>) -> Result<CompletedCall, CallError> {
        let (connection, call) = (self.connection, self.call);
        let most = connection.limits().rounds;
        for round in 1..=most {
            let more = match outcome {
                Ok(answer) if answer.kind == ResultKind::InputRequired && INPUT_METHODS.contains(&call.method) => {
                    input_rounds::answer_round(connection, answer.result, round, self.options.tag).await?
                }
                Err(CallError::ErrorResponse(error)) if input_rounds::requires_pages(connection, &error) => {
                    input_rounds::visit_pages(connection, error, self.options.tag).await?;
                    String::new()
                }
                other => return self.finish(other?, round - 1).await,
            };
            self.budget.limit_options(&mut self.options)?;
            let timer = ServerTimer::start(connection);
            outcome = connection.send(OutgoingRequest { more: &more, ..call }, &self.options)?.await;
            self.budget.spend(timer.elapsed());
            if is_final_outcome(&outcome) {
                return outcome.map(|raw_result| CompletedCall { raw_result, rounds: round });
            }
        }
        match outcome {
            Ok(answer) if answer.kind == ResultKind::Task => self.finish(answer, most).await,
            _ => Err(CallError::TooManyRounds(most)),
        }
    }

    /// Ends the input rounds: returns the result, or follows the task.
    async fn finish(self, raw_result: RawResult, rounds: usize) -> Result<CompletedCall, CallError> {
        let follows = self.when_task == TaskHandling::Follow && self.call.method == "tools/call";
        if raw_result.kind != ResultKind::Task || !follows {
            return Ok(CompletedCall { raw_result, rounds });
        }
        Ok(CompletedCall {
            raw_result: tasks::follow_task(self.connection, raw_result.result, &self.options).await?,
            rounds,
        })
    }
}

/// Reports whether an outcome needs no further requests.
fn is_final_outcome(outcome: &Result<RawResult, CallError>) -> bool {
    match outcome {
        Ok(answer) => answer.kind == ResultKind::Complete,
        Err(CallError::ErrorResponse(error)) => error.code != code::URL_ELICITATION_REQUIRED,
        Err(_) => true,
    }
}

/// Measures the server's time, excluding the time of user prompts.
struct ServerTimer<'a> {
    connection: &'a Connection,
    began: Instant,
    paused_at_start: Duration,
}

impl<'a> ServerTimer<'a> {
    fn start(connection: &'a Connection) -> Self {
        Self { connection, began: Instant::now(), paused_at_start: connection.inner().server.engine.paused_time() }
    }

    fn elapsed(&self) -> Duration {
        let paused = self.connection.inner().server.engine.paused_time() - self.paused_at_start;
        self.began.elapsed().saturating_sub(paused)
    }
}

/// The remaining total timeout of a call. Counts only the server's time, not the time of user prompts.
struct TimeBudget {
    limit: Duration,
    spent: Duration,
}

impl TimeBudget {
    fn spend(&mut self, time: Duration) {
        self.spent += time;
    }

    fn limit_options(&self, options: &mut RequestOptions) -> Result<(), CallError> {
        let left = self.limit.saturating_sub(self.spent);
        if left.is_zero() {
            return Err(CallError::TimedOut { after: self.limit, limit: TimeoutKind::Total, hint: None });
        }
        options.timeout_max = Some(left);
        Ok(())
    }
}
