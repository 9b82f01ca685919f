//! Calls that become tasks, and the task methods.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::DemoServer;
use super::server_info::TASKS_EXTENSION;
use super::tool_calls::{RequestExchange, reply};
use crate::client_link::ProgressReporter;
use crate::envelope::missing_capability;
use crate::message::{INTERNAL_ERROR, IncomingRequest, METHOD_NOT_FOUND, RpcError, result_reply};
use crate::pages::page;
use crate::revision::DemoRevision;
use crate::tasks::{self, TaskServices, TaskWork, wire};
use crate::tools::DemoTaskSupport;

impl DemoServer {
    /// Rejects a call that requests, or does not request, a task contrary to the tool's task support.
    pub(super) fn check_task_request(&self, exchange: RequestExchange<'_>) -> Result<(), RpcError> {
        if !exchange.revision.has_core_tasks() {
            return Ok(());
        }
        let wish = exchange.request.params.get("task");
        match (wish, task_support(exchange.request)) {
            (None, DemoTaskSupport::Required) => Err(RpcError::new(METHOD_NOT_FOUND, "this tool runs as a task only")),
            (Some(_), DemoTaskSupport::Forbidden) => Err(RpcError::new(METHOD_NOT_FOUND, "this tool cannot be a task")),
            (Some(wish), _) if !wish.is_object() => Err(RpcError::invalid_params("`task` must be an object")),
            _ => Ok(()),
        }
    }

    /// Reports whether a call becomes a task: on request in 2025-11-25, later whenever possible.
    pub(super) fn becomes_task(&self, exchange: RequestExchange<'_>) -> bool {
        let RequestExchange { request, revision, .. } = exchange;
        if revision.has_core_tasks() {
            return request.params.contains_key("task");
        }
        let is_possible = task_support(request) != DemoTaskSupport::Forbidden;
        is_possible && revision.is_stateless() && self.declares_tasks(request, revision)
    }

    /// Starts a task and replies with its id.
    pub(super) fn start_task(&self, exchange: RequestExchange<'_>, play: TaskWork) -> Result<Option<Value>, RpcError> {
        let RequestExchange { request, revision, out } = exchange;
        let envelope = self.envelope(revision);
        let lasting = out.session_outbox().unwrap_or_else(|| Arc::clone(out));
        let crew = TaskServices {
            envelope: envelope.clone(),
            capabilities: self.capabilities_of_client(request, revision),
            questions: Arc::clone(&self.questions),
            subscriptions: Arc::clone(&self.subscriptions),
            progress: ProgressReporter::from_params(&request.params, revision),
            out: Arc::downgrade(&lasting),
        };
        let ttl_ms = request.params.get("task").and_then(|task| task["ttl"].as_u64());
        let task = self.tasks.create(ttl_ms).map_err(|reason| RpcError::new(INTERNAL_ERROR, reason))?;
        let result = if revision.is_stateless() {
            wire::stateless_task(&task)
        } else {
            json!({"task": wire::handshake_task(&task)})
        };
        // Reply before the work starts: the client needs the task's id to assign its notifications.
        out.send(result_reply(request.id.clone(), envelope.with_type("task", result)));
        tasks::start_task(task, play, crew);
        Ok(None)
    }

    /// Answers the task methods of the 2026-07-28 extension.
    pub(super) fn answer_about_tasks(
        &self,
        request: &IncomingRequest,
        revision: DemoRevision,
    ) -> Result<Value, RpcError> {
        if !self.declares_tasks(request, revision) {
            return Err(missing_capability(&json!({"extensions": {TASKS_EXTENSION: {}}})));
        }
        let task = self.tasks.find(&request.params)?;
        match request.method.as_str() {
            "tasks/get" => return Ok(wire::stateless_task(&task)),
            "tasks/update" => task.answer(&input_responses(&request.params)?),
            _ => {
                if task.cancel() {
                    self.subscriptions.notify_task(&wire::stateless_task(&task));
                }
            }
        }
        Ok(json!({}))
    }

    /// Answers the task methods of 2025-11-25, except `tasks/result`.
    pub(super) fn answer_about_core_tasks(&self, request: &IncomingRequest) -> Result<Value, RpcError> {
        if request.method == "tasks/list" {
            return page("tasks", self.tasks.list(), &request.params);
        }
        let task = self.tasks.find(&request.params)?;
        if request.method == "tasks/cancel" && !task.cancel() {
            return Err(RpcError::invalid_params(format!("the task `{}` has ended already", task.id())));
        }
        Ok(wire::handshake_task(&task))
    }

    /// Answers `tasks/result` when the task ends.
    pub(super) fn task_result(&self, exchange: RequestExchange<'_>) -> Result<Option<Value>, RpcError> {
        let task = self.tasks.find(&exchange.request.params)?;
        let id = exchange.request.id.clone();
        self.start(exchange, move |alarm| task.wait_for_end(alarm).then(|| reply(id, wire::task_outcome(&task))))
    }

    pub(super) fn declares_tasks(&self, request: &IncomingRequest, revision: DemoRevision) -> bool {
        let capabilities = self.capabilities_of_client(request, revision);
        capabilities["extensions"][TASKS_EXTENSION].is_object()
    }
}

fn task_support(request: &IncomingRequest) -> DemoTaskSupport {
    DemoTaskSupport::of_tool(request.params.get("name").and_then(Value::as_str).unwrap_or_default())
}

fn input_responses(params: &Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    let given = params.get("inputResponses").and_then(Value::as_object);
    given.cloned().ok_or_else(|| RpcError::invalid_params("`inputResponses` must be an object"))
}
