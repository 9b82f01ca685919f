//! Tasks: the extension of 2026-07-28 and the tasks of 2025-11-25 behind one interface.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wharf_spec::UntrustedText;
use wharf_wire::{Interest, RawJson, Task, TaskStatus, ToolResult, View, code};

use super::call_rounds::{TaskHandling, call_tool};
use super::input_rounds;
use super::subscribe::{Event, Subscription};
use crate::connection::Connection;
use crate::engine::{CallEffect, CancelPolicy, RawResult, ResultKind};
use crate::error::{CallError, TimeoutKind};
use crate::options::{CallTag, RequestOptions};
use crate::request::{OutgoingRequest, escape_tool_name, tool_members};

/// Bounds of the poll interval. They override the interval the server requests.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Receives each status update of a task.
pub type TaskSink = Arc<dyn Fn(&Task) + Send + Sync>;

/// Options for starting a task.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Time the server should keep the result. Only supported by 2025-11-25.
    pub ttl: Option<Duration>,
    /// Options of the call that starts the task.
    pub request: RequestOptions,
}

/// The outcome of a call that may have become a task.
pub enum Started {
    /// The server returned a result at once.
    Finished(Box<ToolResult>),
    /// The call became a task.
    Task(Box<TaskHandle>),
}

/// A handle to a task. Dropping it does not affect the server: [`Connection::task`] finds the task again by its id.
pub struct TaskHandle {
    connection: Connection,
    id: String,
    latest: Mutex<Option<Task>>,
    /// Keys of the answered input requests. They are unique for the lifetime of the task.
    answered: Mutex<HashSet<String>>,
    thinking: Mutex<PromptTime>,
    /// Tag of the call that started the task.
    tag: Option<CallTag>,
}

impl Connection {
    /// Calls a tool, as a task if the server and the revision allow it.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe. A
    /// handshake-era server without tasks gives [`CallError::Unsupported`].
    ///
    /// # Cancel safety
    ///
    /// In the stateless era, dropping the future sends a cancellation to the server. Before that era a task can be
    /// cancelled only by its id, so the call continues at the server and its id is lost.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn start_task(
        &self,
        tool: &str,
        arguments: &RawJson,
        options: TaskOptions,
    ) -> Result<Started, CallError> {
        self.check_capability("tools/call")?;
        if self.is_stateless() {
            let tag = options.request.tag;
            let answer = call_tool(self, tool, arguments, options.request, TaskHandling::ReturnTask).await?.raw_result;
            return match answer.kind {
                ResultKind::Task => Ok(Started::Task(Box::new(TaskHandle::from_created(self, answer.result, tag)?))),
                _ => Ok(Started::Finished(Box::new(self.view(answer)?))),
            };
        }
        self.check_capability("tasks/get")?;
        let ttl = options.ttl.map(|ttl| format!("\"ttl\":{}", ttl.as_millis())).unwrap_or_default();
        let name = escape_tool_name(tool, arguments)?;
        let body = tool_members(&name, arguments);
        // A task can only be cancelled by its own method, and has no id before the response.
        let outgoing = OutgoingRequest::new("tools/call", &body, CallEffect::MayWrite);
        let more = format!(",\"task\":{{{ttl}}}");
        let outgoing = OutgoingRequest { cancel_policy: CancelPolicy::Forget, more: &more, ..outgoing };
        let answer = self.send(outgoing, &options.request)?.await?;
        match TaskHandle::from_created(self, answer.result.clone(), options.request.tag) {
            Ok(task) => Ok(Started::Task(Box::new(task))),
            // A server may ignore the task parameter.
            Err(_) => Ok(Started::Finished(Box::new(self.view(answer)?))),
        }
    }

    /// Returns a handle to a task that was started before, possibly on another connection. Sends nothing. See
    /// [`Connection`](Connection#example) for an example.
    pub fn task(&self, id: impl Into<String>) -> TaskHandle {
        TaskHandle {
            connection: self.clone(),
            id: id.into(),
            latest: Mutex::default(),
            answered: Mutex::default(),
            thinking: Mutex::default(),
            tag: None,
        }
    }
}

/// Follows a task that a server created for a plain call. Cancels the task if dropped before its end.
pub(super) async fn follow_task(
    connection: &Connection,
    created: RawJson,
    options: &RequestOptions,
) -> Result<RawResult, CallError> {
    let task = TaskHandle::from_created(connection, created, options.tag)?;
    let _leaving = CancelOnDrop(&task);
    task.follow_within(options.total_timeout(connection.limits()), None).await
}

/// Time the user has spent on input requests of a task.
#[derive(Default)]
struct PromptTime {
    before: Duration,
    since: Option<Instant>,
}

struct CancelOnDrop<'a>(&'a TaskHandle);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.0.has_ended() {
            self.0.send_cancel();
        }
    }
}

impl TaskHandle {
    fn from_created(connection: &Connection, created: RawJson, tag: Option<CallTag>) -> Result<Self, CallError> {
        let task = Task::from_raw(created, &connection.limits().bounds)?;
        let handle = Self { tag, ..connection.task(task.id.clone()) };
        handle.set_latest(task);
        Ok(handle)
    }

    /// Returns the task's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the last known status.
    pub fn latest(&self) -> Option<Task> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests the current status from the server.
    pub async fn refresh(&self) -> Result<Task, CallError> {
        let answer = self.request("tasks/get", "").await?;
        let task = Task::from_raw(answer.result, &self.connection.limits().bounds)?;
        self.set_latest(task.clone());
        Ok(task)
    }

    /// Requests cancellation of the task. The server may not comply.
    pub async fn cancel(&self) -> Result<(), CallError> {
        self.request("tasks/cancel", "").await.map(drop)
    }

    /// Follows the task to its end and answers its input requests. Passes each status update to `watch`.
    ///
    /// # Cancel safety
    ///
    /// The task continues on the server if the future is dropped.
    pub async fn finish(&self, watch: Option<TaskSink>) -> Result<ToolResult, CallError> {
        let answer = self.follow_to_answer(watch).await?;
        Ok(ToolResult::from_raw(answer.result, &self.connection.limits().bounds)?)
    }

    /// Like [`TaskHandle::finish`], with a timeout that excludes the time of user prompts. The task continues on the
    /// server after a timeout.
    pub async fn finish_within(&self, limit: Duration, watch: Option<TaskSink>) -> Result<ToolResult, CallError> {
        let answer = self.follow_within(limit, watch).await?;
        Ok(ToolResult::from_raw(answer.result, &self.connection.limits().bounds)?)
    }

    /// Reports whether the task has ended, according to its last status.
    pub fn has_ended(&self) -> bool {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|task| task.status.is_final())
    }

    async fn follow_within(&self, limit: Duration, watch: Option<TaskSink>) -> Result<RawResult, CallError> {
        tokio::select! {
            outcome = self.follow_to_answer(watch) => outcome,
            () = self.wait_for_timeout(limit) => {
                Err(CallError::TimedOut { after: limit, limit: TimeoutKind::Total, hint: None })
            }
        }
    }

    async fn follow_to_answer(&self, watch: Option<TaskSink>) -> Result<RawResult, CallError> {
        self.prompt_time().since = None;
        let mut news = self.subscribe_to_updates().await;
        let mut task = match self.latest() {
            Some(task) => task,
            None => self.refresh().await?,
        };
        loop {
            if let Some(watch) = &watch {
                watch(&task);
            }
            if task.status.is_final() {
                return self.final_answer(task).await;
            }
            if task.status == TaskStatus::InputRequired {
                if !self.connection.is_stateless() {
                    // Its input requests arrive as requests while the result is pending.
                    return self.fetch_result().await;
                }
                self.answer_input_requests(&task).await?;
            }
            task = self.wait_for_update(&task, &mut news).await?;
        }
    }

    /// Subscribes to status updates, if the server supports them; otherwise the task is polled.
    async fn subscribe_to_updates(&self) -> Option<Subscription> {
        let interest = Interest { tasks: vec![self.id.clone()], ..Interest::default() };
        let subscription = self.connection.subscribe(interest).await.ok()?;
        (!subscription.confirmed_interest().tasks.is_empty()).then_some(subscription)
    }

    /// Waits for a status update or the next poll.
    async fn wait_for_update(&self, task: &Task, news: &mut Option<Subscription>) -> Result<Task, CallError> {
        let poll = task.poll.unwrap_or(self.connection.limits().task_poll).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        let told = async {
            match news {
                Some(subscription) => subscription.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = told => match event {
                Ok(Event::Task(task)) if task.id == self.id => {
                    self.set_latest(Task::clone(&task));
                    return Ok(*task);
                }
                Ok(_) => {}
                Err(_) => *news = None,
            },
            () = tokio::time::sleep(poll) => {}
        }
        self.refresh().await
    }

    async fn answer_input_requests(&self, task: &Task) -> Result<(), CallError> {
        let answered = |key: &str| self.answered.lock().unwrap_or_else(PoisonError::into_inner).contains(key);
        let open: Vec<_> = task.requests.iter().filter(|request| !answered(request.key.as_str())).cloned().collect();
        if open.is_empty() {
            return Ok(());
        }
        let limits = self.connection.limits();
        let before = self.answered.lock().unwrap_or_else(PoisonError::into_inner).len();
        if open.len() > limits.round_questions || before + open.len() > limits.rounds * limits.round_questions {
            return Err(CallError::Protocol(format!("too many input requests from the task ({})", open.len())));
        }
        let keys: Vec<String> = open.iter().map(|request| request.key.as_str().to_owned()).collect();
        self.prompt_time().since = Some(Instant::now());
        let responses = input_rounds::answer_requests(&self.connection, open, self.tag).await;
        {
            let mut thinking = self.prompt_time();
            let thought = thinking.since.take().map(|since| since.elapsed());
            thinking.before += thought.unwrap_or_default();
        }
        let responses = responses?;
        self.request("tasks/update", &format!(",\"inputResponses\":{responses}")).await?;
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).extend(keys);
        Ok(())
    }

    fn prompt_time(&self) -> MutexGuard<'_, PromptTime> {
        self.thinking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the timeout has expired, excluding the time of user prompts.
    async fn wait_for_timeout(&self, limit: Duration) {
        let began = Instant::now();
        loop {
            let thought = {
                let thinking = self.prompt_time();
                thinking.before + thinking.since.map(|since| since.elapsed()).unwrap_or_default()
            };
            let used = began.elapsed().saturating_sub(thought);
            let Some(left) = limit.checked_sub(used).filter(|left| !left.is_zero()) else { return };
            tokio::time::sleep(left).await;
        }
    }

    async fn final_answer(&self, task: Task) -> Result<RawResult, CallError> {
        match (task.status, task.result, task.error) {
            (TaskStatus::Completed, Some(result), _) => Ok(RawResult { result, kind: ResultKind::Complete }),
            (TaskStatus::Failed, _, Some(error)) => Err(CallError::ErrorResponse(error)),
            // The result of a failed task may be the tool's own error report.
            (TaskStatus::Completed | TaskStatus::Failed, ..) if !self.connection.is_stateless() => {
                self.fetch_result().await
            }
            (status, ..) => {
                let message = task.message.map(|message| format!(": {}", UntrustedText::new(message).truncate(300)));
                Err(CallError::Task(format!("{status}{}", message.unwrap_or_default())))
            }
        }
    }

    /// Sends `tasks/result`, which is answered when the result is available (2025-11-25).
    async fn fetch_result(&self) -> Result<RawResult, CallError> {
        let body = format!("\"taskId\":{}", serde_json::Value::from(self.id.as_str()));
        let members = [body.as_bytes()];
        let outgoing = OutgoingRequest::new("tasks/result", &members, CallEffect::Reads).with_name(&self.id);
        self.connection.send_without_timeout(outgoing, self.tag, |_| {})?.await
    }

    async fn request(&self, method: &str, more: &str) -> Result<RawResult, CallError> {
        self.connection.check_capability(method)?;
        let body = format!("\"taskId\":{}", serde_json::Value::from(self.id.as_str()));
        let members = [body.as_bytes()];
        let effect = if method == "tasks/get" { CallEffect::Reads } else { CallEffect::MayWrite };
        let outgoing = OutgoingRequest::new(method, &members, effect).with_name(&self.id);
        let options = RequestOptions { tag: self.tag, ..RequestOptions::default() };
        let outcome = self.connection.send(OutgoingRequest { more, ..outgoing }, &options)?.await;
        outcome.map_err(|error| match error {
            CallError::ErrorResponse(error) if error.code == code::INVALID_PARAMS && method == "tasks/get" => {
                let message = UntrustedText::new(error.message);
                CallError::Task(format!("unknown to the server: {}", message.truncate(200)))
            }
            error => error,
        })
    }

    fn send_cancel(&self) {
        let body = format!("\"taskId\":{}", serde_json::Value::from(self.id.as_str()));
        let members = [body.as_bytes()];
        let outgoing = OutgoingRequest::new("tasks/cancel", &members, CallEffect::MayWrite).with_name(&self.id);
        if let Ok(call) = self.connection.send(outgoing, &RequestOptions::default()) {
            call.detach();
        }
    }

    fn set_latest(&self, task: Task) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }
}
