//! The server without its transport: one message in, any number of messages out.
//!
//! Owns one connection's state: the revision it settled on, the calls and tasks under way, who
//! listens, and the port that tools change. A transport with sessions keeps one [`DemoServer`] for
//! each; one whose requests stand alone makes one for each of them, and these share what outlives a
//! request. How they come about is in `kinds`.

mod calling;
mod introduction;
mod kinds;
mod tasking;
mod tide;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::alarm::Alarm;
use super::calls::Calls;
use super::logging::Logging;
use super::message::{
    BatchOutbox, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Outbox, PARSE_ERROR, Request, RpcError, classify, locked,
    result_reply,
};
use super::negotiation::{CLIENT_CAPABILITIES_KEY, Negotiation};
use super::pages::page;
use super::port::{LOG_URI, Port};
use super::questions::Questions;
use super::revision::Revision;
use super::rounds::Rounds;
use super::subscriptions::{Filter, Subscriptions};
use super::tasks::Tasks;
use super::{completion, elicitation, prompts, resources, skills, tools};
use calling::Exchange;
use kinds::Nature;

pub use kinds::Mirrored;

/// How long a client may keep what never changes while the server runs.
const LASTING_MS: u64 = 3_600_000;

/// How long a client may keep a list that a tool can change.
const CHANGING_MS: u64 = 5_000;

/// How a demo server is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// The only revision to speak; without it, all of them, as the first request chooses.
    pub revision: Option<String>,
    /// The name it introduces itself with.
    pub name: String,
    /// How many tool calls it takes before the next one makes it crash, as the tool `crash` does.
    pub crash_after: Option<u32>,
    /// How often the port changes by itself; without it, only tools change it.
    pub tide: Option<Duration>,
}

/// A whole MCP server for one connection.
pub struct DemoServer {
    /// How this connection is told from others that share its port.
    connection: u64,
    nature: Nature,
    mirrored: Mirrored,
    negotiation: Negotiation,
    /// What the client can do, as it said when it initialized the connection.
    capabilities: Mutex<Value>,
    calls: Calls,
    questions: Arc<Questions>,
    rounds: Arc<Rounds>,
    tasks: Arc<Tasks>,
    subscriptions: Arc<Subscriptions>,
    logging: Logging,
    port: Arc<Port>,
    /// Rings when the server closes.
    closing: Alarm,
}

impl DemoServer {
    /// Handles one message as it came: a line, or the body of a request.
    ///
    /// Returns as soon as every short answer is sent; a long call goes on in its own thread and
    /// answers later.
    pub fn handle(&self, message: &[u8], out: &Arc<dyn Outbox>) {
        match serde_json::from_slice(message) {
            Ok(message) => self.handle_json(message, out),
            Err(error) => out.send(not_json(&error).reply(Value::Null)),
        }
    }

    /// Handles one message, or a batch of them, as [`handle`](Self::handle) does.
    pub fn handle_json(&self, message: Value, out: &Arc<dyn Outbox>) {
        match message {
            Value::Array(batch) => self.handle_batch(batch, out),
            message => match classify(message) {
                Ok(incoming) => self.handle_incoming(incoming, out),
                Err(refusal) => out.send(refusal),
            },
        }
    }

    /// Handles one message that has been told apart.
    pub fn handle_incoming(&self, incoming: Incoming, out: &Arc<dyn Outbox>) {
        match incoming {
            Incoming::Request(request) => self.handle_request(request, out),
            Incoming::Notification { method, params } => self.notice(&method, &params),
            Incoming::Response { id, response } => self.questions.answer(&id, response),
            Incoming::Ignored => {}
        }
    }

    /// Says in which revision a request would be answered, or refuses it; settles the revision as its answer would.
    pub fn admit(&self, request: &Request) -> Result<Revision, RpcError> {
        self.negotiation.admit(request)
    }

    /// The revision settled on so far.
    pub fn agreed(&self) -> Option<Revision> {
        self.negotiation.agreed()
    }

    /// What the tool `name` takes, in the revision settled on.
    pub fn input_schema(&self, name: &str) -> Option<Value> {
        let tools = tools::definitions(self.agreed()?, self.port.view());
        tools.into_iter().find(|tool| tool["name"] == name).map(|mut tool| tool["inputSchema"].take())
    }

    /// Ends every call and listen of this connection, without answers.
    pub fn withdraw(&self) {
        self.calls.cancel_all();
        self.subscriptions.cancel_all(self.connection);
    }

    /// Ends every call, task and listen under way, without answers, and releases whoever waits for the client.
    pub fn close(&self) {
        self.withdraw();
        self.tasks.close();
        self.closing.ring();
    }

    fn handle_batch(&self, batch: Vec<Value>, out: &Arc<dyn Outbox>) {
        let has_batches = self.negotiation.agreed().is_some_and(Revision::has_batches);
        let refusal = match (has_batches, batch.is_empty()) {
            // 2025-03-26 basic/lifecycle: `initialize` is no part of a batch, so it came before.
            (false, _) => "batches need a connection initialized at 2025-03-26",
            (true, true) => "a batch must not be empty",
            (true, false) => {
                let out: Arc<dyn Outbox> = Arc::new(BatchOutbox::new(Arc::clone(out)));
                for message in batch {
                    // What is a batch itself is no message, and is refused as none.
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

    fn notice(&self, method: &str, params: &Map<String, Value>) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            self.calls.cancel(id);
            self.subscriptions.cancel(self.connection, id);
        }
    }

    fn handle_request(&self, request: Request, out: &Arc<dyn Outbox>) {
        let is_listening = self.subscriptions.is_listening(self.connection, &request.id);
        let is_in_use = is_listening || self.calls.is_running(&request.id);
        let answer = if is_in_use {
            let complaint = format!("the id {} is in use by a call under way", request.id);
            Err(RpcError::new(INVALID_REQUEST, complaint))
        } else {
            self.negotiation
                .admit(&request)
                .and_then(|revision| self.answer(Exchange { request: &request, revision, out }))
        };
        match answer {
            Ok(Some(result)) => out.send(result_reply(request.id, result)),
            Ok(None) => {}
            Err(error) => out.send(error.reply(request.id)),
        }
    }

    /// The result of a request, or nothing if it comes later.
    fn answer(&self, exchange: Exchange<'_>) -> Result<Option<Value>, RpcError> {
        let Exchange { request, revision, .. } = exchange;
        let result = match request.method.as_str() {
            "tools/call" => return self.call_tool(exchange),
            "prompts/get" if asks(request, "name", prompts::PILOT, revision) => {
                return self.play_round(exchange, Box::new(elicitation::pilot_prompt));
            }
            "resources/read" if asks(request, "uri", LOG_URI, revision) => {
                return self.play_round(exchange, Box::new(elicitation::harbour_log));
            }
            "subscriptions/listen" if revision.is_stateless() => return self.listen(exchange),
            "tasks/result" if revision.has_core_tasks() => return self.task_result(exchange),
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => self.list(exchange)?,
            "resources/read" => {
                let reading = resources::read(resources::uri_of(&request.params)?, revision, self.port.view())?;
                cacheable(reading.result, reading.ttl_ms, revision)
            }
            "prompts/get" => prompts::fill_in(&request.params, self.port.view())?,
            "completion/complete" => completion::complete(&request.params, revision, self.port.view())?,
            _ if revision.is_stateless() => self.answer_stateless(request, revision)?,
            _ => self.answer_in_session(request, revision)?,
        };
        Ok(Some(self.envelope(revision).complete(result)))
    }

    /// Answers the methods that only stateless revisions have.
    fn answer_stateless(&self, request: &Request, revision: Revision) -> Result<Value, RpcError> {
        let lasting = |result: Value| cacheable(result, LASTING_MS, revision);
        match request.method.as_str() {
            "server/discover" => Ok(lasting(self.discover(revision))),
            "skills/list" => Ok(lasting(page("skills", skills::entries(), &request.params)?)),
            "skills/get" => Ok(lasting(skills::find(&request.params)?)),
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.answer_about_tasks(request, revision),
            method => Err(unknown_method(method)),
        }
    }

    /// Answers the methods that only handshake revisions have.
    fn answer_in_session(&self, request: &Request, revision: Revision) -> Result<Value, RpcError> {
        let params = &request.params;
        match request.method.as_str() {
            "initialize" => {
                *locked(&self.capabilities) = params.get("capabilities").cloned().unwrap_or_default();
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

    fn list(&self, exchange: Exchange<'_>) -> Result<Value, RpcError> {
        let Exchange { request, revision, .. } = exchange;
        let view = self.port.view();
        let (kind, items, ttl_ms) = match request.method.as_str() {
            "tools/list" => ("tools", tools::definitions(revision, view), CHANGING_MS),
            "resources/list" => ("resources", resources::definitions(revision, view), CHANGING_MS),
            "prompts/list" => ("prompts", prompts::definitions(revision, view), CHANGING_MS),
            _ => ("resourceTemplates", resources::templates(revision), LASTING_MS),
        };
        Ok(cacheable(page(kind, items, &request.params)?, ttl_ms, revision))
    }

    /// Opens a listen, which is answered when it ends.
    fn listen(&self, exchange: Exchange<'_>) -> Result<Option<Value>, RpcError> {
        let Exchange { request, revision, out } = exchange;
        let has_resource = |uri: &str| resources::read(uri, revision, self.port.view()).is_ok();
        let declares_tasks = self.declares_tasks(request, revision);
        let has_task = |id: &str| declares_tasks && self.tasks.has(id);
        let filter = Filter::honoured(&request.params, has_resource, has_task)?;
        self.subscriptions.listen(self.connection, &request.id, filter, out)?;
        Ok(None)
    }

    /// What the client can do: as this request says, or as it said once and for all.
    fn capabilities_of_client(&self, request: &Request, revision: Revision) -> Value {
        if !revision.is_stateless() {
            return locked(&self.capabilities).clone();
        }
        request.params.get("_meta").map(|meta| meta[CLIENT_CAPABILITIES_KEY].clone()).unwrap_or_default()
    }
}

/// Whether a request names the one prompt, or the one resource, that asks before it answers.
fn asks(request: &Request, field: &str, name: &str, revision: Revision) -> bool {
    revision.is_stateless() && request.params.get(field).is_some_and(|named| named == name)
}

fn unknown_method(method: &str) -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, format!("unknown method `{method}`"))
}

/// Says for how long a result may be kept; only stateless revisions have words for it.
fn cacheable(mut result: Value, ttl_ms: u64, revision: Revision) -> Value {
    if revision.is_stateless() {
        result["ttlMs"] = ttl_ms.into();
        result["cacheScope"] = "public".into();
    }
    result
}

/// The error of a message that cannot be read.
pub fn not_json(error: &serde_json::Error) -> RpcError {
    RpcError::new(PARSE_ERROR, format!("not JSON: {error}"))
}
