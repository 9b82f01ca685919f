//! The server without its transport: one message in, any number of messages out.
//!
//! Owns one connection's state: the revision it settled on and the calls under way. A transport
//! with sessions keeps one `DemoServer` for each.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::calls::{Call, Calls, Progress};
use super::message::{
    BatchOutbox, INTERNAL_ERROR, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Outbox, PARSE_ERROR, Request, RpcError,
    classify, is_request_id, locked, result_reply,
};
use super::negotiation::Negotiation;
use super::pages::page;
use super::revision::Revision;
use super::tools::{self, Outcome, Surroundings};
use super::{completion, prompts, resources};

/// How long a client may keep what never changes while the server runs.
const LASTING_MS: u64 = 3_600_000;

/// How a demo server is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// The only revision to speak; without it, all of them, as the first request chooses.
    pub revision: Option<String>,
    /// The name it introduces itself with.
    pub name: String,
    /// How many tool calls it takes before the next one makes it crash, as the tool `crash` does.
    pub crash_after: Option<u32>,
}

/// A whole MCP server for one connection.
pub struct DemoServer {
    name: String,
    /// The names of the environment variables, sorted.
    environment: Vec<String>,
    negotiation: Negotiation,
    calls: Calls,
    /// How many more tool calls to survive.
    calls_left: Mutex<Option<u32>>,
}

impl DemoServer {
    /// Makes a server; fails, with a sentence, for a revision that does not exist.
    pub fn new(options: Options, environment: Vec<String>) -> Result<Self, String> {
        let pinned = match &options.revision {
            None => None,
            Some(text) => Some(Revision::parse(text).ok_or_else(|| unknown_revision(text))?),
        };
        Ok(Self {
            name: options.name,
            environment,
            negotiation: Negotiation::new(pinned),
            calls: Calls::default(),
            calls_left: Mutex::new(options.crash_after),
        })
    }

    /// Handles one message: a line, or the body of a request.
    ///
    /// Returns as soon as every short answer is sent; a long call goes on in its own thread and
    /// answers later.
    pub fn handle(&self, message: &[u8], out: &Arc<dyn Outbox>) {
        match serde_json::from_slice(message) {
            Ok(Value::Array(batch)) => self.handle_batch(batch, out),
            Ok(message) => self.handle_value(message, out),
            Err(error) => {
                let error = RpcError::new(PARSE_ERROR, format!("not JSON: {error}"));
                out.send(error.reply(Value::Null));
            }
        }
    }

    /// Cancels every call under way, without answers.
    pub fn close(&self) {
        self.calls.cancel_all();
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
                    self.handle_value(message, &out);
                }
                return;
            }
        };
        out.send(RpcError::new(INVALID_REQUEST, refusal).reply(Value::Null));
    }

    fn handle_value(&self, message: Value, out: &Arc<dyn Outbox>) {
        match classify(message) {
            Ok(Incoming::Request(request)) => self.handle_request(request, out),
            Ok(Incoming::Notification { method, params }) => self.notice(&method, &params),
            Ok(Incoming::Ignored) => {}
            Err(refusal) => out.send(refusal),
        }
    }

    fn notice(&self, method: &str, params: &Map<String, Value>) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            self.calls.cancel(id);
        }
    }

    fn handle_request(&self, request: Request, out: &Arc<dyn Outbox>) {
        let answer = if self.calls.is_running(&request.id) {
            let complaint = format!("the id {} is in use by a call under way", request.id);
            Err(RpcError::new(INVALID_REQUEST, complaint))
        } else {
            self.negotiation.admit(&request).and_then(|revision| self.answer(&request, revision, out))
        };
        match answer {
            Ok(Some(result)) => out.send(result_reply(request.id, result)),
            Ok(None) => {}
            Err(error) => out.send(error.reply(request.id)),
        }
    }

    /// The result of a request, or nothing if it comes later.
    fn answer(&self, request: &Request, revision: Revision, out: &Arc<dyn Outbox>) -> Result<Option<Value>, RpcError> {
        let params = &request.params;
        let lasting = |result: Value| cacheable(result, LASTING_MS, revision);
        let result = match request.method.as_str() {
            "initialize" if !revision.is_stateless() => self.initialize(revision),
            "ping" if !revision.is_stateless() => json!({}),
            "server/discover" if revision.is_stateless() => lasting(self.discover(revision)),
            "tools/list" => lasting(page("tools", tools::definitions(revision), params)?),
            "tools/call" => return self.call_tool(request, revision, out),
            "resources/list" => lasting(page("resources", resources::definitions(revision), params)?),
            "resources/templates/list" => lasting(page("resourceTemplates", resources::templates(revision), params)?),
            "resources/read" => {
                let reading = resources::read(params, revision)?;
                cacheable(reading.result, reading.ttl_ms, revision)
            }
            "prompts/list" => lasting(page("prompts", prompts::definitions(revision), params)?),
            "prompts/get" => prompts::fill_in(params)?,
            "completion/complete" => completion::complete(params)?,
            method => {
                let complaint = format!("unknown method `{method}`");
                return Err(RpcError::new(METHOD_NOT_FOUND, complaint));
            }
        };
        Ok(Some(self.complete(result, revision)))
    }

    fn call_tool(
        &self,
        request: &Request,
        revision: Revision,
        out: &Arc<dyn Outbox>,
    ) -> Result<Option<Value>, RpcError> {
        let around = Surroundings { revision, environment: &self.environment };
        let outcome = tools::call(&request.params, &around)?;
        if self.has_had_enough() {
            crash(3);
        }
        match outcome {
            Outcome::Answer(result) => Ok(Some(self.complete(result, revision))),
            Outcome::Crash { exit_code } => crash(exit_code),
            Outcome::Wait { wait, answer } => {
                let result = self.complete(answer, revision);
                let call = Call {
                    id: request.id.clone(),
                    wait,
                    reply: result_reply(request.id.clone(), result),
                    progress: wanted_progress(&request.params, revision),
                    out: Arc::clone(out),
                };
                let refused = |reason: String| RpcError::new(INTERNAL_ERROR, reason);
                self.calls.start(call).map_err(refused)?;
                Ok(None)
            }
        }
    }

    fn has_had_enough(&self) -> bool {
        match &mut *locked(&self.calls_left) {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }

    fn initialize(&self, revision: Revision) -> Value {
        json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities(revision),
            "serverInfo": self.introduction(revision),
            "instructions": INSTRUCTIONS,
        })
    }

    fn discover(&self, revision: Revision) -> Value {
        json!({
            "supportedVersions": self.negotiation.supported(),
            "capabilities": capabilities(revision),
            "instructions": INSTRUCTIONS,
        })
    }

    /// Adds what every result of a stateless revision has (2026-07-28 basic, "Results").
    fn complete(&self, mut result: Value, revision: Revision) -> Value {
        if revision.is_stateless() {
            result["resultType"] = "complete".into();
            result["_meta"] = json!({
                "io.modelcontextprotocol/serverInfo": self.introduction(revision),
            });
        }
        result
    }

    fn introduction(&self, revision: Revision) -> Value {
        let mut introduction = json!({"name": self.name, "version": env!("CARGO_PKG_VERSION")});
        if revision.has_titles() {
            introduction["title"] = "Wharf demo server".into();
        }
        if revision.has_descriptions() {
            introduction["description"] = "A harmless server to try an MCP host on.".into();
        }
        introduction
    }
}

const INSTRUCTIONS: &str = "A demo server: its tools are harmless and exist to be tried. \
                            `fail` always fails and `crash` ends the server; both mean to.";

fn capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
    if revision.has_completions_capability() {
        capabilities["completions"] = json!({});
    }
    capabilities
}

/// Says for how long a result may be kept; only stateless revisions have words for it.
fn cacheable(mut result: Value, ttl_ms: u64, revision: Revision) -> Value {
    if revision.is_stateless() {
        result["ttlMs"] = ttl_ms.into();
        result["cacheScope"] = "public".into();
    }
    result
}

fn wanted_progress(params: &Map<String, Value>, revision: Revision) -> Option<Progress> {
    let token = params.get("_meta")?.get("progressToken")?;
    // Tokens may be what ids may be; anything else is ignored, since progress is a courtesy.
    is_request_id(token).then(|| Progress { token: token.clone(), with_message: revision.has_progress_messages() })
}

fn unknown_revision(text: &str) -> String {
    let known = Revision::ALL.map(Revision::as_str).join(", ");
    format!("there is no revision `{text}` of the protocol; choose one of {known}")
}

/// Ends the process the way a server with a bug would: some words on stderr, and no answer.
#[expect(clippy::exit, reason = "crashing is what the caller asked for")]
fn crash(exit_code: i32) -> ! {
    // Nobody is left to hear that stderr is gone.
    let _ = std::io::stderr().lock().write_all(
        b"demo: fatal: the cargo shifted\n\
          demo: listing to starboard, abandoning ship\n",
    );
    std::process::exit(exit_code)
}
