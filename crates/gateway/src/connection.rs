//! One client: a session of a handshake revision, or a stateless client.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use wharf::RawJson;
use wharf::tools::Principal;
use wharf::wire::{Era, JsonLimits, LogLevel, Revision, RpcError, code, object_members, split_batch};
use wharf_serve::{ClientConnection, ClientMessage, MessageKind, Outbox, OutgoingMessage};

use crate::client_class::ClientClass;
use crate::client_view::ClientView;
use crate::errors::{invalid_params, rpc_error, rpc_error_with, unknown_method};
use crate::gateway::{Gateway, GatewayShared};
use crate::list_changes;
use crate::principal_load::MAX_PRINCIPAL_REQUESTS;
use crate::questions::SessionQuestions;
use crate::requests::{self, ClientRequest};
use crate::resource_updates::SessionSubscriptions;
use crate::responses::{error_response, result_response};
use crate::route::ClientFacts;
use crate::running_requests::{MAX_REQUESTS, RunningRequests, StartRefusal};
use crate::tasks::TASKS_EXTENSION;

/// Maximum characters of a client's name in prompts and logs.
const MAX_CLIENT_NAME_CHARS: usize = 100;

/// Time after which a client that has too many requests in progress should try again.
const RETRY_AFTER_MS: u64 = 1000;

/// Maximum number of messages in a batch.
const MAX_BATCH_MESSAGES: usize = 100;

pub(crate) struct GatewayConnection {
    shared: Arc<GatewayShared>,
    view: Arc<ClientView>,
    principal: Principal,
    era: Era,
    /// Number of the connection in its gateway.
    number: u64,
    client: Mutex<ClientState>,
    running: Arc<RunningRequests>,
    questions: Arc<SessionQuestions>,
    subscriptions: Arc<SessionSubscriptions>,
}

/// What identifies a connection.
struct ConnectionFacts {
    principal: Principal,
    number: u64,
    era: Era,
}

/// What is known of a client.
#[derive(Default)]
struct ClientState {
    revision: Option<Revision>,
    name: Option<String>,
    /// `clientInfo` as sent.
    info: Option<RawJson>,
    class: ClientClass,
    log_level: Option<LogLevel>,
    /// Stream for messages that belong to no request.
    outbox: Option<Arc<dyn Outbox>>,
    /// Announces list changes.
    announcer: Option<AbortHandle>,
}

impl GatewayConnection {
    pub fn session(gateway: &Gateway, principal: Principal, number: u64) -> Self {
        Self::new(gateway, ConnectionFacts { principal, number, era: Era::Handshake }, ClientState::default())
    }

    pub fn stateless(gateway: &Gateway, principal: Principal, number: u64) -> Self {
        let client = ClientState { revision: Some(Revision::LATEST_STATELESS), ..ClientState::default() };
        Self::new(gateway, ConnectionFacts { principal, number, era: Era::Stateless }, client)
    }

    fn new(gateway: &Gateway, facts: ConnectionFacts, client: ClientState) -> Self {
        let (shared, view) = gateway.parts();
        let ConnectionFacts { principal, number, era } = facts;
        let (running, questions, subscriptions) = (Arc::default(), Arc::default(), Arc::default());
        let client = Mutex::new(client);
        Self { shared, view, principal, era, number, client, running, questions, subscriptions }
    }

    fn client(&self) -> MutexGuard<'_, ClientState> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive_request(&self, message: ClientMessage, out: Arc<dyn Outbox>) {
        let id = raw_id(&message);
        match self.answer_now(&message) {
            Some(Ok(result)) => out.send(result_response(&id, &result, self.era)),
            Some(Err(error)) => out.send(error_response(&id, &error)),
            None => self.start(id, message, out),
        }
    }

    /// Answers a request that needs nothing but the connection. `None` for all others.
    fn answer_now(&self, message: &ClientMessage) -> Option<Result<RawJson, RpcError>> {
        let is_open = self.client().revision.is_some();
        match (self.era, &*message.method()) {
            (Era::Handshake, "ping") => Some(Ok(RawJson::empty_object())),
            (Era::Handshake, "initialize") if is_open => {
                Some(Err(rpc_error(code::INVALID_REQUEST, "this session is initialized already")))
            }
            (Era::Handshake, "initialize") => Some(self.initialize(message)),
            (Era::Handshake, _) if !is_open => {
                Some(Err(rpc_error(code::INVALID_REQUEST, "the first request must be `initialize`")))
            }
            (Era::Stateless, "server/discover") => Some(Ok(self.discover())),
            (Era::Handshake, "logging/setLevel") => Some(self.set_log_level(message)),
            (era, method) if !requests::is_known(era, method) => Some(Err(unknown_method(method))),
            _ => None,
        }
    }

    fn initialize(&self, message: &ClientMessage) -> Result<RawJson, RpcError> {
        let bounds = JsonLimits::default();
        let requested: Option<String> = message.param("protocolVersion").and_then(|raw| raw.decode(&bounds).ok());
        let requested = requested.ok_or_else(|| invalid_params("`protocolVersion` must be a string"))?;
        let spoken = requested.parse::<Revision>().ok().filter(|revision| revision.era() == Era::Handshake);
        let revision = spoken.unwrap_or(Revision::LATEST_HANDSHAKE);
        let info = message.param("clientInfo");
        let declared: Option<Value> = message.param("capabilities").and_then(|raw| raw.decode(&bounds).ok());
        {
            let mut client = self.client();
            (client.revision, client.name) = (Some(revision), info.as_ref().and_then(client_name));
            client.class = ClientClass::from_capabilities(&declared.unwrap_or_default(), revision);
            client.info = info;
        }
        self.announce_changes();
        Ok(raw(&json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities(revision),
            "serverInfo": self.server_info(),
        })))
    }

    fn set_log_level(&self, message: &ClientMessage) -> Result<RawJson, RpcError> {
        let level: Option<String> = message.param("level").and_then(|raw| raw.decode(&JsonLimits::default()).ok());
        let level = level.and_then(|level| level.parse::<LogLevel>().ok());
        self.client().log_level = Some(level.ok_or_else(|| invalid_params("`level` must be a log level"))?);
        Ok(RawJson::empty_object())
    }

    fn discover(&self) -> RawJson {
        let supported: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
        raw(&json!({
            "supportedVersions": supported,
            "capabilities": capabilities(Revision::LATEST_STATELESS),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.server_info()},
        }))
    }

    fn server_info(&self) -> Value {
        let options = &self.shared.options;
        json!({"name": options.name, "version": options.version})
    }

    /// Announces list changes to a session, as soon as it is initialized and has a stream.
    fn announce_changes(&self) {
        let mut client = self.client();
        if let (Some(_), Some(outbox), None) = (client.revision, &client.outbox, &client.announcer) {
            let announcing =
                list_changes::announce(Arc::clone(&self.shared), Arc::clone(&self.view), Arc::clone(outbox));
            client.announcer = Some(self.shared.runtime.spawn(announcing).abort_handle());
        }
    }

    /// Starts the task that answers a request.
    fn start(&self, id: Bytes, message: ClientMessage, out: Arc<dyn Outbox>) {
        let begun = self.view.begin_request().and_then(|counted| Ok((counted, self.running.reserve(&id)?)));
        let (counted, serial) = match begun {
            Ok(begun) => begun,
            Err(refusal) => return out.send(error_response(&id, &start_error(refusal))),
        };
        let request = ClientRequest {
            shared: Arc::clone(&self.shared),
            view: Arc::clone(&self.view),
            client: self.client_facts(&message),
            questions: Arc::clone(&self.questions),
            subscriptions: Arc::clone(&self.subscriptions),
            id: id.clone(),
            message,
            out: Arc::clone(&out),
        };
        let (running, era, own_id) = (Arc::clone(&self.running), self.era, id.clone());
        let task = self.shared.runtime.spawn(async move {
            let _counted = counted;
            let answer = answer_or_report(request).await;
            if running.finish(&own_id, serial) {
                out.send(match answer {
                    Ok(result) => result_response(&own_id, &result, era),
                    Err(error) => error_response(&own_id, &error),
                });
            }
        });
        self.running.set_task(&id, serial, task.abort_handle());
    }

    /// Returns the owner of the client's tasks: its key, or the client itself.
    fn task_owner(&self) -> String {
        match &self.view.options.principal {
            Some(key) => format!("key {key}"),
            None => format!("client {:?}", self.principal),
        }
    }

    /// Returns the client of a request. A stateless one describes itself in every request.
    fn client_facts(&self, message: &ClientMessage) -> ClientFacts {
        let client = self.client();
        let mut facts = ClientFacts {
            principal: self.principal.clone(),
            era: self.era,
            name: client.name.clone(),
            info: client.info.clone(),
            class: client.class,
            log_level: client.log_level,
            account: self.view.options.principal.clone(),
            rule_set: self.view.options.rule_set.clone(),
            connection: self.number,
            revision: client.revision,
            task_owner: self.task_owner(),
            follows_tasks: false,
        };
        drop(client);
        let bounds = JsonLimits::default();
        let meta = message.param("_meta").filter(|_| self.era == Era::Stateless);
        let members = meta.as_ref().and_then(|meta| object_members(meta, &bounds).ok()).unwrap_or_default();
        for (key, value) in members {
            match key.strip_prefix("io.modelcontextprotocol/") {
                Some("clientCapabilities") => {
                    let declared: Value = value.decode(&bounds).unwrap_or_default();
                    facts.class = ClientClass::from_capabilities(&declared, Revision::LATEST_STATELESS);
                    facts.follows_tasks = declared["extensions"][TASKS_EXTENSION].is_object();
                }
                Some("clientInfo") => {
                    facts.name = client_name(&value);
                    facts.info = Some(value);
                }
                Some("logLevel") => {
                    let level: Option<String> = value.decode(&bounds).ok();
                    facts.log_level = level.and_then(|level| level.parse().ok());
                }
                _ => {}
            }
        }
        facts
    }

    fn receive_batch(&self, message: &ClientMessage, out: Arc<dyn Outbox>) {
        let allows = self.client().revision.is_some_and(Revision::allows_batches);
        let items =
            split_batch(message.text()).filter(|items| allows && (1..=MAX_BATCH_MESSAGES).contains(&items.len()));
        let Some(items) = items else {
            let complaint = "a batch needs a session initialized at 2025-03-26, and has 1 to 100 messages";
            return out.send(error_response(b"null", &rpc_error(code::INVALID_REQUEST, complaint)));
        };
        let out: Arc<dyn Outbox> = Arc::new(BatchOutbox { out, responses: Mutex::default() });
        for item in items {
            match ClientMessage::parse(item) {
                // A nested batch is not a message.
                Ok(item) if item.kind() != MessageKind::Batch => self.receive(item, Arc::clone(&out)),
                Ok(_) => {
                    let error = rpc_error(code::INVALID_REQUEST, "a message is a JSON object");
                    out.send(error_response(b"null", &error));
                }
                Err(reply) => out.send(reply),
            }
        }
    }
}

impl ClientConnection for GatewayConnection {
    fn receive(&self, message: ClientMessage, out: Arc<dyn Outbox>) {
        match message.kind() {
            MessageKind::Request => self.receive_request(message, out),
            MessageKind::Batch => self.receive_batch(&message, out),
            MessageKind::Notification if message.method() == "notifications/cancelled" => {
                if let Some(id) = message.param("requestId") {
                    self.running.cancel(id.as_bytes());
                }
            }
            MessageKind::Notification if message.method() == "notifications/roots/list_changed" => {
                self.shared.instances.notify_roots_changed(self.number);
            }
            MessageKind::Response => self.questions.receive(&message),
            MessageKind::Notification => {}
        }
    }

    fn admit(&self, request: &ClientMessage) -> Result<(), OutgoingMessage> {
        let id = raw_id(request);
        let refused = |error: &RpcError| Err(error_response(&id, error));
        let Some(version) = request.declared_version() else {
            return refused(&invalid_params("`params._meta` must have `io.modelcontextprotocol/protocolVersion`"));
        };
        if version.parse::<Revision>().map_or(true, |revision| revision.era() != Era::Stateless) {
            let supported: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
            let data = json!({"supported": supported, "requested": version});
            return refused(&rpc_error_with(code::UNSUPPORTED_REVISION, "Unsupported protocol version", &data));
        }
        let meta: Option<Value> = request.param("_meta").and_then(|raw| raw.decode(&JsonLimits::default()).ok());
        if !meta.is_some_and(|meta| meta["io.modelcontextprotocol/clientCapabilities"].is_object()) {
            return refused(&invalid_params("`params._meta` must have `io.modelcontextprotocol/clientCapabilities`"));
        }
        Ok(())
    }

    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        self.view.current().input_schema(tool)
    }

    fn revision(&self) -> Option<Revision> {
        self.client().revision
    }

    fn attach(&self, out: Arc<dyn Outbox>) -> io::Result<()> {
        self.client().outbox = Some(out);
        self.announce_changes();
        Ok(())
    }

    fn cancel_pending(&self) {
        self.running.cancel_all();
    }

    fn close(&self) {
        self.running.close();
        let subscriptions = std::mem::take(&mut *self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner));
        drop(subscriptions);
        let mut client = self.client();
        client.outbox = None;
        if let Some(announcer) = client.announcer.take() {
            announcer.abort();
        }
        drop(client);
        if self.era == Era::Handshake {
            if self.view.options.principal.is_none() {
                // Its tasks are unknown to everyone else.
                self.shared.tasks.forget_owner(&self.task_owner());
            }
            self.shared.host.forget_principal(&self.principal);
            self.shared.instances.end_session(self.number);
        }
    }
}

impl Drop for GatewayConnection {
    fn drop(&mut self) {
        if let Some(announcer) = self.client().announcer.take() {
            announcer.abort();
        }
    }
}

/// Answers a request. A defect of the gateway costs that request an error, not its answer.
async fn answer_or_report(request: ClientRequest) -> Result<RawJson, RpcError> {
    let mut answering = pin!(requests::answer(&request));
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(rpc_error(code::INTERNAL, "internal error of the gateway"))))
    })
    .await
}

fn start_error(refusal: StartRefusal) -> RpcError {
    match refusal {
        StartRefusal::IdInUse => rpc_error(code::INVALID_REQUEST, "the id is in use by a request in progress"),
        StartRefusal::TooMany => too_many_error(format!("this client has {MAX_REQUESTS} requests in progress")),
        StartRefusal::TooManyOfPrincipal => {
            too_many_error(format!("the clients of this key have {MAX_PRINCIPAL_REQUESTS} requests in progress"))
        }
        StartRefusal::Closed => rpc_error(code::INVALID_REQUEST, "the session has ended"),
    }
}

fn too_many_error(message: String) -> RpcError {
    let data = json!({"reason": "too_many_requests", "retryAfterMs": RETRY_AFTER_MS});
    rpc_error_with(code::INTERNAL, format!("{message}; try again when one has finished"), &data)
}

fn capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {"listChanged": true},
        "logging": {},
    });
    if revision >= Revision::V2025_03_26 {
        capabilities["completions"] = json!({});
    }
    match revision {
        Revision::V2025_11_25 => {
            capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        }
        Revision::V2026_07_28 => capabilities["extensions"] = json!({ TASKS_EXTENSION: {} }),
        _ => {}
    }
    capabilities
}

/// Returns the name of a client.
fn client_name(info: &RawJson) -> Option<String> {
    let info: Value = info.decode(&JsonLimits::default()).ok()?;
    Some(info["name"].as_str()?.chars().take(MAX_CLIENT_NAME_CHARS).collect())
}

fn raw(value: &Value) -> RawJson {
    RawJson::new_unchecked(value.to_string())
}

/// Returns the id of a request as it was sent.
fn raw_id(message: &ClientMessage) -> Bytes {
    let span = message.envelope().id;
    span.map_or(Bytes::from_static(b"null"), |span| message.text().slice(span.start..span.end))
}

/// Collects the responses of a batch and sends them as one array when the last request has ended.
struct BatchOutbox {
    out: Arc<dyn Outbox>,
    responses: Mutex<Vec<Bytes>>,
}

impl Outbox for BatchOutbox {
    fn send(&self, message: OutgoingMessage) {
        if message.is_response {
            self.responses.lock().unwrap_or_else(PoisonError::into_inner).push(message.text);
        } else {
            self.out.send(message);
        }
    }

    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        self.out.session_outbox()
    }
}

impl Drop for BatchOutbox {
    fn drop(&mut self) {
        let responses = std::mem::take(&mut *self.responses.lock().unwrap_or_else(PoisonError::into_inner));
        if !responses.is_empty() {
            let mut text = b"[".to_vec();
            text.extend_from_slice(&responses.join(&b","[..]));
            text.push(b']');
            self.out.send(OutgoingMessage::response(text));
        }
    }
}
