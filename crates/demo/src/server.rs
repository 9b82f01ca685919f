//! The server without its transport: one message in, any number of messages out.
//!
//! Owns one connection's state: the negotiated revision, the running calls and tasks, the subscriptions, and the port
//! that tools change. A transport with sessions has one [`DemoServer`] per session. A stateless transport creates one
//! per request, and these share the state that outlives a request. The constructors are in `kinds`.

mod constructors;
mod server_info;
mod task_methods;
mod tide;
mod tool_calls;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::call_signal::CallSignal;
use super::calls::RunningCalls;
use super::logging::LogSettings;
use super::message::{
    BatchOutbox, INVALID_REQUEST, IncomingMessage, IncomingRequest, METHOD_NOT_FOUND, Outbox, PARSE_ERROR, RpcError,
    classify, lock_unpoisoned, result_reply,
};
use super::negotiation::{CLIENT_CAPABILITIES_KEY, RevisionNegotiation};
use super::pages::page;
use super::port::{HarbourState, LOG_URI};
use super::questions::PendingQuestions;
use super::revision::DemoRevision;
use super::rounds::ParkedCalls;
use super::subscriptions::{DemoSubscriptions, ListenFilter};
use super::tasks::TaskTable;
use super::{completion, elicitation, prompts, resources, skills, tools};
use constructors::ProcessState;
use tool_calls::RequestExchange;

pub use constructors::HeaderParams;

/// Cache lifetime of results that do not change while the server runs.
const STATIC_TTL_MS: u64 = 3_600_000;

/// Cache lifetime of lists that tools can change.
const DYNAMIC_TTL_MS: u64 = 5_000;

/// Options of a demo server.
#[derive(Debug, Clone)]
pub struct DemoServerOptions {
    /// The only revision to support. `None` for all, chosen by the first request.
    pub revision: Option<String>,
    /// Name to report in the server info.
    pub name: String,
    /// Number of tool calls before the next one crashes the server, as the tool `crash` does.
    pub crash_after: Option<u32>,
    /// Interval of the periodic changes. `None` for none.
    pub tide: Option<Duration>,
}

/// A complete MCP server for one connection.
pub struct DemoServer {
    /// Distinguishes this connection from others that share its port.
    connection: u64,
    nature: ProcessState,
    mirrored: HeaderParams,
    negotiation: RevisionNegotiation,
    /// Client capabilities, as declared in `initialize`.
    capabilities: Mutex<Value>,
    calls: RunningCalls,
    questions: Arc<PendingQuestions>,
    rounds: Arc<ParkedCalls>,
    tasks: Arc<TaskTable>,
    subscriptions: Arc<DemoSubscriptions>,
    logging: LogSettings,
    port: Arc<HarbourState>,
    /// Rings when the server closes.
    closing: CallSignal,
}

impl DemoServer {
    /// Handles one raw message: a line, or the body of a request.
    ///
    /// Returns once all short replies are sent. A long call continues on its own thread and replies later.
    pub fn handle(&self, message: &[u8], out: &Arc<dyn Outbox>) {
        match serde_json::from_slice(message) {
            Ok(message) => self.handle_json(message, out),
            Err(error) => out.send(not_json(&error).reply(Value::Null)),
        }
    }

    /// Handles one message or a batch, like [`handle`](Self::handle).
    pub fn handle_json(&self, message: Value, out: &Arc<dyn Outbox>) {
        match message {
            Value::Array(batch) => self.handle_batch(batch, out),
            message => match classify(message) {
                Ok(incoming) => self.handle_incoming(incoming, out),
                Err(refusal) => out.send(refusal),
            },
        }
    }

    /// Handles one classified message.
    pub fn handle_incoming(&self, incoming: IncomingMessage, out: &Arc<dyn Outbox>) {
        match incoming {
            IncomingMessage::Request(request) => self.handle_request(request, out),
            IncomingMessage::Notification { method, params } => self.handle_notification(&method, &params),
            IncomingMessage::Response { id, response } => self.questions.answer(&id, response),
            IncomingMessage::Ignored => {}
        }
    }

    /// Returns the revision to answer a request in, and negotiates it on the first request.
    ///
    /// # Errors
    ///
    /// Fails if the request is not valid on this connection.
    pub fn admit(&self, request: &IncomingRequest) -> Result<DemoRevision, RpcError> {
        self.negotiation.admit(request)
    }

    /// Returns the negotiated revision, if there is one yet.
    pub fn negotiated(&self) -> Option<DemoRevision> {
        self.negotiation.negotiated()
    }

    /// Returns the input schema of the tool `name` in the negotiated revision.
    pub fn input_schema(&self, name: &str) -> Option<Value> {
        let tools = tools::definitions(self.negotiated()?, self.port.view());
        tools.into_iter().find(|tool| tool["name"] == name).map(|mut tool| tool["inputSchema"].take())
    }

    /// Cancels all calls and listens of this connection without replies.
    pub fn cancel_pending(&self) {
        self.calls.cancel_all();
        self.subscriptions.cancel_all(self.connection);
    }

    /// Cancels all calls, tasks and listens without replies, and stops the periodic changes.
    pub fn close(&self) {
        self.cancel_pending();
        self.tasks.close();
        self.closing.cancel();
    }

    fn handle_batch(&self, batch: Vec<Value>, out: &Arc<dyn Outbox>) {
        let has_batches = self.negotiation.negotiated().is_some_and(DemoRevision::has_batches);
        let refusal = match (has_batches, batch.is_empty()) {
            // 2025-03-26 basic/lifecycle: `initialize` must not be part of a batch, so it came before.
            (false, _) => "batches need a connection initialized at 2025-03-26",
            (true, true) => "a batch must not be empty",
            (true, false) => {
                let out: Arc<dyn Outbox> = Arc::new(BatchOutbox::new(Arc::clone(out)));
                for message in batch {
                    // A nested batch is not a message and is rejected.
                    match classify(message) {
                        Ok(incoming) => self.handle_incoming(incoming, &out),
                        Err(refusal) => out.send(refusal),
                    }
                }
                return;
            }
        };
        out.send(RpcError::new(INVALID_REQUEST, refusal).reply(Value::Null));
    }

    fn handle_notification(&self, method: &str, params: &Map<String, Value>) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            self.calls.cancel(id);
            self.subscriptions.cancel(self.connection, id);
        }
    }

    fn handle_request(&self, request: IncomingRequest, out: &Arc<dyn Outbox>) {
        let is_listening = self.subscriptions.is_listening(self.connection, &request.id);
        let is_in_use = is_listening || self.calls.is_running(&request.id);
        let answer = if is_in_use {
            let complaint = format!("the id {} is in use by a call under way", request.id);
            Err(RpcError::new(INVALID_REQUEST, complaint))
        } else {
            self.negotiation
                .admit(&request)
                .and_then(|revision| self.answer(RequestExchange { request: &request, revision, out }))
        };
        match answer {
            Ok(Some(result)) => out.send(result_reply(request.id, result)),
            Ok(None) => {}
            Err(error) => out.send(error.reply(request.id)),
        }
    }

    /// Returns the result of a request, or `None` if the reply follows later.
    fn answer(&self, exchange: RequestExchange<'_>) -> Result<Option<Value>, RpcError> {
        let RequestExchange { request, revision, .. } = exchange;
        let result = match request.method.as_str() {
            "tools/call" => return self.call_tool(exchange),
            "prompts/get" if names_asking_item(request, "name", prompts::PILOT, revision) => {
                return self.run_round(exchange, Box::new(elicitation::pilot_prompt));
            }
            "resources/read" if names_asking_item(request, "uri", LOG_URI, revision) => {
                return self.run_round(exchange, Box::new(elicitation::harbour_log));
            }
            "subscriptions/listen" if revision.is_stateless() => return self.listen(exchange),
            "tasks/result" if revision.has_core_tasks() => return self.task_result(exchange),
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => self.list(exchange)?,
            "resources/read" => {
                let reading = resources::read(resources::uri_of(&request.params)?, revision, self.port.view())?;
                cacheable(reading.result, reading.ttl_ms, revision)
            }
            "prompts/get" => prompts::expand(&request.params, self.port.view())?,
            "completion/complete" => completion::complete(&request.params, revision, self.port.view())?,
            _ if revision.is_stateless() => self.answer_stateless(request, revision)?,
            _ => self.answer_in_session(request, revision)?,
        };
        Ok(Some(self.envelope(revision).complete(result)))
    }

    /// Answers the methods that only stateless revisions have.
    fn answer_stateless(&self, request: &IncomingRequest, revision: DemoRevision) -> Result<Value, RpcError> {
        let lasting = |result: Value| cacheable(result, STATIC_TTL_MS, revision);
        match request.method.as_str() {
            "server/discover" => Ok(lasting(self.discover(revision))),
            "skills/list" => Ok(lasting(page("skills", skills::entries(), &request.params)?)),
            "skills/get" => Ok(lasting(skills::find(&request.params)?)),
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.answer_about_tasks(request, revision),
            method => Err(unknown_method(method)),
        }
    }

    /// Answers the methods that only handshake revisions have.
    fn answer_in_session(&self, request: &IncomingRequest, revision: DemoRevision) -> Result<Value, RpcError> {
        let params = &request.params;
        match request.method.as_str() {
            "initialize" => {
                *lock_unpoisoned(&self.capabilities) = params.get("capabilities").cloned().unwrap_or_default();
                Ok(self.initialize(revision))
            }
            "ping" => Ok(json!({})),
            "logging/setLevel" => self.logging.set_level(params),
            "resources/subscribe" => {
                let uri = resources::uri_of(params)?;
                resources::read(uri, revision, self.port.view())?;
                self.subscriptions.subscribe(uri)
            }
            "resources/unsubscribe" => Ok(self.subscriptions.unsubscribe(resources::uri_of(params)?)),
            "tasks/get" | "tasks/list" | "tasks/cancel" if revision.has_core_tasks() => {
                self.answer_about_core_tasks(request)
            }
            method => Err(unknown_method(method)),
        }
    }

    fn list(&self, exchange: RequestExchange<'_>) -> Result<Value, RpcError> {
        let RequestExchange { request, revision, .. } = exchange;
        let view = self.port.view();
        let (kind, items, ttl_ms) = match request.method.as_str() {
            "tools/list" => ("tools", tools::definitions(revision, view), DYNAMIC_TTL_MS),
            "resources/list" => ("resources", resources::definitions(revision, view), DYNAMIC_TTL_MS),
            "prompts/list" => ("prompts", prompts::definitions(revision, view), DYNAMIC_TTL_MS),
            _ => ("resourceTemplates", resources::templates(revision), STATIC_TTL_MS),
        };
        Ok(cacheable(page(kind, items, &request.params)?, ttl_ms, revision))
    }

    /// Opens a listen. It is answered when it ends.
    fn listen(&self, exchange: RequestExchange<'_>) -> Result<Option<Value>, RpcError> {
        let RequestExchange { request, revision, out } = exchange;
        let has_resource = |uri: &str| resources::read(uri, revision, self.port.view()).is_ok();
        let declares_tasks = self.declares_tasks(request, revision);
        let has_task = |id: &str| declares_tasks && self.tasks.has(id);
        let filter = ListenFilter::from_params(&request.params, has_resource, has_task)?;
        self.subscriptions.listen(self.connection, &request.id, filter, out)?;
        Ok(None)
    }

    /// Returns the client capabilities, as declared in this request or in `initialize`.
    fn capabilities_of_client(&self, request: &IncomingRequest, revision: DemoRevision) -> Value {
        if !revision.is_stateless() {
            return lock_unpoisoned(&self.capabilities).clone();
        }
        request.params.get("_meta").map(|meta| meta[CLIENT_CAPABILITIES_KEY].clone()).unwrap_or_default()
    }
}

/// Reports whether a request names the prompt, or the resource, that asks before it answers.
fn names_asking_item(request: &IncomingRequest, field: &str, name: &str, revision: DemoRevision) -> bool {
    revision.is_stateless() && request.params.get(field).is_some_and(|named| named == name)
}

fn unknown_method(method: &str) -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, format!("unknown method `{method}`"))
}

/// Adds the cache lifetime to a result, in stateless revisions only.
fn cacheable(mut result: Value, ttl_ms: u64, revision: DemoRevision) -> Value {
    if revision.is_stateless() {
        result["ttlMs"] = ttl_ms.into();
        result["cacheScope"] = "public".into();
    }
    result
}

/// Returns the error for a message that is not JSON.
pub fn not_json(error: &serde_json::Error) -> RpcError {
    RpcError::new(PARSE_ERROR, format!("not JSON: {error}"))
}
