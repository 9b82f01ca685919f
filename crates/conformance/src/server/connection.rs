//! The fixture as a service, and its clients.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::task::AbortHandle;
use wharf_serve::{
    ClientConnection, ClientMessage, HeaderMap, MessageKind, Outbox, OutgoingMessage, RawJson, Revision, Service,
};
use wharf_wire::{Era, code};

use crate::client_requests::ClientRequests;
use crate::list_changes::{self, ListState};
use crate::methods::{self, FixtureError, FixtureRequest};

/// The revisions that the fixture speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eras {
    Handshake,
    Stateless,
    Both,
}

pub struct FixtureService {
    eras: Eras,
    lists: Arc<ListState>,
}

impl FixtureService {
    pub fn new(eras: Eras) -> Self {
        Self { eras, lists: Arc::default() }
    }

    fn open(&self, era: Era) -> Option<Arc<dyn ClientConnection>> {
        let is_spoken = match era {
            Era::Handshake => self.eras != Eras::Stateless,
            Era::Stateless => self.eras != Eras::Handshake,
        };
        let revision = (era == Era::Stateless).then_some(Revision::LATEST_STATELESS);
        let state = ClientState { revision, ..ClientState::default() };
        is_spoken.then(|| {
            let (lists, asked, running) = (Arc::clone(&self.lists), Arc::default(), Arc::default());
            Arc::new(FixtureConnection { era, lists, asked, running, state: Mutex::new(state) }) as _
        })
    }
}

impl Service for FixtureService {
    fn has_sessions(&self) -> bool {
        self.eras != Eras::Stateless
    }

    fn open_session(&self) -> Option<Arc<dyn ClientConnection>> {
        self.open(Era::Handshake)
    }

    fn open_request(&self, _: &HeaderMap) -> Option<Arc<dyn ClientConnection>> {
        self.open(Era::Stateless)
    }
}

/// Tasks of requests in progress, by raw id.
type RunningTasks = Mutex<HashMap<String, AbortHandle>>;

struct FixtureConnection {
    era: Era,
    lists: Arc<ListState>,
    asked: Arc<ClientRequests>,
    running: Arc<RunningTasks>,
    state: Mutex<ClientState>,
}

#[derive(Default)]
struct ClientState {
    revision: Option<Revision>,
    capabilities: Value,
    log_level: Option<String>,
    announcer: Option<AbortHandle>,
}

impl FixtureConnection {
    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive_request(&self, message: &ClientMessage, out: Arc<dyn Outbox>) {
        let params: Value = serde_json::from_slice(message.params()).unwrap_or_default();
        let id = message.id();
        match (self.era, &*message.method()) {
            (Era::Handshake, "initialize") => {
                let result = self.initialize(&params);
                out.send(methods::response(&id, Ok(result), self.era));
            }
            (Era::Handshake, "logging/setLevel") => {
                self.state().log_level = params["level"].as_str().map(str::to_owned);
                out.send(methods::response(&id, Ok(json!({})), self.era));
            }
            (_, method) => self.start(method, id, params, out),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let wanted = params["protocolVersion"].as_str().and_then(|version| version.parse::<Revision>().ok());
        let spoken = wanted.filter(|revision| revision.era() == Era::Handshake);
        let revision = spoken.unwrap_or(Revision::LATEST_HANDSHAKE);
        let mut state = self.state();
        state.revision = Some(revision);
        state.capabilities = params["capabilities"].clone();
        json!({
            "protocolVersion": revision.as_str(),
            "capabilities": methods::capabilities(),
            "serverInfo": methods::server_info(),
        })
    }

    fn start(&self, method: &str, id: Value, params: Value, out: Arc<dyn Outbox>) {
        let (capabilities, log_level) = match self.era {
            Era::Handshake => {
                let state = self.state();
                (state.capabilities.clone(), Some(state.log_level.clone().unwrap_or_else(|| "debug".to_owned())))
            }
            Era::Stateless => {
                let meta = |name: &str| params["_meta"][format!("io.modelcontextprotocol/{name}")].clone();
                (meta("clientCapabilities"), meta("logLevel").as_str().map(str::to_owned))
            }
        };
        let request = FixtureRequest {
            era: self.era,
            id: id.clone(),
            method: method.to_owned(),
            params,
            capabilities,
            log_level,
            out,
            lists: Arc::clone(&self.lists),
            asked: Arc::clone(&self.asked),
        };
        let (running, key) = (Arc::clone(&self.running), id.to_string());
        let task = tokio::spawn(async move {
            let reply = methods::response(&request.id, methods::answer(&request).await, request.era);
            lock(&running).remove(&request.id.to_string());
            request.out.send(reply);
        });
        lock(&self.running).insert(key, task.abort_handle());
    }

    fn cancel(&self, id: &str) {
        if let Some(task) = lock(&self.running).remove(id) {
            task.abort();
        }
    }
}

fn lock(running: &RunningTasks) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientConnection for FixtureConnection {
    fn receive(&self, message: ClientMessage, out: Arc<dyn Outbox>) {
        match message.kind() {
            MessageKind::Request => self.receive_request(&message, out),
            MessageKind::Response => self.asked.answer(serde_json::from_slice(message.text()).unwrap_or_default()),
            MessageKind::Notification if message.method() == "notifications/cancelled" => {
                if let Some(id) = message.param("requestId") {
                    self.cancel(id.as_str());
                }
            }
            MessageKind::Notification => {}
            MessageKind::Batch => {
                let refused = FixtureError::new(code::INVALID_REQUEST, "batches are not supported");
                out.send(methods::response(&Value::Null, Err(refused), self.era));
            }
        }
    }

    fn admit(&self, request: &ClientMessage) -> Result<(), OutgoingMessage> {
        let refuse = |error: FixtureError| Err(methods::response(&request.id(), Err(error), Era::Stateless));
        let invalid = |missing: &str| FixtureError::new(code::INVALID_PARAMS, &format!("`_meta` needs `{missing}`"));
        let Some(version) = request.declared_version() else { return refuse(invalid("protocolVersion")) };
        if version != Revision::LATEST_STATELESS.as_str() {
            let data = json!({"supported": [Revision::LATEST_STATELESS.as_str()], "requested": version});
            let error = FixtureError::new(code::UNSUPPORTED_REVISION, "Unsupported protocol version");
            return refuse(FixtureError { data: Some(data), ..error });
        }
        let params: Value = serde_json::from_slice(request.params()).unwrap_or_default();
        match params["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_object() {
            true => Ok(()),
            false => refuse(invalid("clientCapabilities")),
        }
    }

    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        let tools = crate::catalog::tools(&self.lists);
        let found = tools.as_array()?.iter().find(|entry| entry["name"] == tool)?;
        Some(RawJson::new_unchecked(found["inputSchema"].to_string()))
    }

    fn revision(&self) -> Option<Revision> {
        self.state().revision
    }

    fn attach(&self, out: Arc<dyn Outbox>) -> io::Result<()> {
        let announcing = tokio::spawn(list_changes::announce(self.lists.subscribe(), out));
        self.state().announcer = Some(announcing.abort_handle());
        Ok(())
    }

    fn cancel_pending(&self) {
        lock(&self.running).drain().for_each(|(_, task)| task.abort());
        self.asked.cancel();
    }

    fn close(&self) {
        self.cancel_pending();
        if let Some(announcer) = self.state().announcer.take() {
            announcer.abort();
        }
    }
}
