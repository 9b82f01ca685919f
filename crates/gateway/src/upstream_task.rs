//! Calls that their servers make tasks of, followed to their end.

use std::sync::Arc;

use serde_json::json;
use tokio::runtime::Handle;
use wharf::spec::{ServerName, ToolId};
use wharf::tools::CallerConsent;
use wharf::wire::{Era, JsonLimits, Task, TaskSupport, View as _, code};
use wharf::{CallError, CallOptions, Connection, Host, HostError, RawJson, RequestOptions, Started, TaskHandle};

use crate::bridge::{FollowStep, InputRounds, TaskEnd, TaskFollower};
use crate::client_class::ServerTasks;
use crate::errors::rpc_error;
use crate::tasks::TASKS_EXTENSION;
use crate::upstream::{CallFailure, CallOutcome, CallTarget, UpstreamCall, box_future};

/// What the client of a call knows of its task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TaskUse {
    /// Nothing: it waits for the result of the call.
    #[default]
    Follow,
    /// It uses the task.
    Announce,
}

/// Reports whether a server can make a task of a call.
pub(crate) fn makes_tasks(connection: &Connection, support: TaskSupport) -> bool {
    let facts = connection.facts();
    match facts.revision.era() {
        Era::Handshake => facts.capabilities.tasks && support != TaskSupport::Forbidden,
        Era::Stateless => facts.capabilities.has_extension(TASKS_EXTENSION),
    }
}

impl UpstreamCall {
    /// Reports whether the server of the call makes tasks by itself.
    pub fn server_tasks(&self, host: &Host) -> ServerTasks {
        let connection = host.connection(self.target.server().as_str()).ok();
        let offers = |connection: Connection| connection.facts().capabilities.has_extension(TASKS_EXTENSION);
        if connection.is_some_and(offers) { ServerTasks::Offered } else { ServerTasks::None }
    }

    /// Returns the tool if it is called as a task of a handshake revision: its server requires it, or the client wants
    /// it.
    pub fn target_with_task(&self, host: &Host) -> Option<&ToolId> {
        let CallTarget::Tool { id, .. } = &self.target else { return None };
        let support = host.catalog().tool(id)?.definition.task_support;
        let connection = host.connection(id.server.as_str()).ok()?;
        let is_wanted = support == TaskSupport::Required || self.tasks == TaskUse::Announce;
        let is_handshake = connection.facts().revision.era() == Era::Handshake;
        (is_wanted && is_handshake && makes_tasks(&connection, support)).then_some(id)
    }

    /// Calls a tool as a task on the shared connection.
    pub async fn call_shared_task(&self, id: &ToolId) -> Result<CallOutcome, CallFailure> {
        let options = self.options();
        let permit = box_future(self.shared.host.permit(id, self.target.arguments(), options.clone())).await?;
        let connection = permit.connection().clone();
        let result = self.run_handshake_task(&connection, id, options.request).await;
        permit.finish_raw(result.as_ref());
        let failed = |error| HostError::Call { server: id.server.clone(), error };
        result.map(CallOutcome::Complete).map_err(|error| failed(error).into())
    }

    /// Calls a tool as a task of 2025-11-25 and waits for its result.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the task at its server.
    pub async fn run_handshake_task(
        &self,
        connection: &Connection,
        id: &ToolId,
        request: RequestOptions,
    ) -> Result<RawJson, CallError> {
        let mut options = wharf::TaskOptions::default();
        options.request = request;
        match box_future(connection.start_task(&id.tool, self.target.arguments(), options)).await? {
            Started::Finished(result) => Ok(result.raw),
            Started::Task(task) => {
                self.route.set_server_task(task.id());
                let task = HandshakeTask { task: Arc::from(task), runtime: self.shared.runtime.clone() };
                Ok(box_future(task.task.finish(None)).await?.raw)
            }
        }
    }

    /// Follows the task of a stateless server to its end. Its questions are asked as those of the call.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the task at its server.
    pub async fn follow_task(
        &self,
        host: &Host,
        created: RawJson,
        options: &CallOptions,
    ) -> Result<RawJson, CallFailure> {
        let mut task = read_task(created)?;
        self.route.set_server_task(&task.id);
        let mut requests = TaskRequests {
            host: host.clone(),
            server: self.target.server().clone(),
            id: task.id.clone(),
            options: self.task_options(options),
            runtime: self.shared.runtime.clone(),
            is_over: false,
        };
        let (mut follower, mut rounds) = (TaskFollower::default(), InputRounds::new(self.route.client.class));
        loop {
            match follower.step(&task) {
                FollowStep::Poll(time) => tokio::time::sleep(time).await,
                FollowStep::Ask(asked) => {
                    let round = self.ask_round(&mut rounds, asked).await?;
                    let responses = round.responses.unwrap_or_else(RawJson::empty_object);
                    requests.send("tasks/update", &format!(",\"inputResponses\":{}", responses.as_str())).await?;
                }
                FollowStep::End(end) => {
                    requests.is_over = true;
                    return requests.result_of(end);
                }
            }
            task = read_task(requests.send("tasks/get", "").await?)?;
        }
    }

    /// Returns the options of requests about the task of a call.
    fn task_options(&self, options: &CallOptions) -> CallOptions {
        let mut caller = options.caller.clone();
        caller.consent = CallerConsent::Given;
        let mut about = CallOptions::default().caller(caller);
        about.request.client = options.request.client.clone();
        about.request.tag = Some(self.route.tag);
        about
    }
}

fn read_task(raw: RawJson) -> Result<Task, CallFailure> {
    let unreadable = |_| CallFailure::Gateway(rpc_error(code::INTERNAL, "the server's task cannot be read"));
    Task::from_raw(raw, &JsonLimits::default()).map_err(unreadable)
}

/// Requests about one task. Dropping it before the end cancels the task at its server.
struct TaskRequests {
    host: Host,
    server: ServerName,
    id: String,
    options: CallOptions,
    runtime: Handle,
    is_over: bool,
}

impl TaskRequests {
    async fn send(&self, method: &'static str, more: &str) -> Result<RawJson, HostError> {
        let params = RawJson::new_unchecked(format!("{{\"taskId\":{}{more}}}", json!(self.id)));
        let sent = self.host.request(&self.server, method, Some(&params), self.options.clone());
        box_future(sent).await.map(|result| result.result)
    }

    fn result_of(&self, end: TaskEnd) -> Result<RawJson, CallFailure> {
        let error = match end {
            TaskEnd::Result(result) => return Ok(result),
            TaskEnd::Error(error) => CallError::ErrorResponse(error),
            TaskEnd::Cancelled => CallError::Task("cancelled by the server".to_owned()),
        };
        Err(HostError::Call { server: self.server.clone(), error }.into())
    }
}

impl Drop for TaskRequests {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (host, server, options) = (self.host.clone(), self.server.clone(), self.options.clone());
        let params = RawJson::new_unchecked(json!({"taskId": self.id}).to_string());
        drop(self.runtime.spawn(async move {
            let _ = box_future(host.request(&server, "tasks/cancel", Some(&params), options)).await;
        }));
    }
}

/// A task of 2025-11-25. Dropping it before the end cancels the task at its server.
struct HandshakeTask {
    task: Arc<TaskHandle>,
    runtime: Handle,
}

impl Drop for HandshakeTask {
    fn drop(&mut self) {
        if !self.task.has_ended() {
            let task = Arc::clone(&self.task);
            drop(self.runtime.spawn(async move {
                let _ = task.cancel().await;
            }));
        }
    }
}
