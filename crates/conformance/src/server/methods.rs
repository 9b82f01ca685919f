//! The methods of the fixture.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_serve::{Outbox, OutgoingMessage, Revision};
use wharf_wire::{Era, code};

use crate::catalog;
use crate::client_requests::ClientRequests;
use crate::input_rounds::{self, InputRound, RoundStep};
use crate::list_changes::{self, ListState};
use crate::tools;

/// A request, with what its client declares.
pub struct FixtureRequest {
    pub era: Era,
    pub id: Value,
    pub method: String,
    pub params: Value,
    pub capabilities: Value,
    /// Lowest level of log messages that the client wants, if any.
    pub log_level: Option<String>,
    pub out: Arc<dyn Outbox>,
    pub lists: Arc<ListState>,
    pub asked: Arc<ClientRequests>,
}

/// An error response.
#[derive(Debug)]
pub struct FixtureError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl FixtureError {
    pub fn new(code: i64, message: &str) -> Self {
        Self { code, message: message.to_owned(), data: None }
    }
}

pub type FixtureResult = Result<Value, FixtureError>;

pub fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"subscribe": true},
        "completions": {},
        "logging": {},
    })
}

pub fn server_info() -> Value {
    json!({"name": "wharf-conformance-server", "version": env!("CARGO_PKG_VERSION")})
}

/// Answers a request.
pub async fn answer(request: &FixtureRequest) -> FixtureResult {
    let is_handshake = request.era == Era::Handshake;
    match request.method.as_str() {
        "ping" if is_handshake => Ok(json!({})),
        "resources/subscribe" | "resources/unsubscribe" if is_handshake => Ok(json!({})),
        "server/discover" if !is_handshake => Ok(request.cached(json!({
            "supportedVersions": [Revision::LATEST_STATELESS.as_str()],
            "capabilities": capabilities(),
            "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
        }))),
        "subscriptions/listen" if !is_handshake => {
            let (changes, wanted) = (request.lists.subscribe(), request.params["notifications"].clone());
            list_changes::listen(changes, request.id.clone(), wanted, Arc::clone(&request.out)).await;
            Ok(json!({}))
        }
        "tools/list" => Ok(request.cached(json!({"tools": catalog::tools(&request.lists)}))),
        "prompts/list" => Ok(request.cached(json!({"prompts": catalog::prompts(&request.lists)}))),
        "resources/list" => Ok(request.cached(json!({"resources": catalog::resources()}))),
        "resources/templates/list" => Ok(request.cached(json!({"resourceTemplates": catalog::templates()}))),
        "resources/read" => request.read_resource(),
        "prompts/get" => request.get_prompt().await,
        "completion/complete" => Ok(json!({"completion": {"values": ["paris", "park"], "total": 2, "hasMore": false}})),
        "tools/call" => request.call_tool().await,
        method => Err(FixtureError::new(code::METHOD_NOT_FOUND, &format!("unknown method {method}"))),
    }
}

impl FixtureRequest {
    fn read_resource(&self) -> FixtureResult {
        let uri = self.params["uri"].as_str().unwrap_or_default();
        let not_found = if self.era == Era::Stateless { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
        let contents = catalog::contents(uri).ok_or_else(|| FixtureError {
            data: Some(json!({ "uri": uri })),
            ..FixtureError::new(not_found, "Resource not found")
        })?;
        Ok(self.cached(json!({ "contents": contents })))
    }

    async fn get_prompt(&self) -> FixtureResult {
        let name = self.params["name"].as_str().unwrap_or_default();
        if let Some(asking) = self.ask(name).await? {
            return Ok(asking);
        }
        if name == "test_input_required_result_prompt" {
            let content = json!({"type": "text", "text": "A prompt with the given context."});
            return Ok(json!({"messages": [{"role": "user", "content": content}]}));
        }
        let messages = catalog::messages(name, &self.params["arguments"]);
        let messages = messages.ok_or_else(|| FixtureError::new(code::INVALID_PARAMS, "unknown prompt"))?;
        Ok(json!({ "messages": messages }))
    }

    async fn call_tool(&self) -> FixtureResult {
        let name = self.params["name"].as_str().unwrap_or_default();
        match self.ask(name).await? {
            Some(asking) => Ok(asking),
            None => tools::call(self, name).await,
        }
    }

    /// Asks what a tool or prompt needs to know. Returns the result that asks in the client's place.
    async fn ask(&self, name: &str) -> Result<Option<Value>, FixtureError> {
        let question = input_rounds::question_of_tool(name, &self.params["arguments"]);
        let rounds = match (question, self.era) {
            (Some(question), Era::Stateless) => vec![vec![question]],
            (Some(_), Era::Handshake) => return Ok(None),
            (None, _) => match input_rounds::rounds(name, &self.capabilities) {
                Some(rounds) => rounds,
                None => return Ok(None),
            },
        };
        if self.era == Era::Handshake {
            self.ask_by_request(&rounds).await;
            return Ok(None);
        }
        match input_rounds::step(name, &rounds, &self.params) {
            RoundStep::Complete => Ok(None),
            RoundStep::Ask(result) => Ok(Some(result)),
            RoundStep::Tampered => Err(FixtureError::new(code::INVALID_PARAMS, "`requestState` is not from here")),
        }
    }

    /// Asks the questions of each round at once.
    async fn ask_by_request(&self, rounds: &[InputRound]) {
        for round in rounds {
            let mut asking = tokio::task::JoinSet::new();
            for question in round.iter().filter(|question| self.capabilities[question.capability()].is_object()) {
                let (asked, out, question) = (Arc::clone(&self.asked), Arc::clone(&self.out), question.clone());
                asking.spawn(async move { asked.ask(&out, &question).await });
            }
            while asking.join_next().await.is_some() {}
        }
    }

    /// Adds how long a result may be kept.
    fn cached(&self, mut result: Value) -> Value {
        if self.era == Era::Stateless {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        result
    }
}

/// Formats a response.
pub fn response(id: &Value, result: FixtureResult, era: Era) -> OutgoingMessage {
    match result {
        Ok(mut result) => {
            if era == Era::Stateless && result.get("resultType").is_none() {
                result["resultType"] = "complete".into();
            }
            OutgoingMessage::response(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
        }
        Err(FixtureError { code, message, data }) => {
            let mut error = json!({"code": code, "message": message});
            if let Some(data) = data {
                error["data"] = data;
            }
            OutgoingMessage::error(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(), code)
        }
    }
}
