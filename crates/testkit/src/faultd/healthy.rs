//! Responses of a server without faults. Dual-era by default; see [`Era`].

use std::sync::Arc;

use serde_json::{Value, json};

use super::frame::{self, ClientMessage, ErrorReply};
use super::options::{HANDSHAKE, MODERN, ServerEra};
use super::request_context::RequestServer;
use super::server::{EraState, StdioFaultServer, lock_ignoring_poison};
use super::tools;

/// Records the entries that the oracle checks, before any other processing.
pub fn record(server: &dyn RequestServer, message: &ClientMessage) {
    match message.method.as_str() {
        "tools/call" => {
            let tool = message.params["name"].as_str().unwrap_or("?");
            server.record(&format!("call {tool} {}", nonce(message)));
        }
        "notifications/cancelled" => server.record(&format!("cancelled {}", id_text(&message.params["requestId"]))),
        "server/discover" | "initialize" => server.record(&format!("opened {}", message.method)),
        _ => {}
    }
}

/// Returns the key of a call in the ledger: its nonce, or its id if it has none.
pub fn nonce(message: &ClientMessage) -> String {
    match message.argument("nonce") {
        Value::String(nonce) => nonce.clone(),
        _ => format!("id:{}", id_text(&message.id())),
    }
}

pub fn on_notification(server: &Arc<StdioFaultServer>, message: &ClientMessage) {
    match message.method.as_str() {
        "notifications/cancelled" => server.cancel(&message.params["requestId"]),
        "notifications/initialized" => {
            let mut conversation = lock_ignoring_poison(&server.conversation);
            if *conversation == EraState::Opening {
                *conversation = EraState::Open;
                drop(conversation);
                server.on_ready(Value::Null, "");
            }
        }
        _ => {}
    }
}

/// Returns the response line, or `None` if the request was cancelled meanwhile.
pub fn answer(server: &StdioFaultServer, message: &ClientMessage) -> Option<String> {
    let outcome = match message.method.as_str() {
        "server/discover" => discover(server, message),
        "initialize" => initialize(server, message),
        "ping" if *lock_ignoring_poison(&server.conversation) != EraState::Stateless => Ok(json!({})),
        _ => match check_era(server, message) {
            Ok(()) => execute(server, message)?,
            Err(refusal) => Err(refusal),
        },
    };
    Some(match outcome {
        Ok(body) => frame::result(&message.id(), &adapt_result(server, body)),
        Err(refusal) => frame::error(&message.id(), &refusal),
    })
}

/// Executes an accepted request; returns `None` if it was cancelled meanwhile.
pub fn execute(server: &dyn RequestServer, message: &ClientMessage) -> Option<Result<Value, ErrorReply>> {
    if message.is_method("tools/call") { tools::call(server, message) } else { Some(look_up(server, message)) }
}

/// Returns a `DiscoverResult` with these versions.
pub fn discover_result(versions: &[&str]) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": capabilities(),
        "instructions": "Handle with care.",
        "ttlMs": 60_000,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    })
}

/// Returns the result of `initialize`: the requested revision if it is not too new, otherwise the newest.
pub fn initialize_result(era: ServerEra, message: &ClientMessage) -> Value {
    json!({
        "protocolVersion": negotiated_revision(era, message),
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": "Handle with care.",
    })
}

/// Returns the revision negotiated by `initialize`.
pub fn negotiated_revision(era: ServerEra, message: &ClientMessage) -> &'static str {
    let newest = era.newest_handshake();
    let asked = message.params["protocolVersion"].as_str().unwrap_or_default();
    HANDSHAKE.into_iter().find(|known| *known == asked && *known <= newest).unwrap_or(newest)
}

pub fn unsupported_version(supported: &[&str], requested: &Value) -> ErrorReply {
    ErrorReply {
        code: -32022,
        message: "Unsupported protocol version".to_owned(),
        data: Some(json!({ "supported": supported, "requested": requested })),
    }
}

pub fn method_not_found(message: &ClientMessage) -> ErrorReply {
    ErrorReply::new(-32601, format!("Method not found: {}", message.method))
}

fn discover(server: &StdioFaultServer, message: &ClientMessage) -> Result<Value, ErrorReply> {
    if server.options.era != ServerEra::Modern {
        return Err(method_not_found(message));
    }
    if matches!(*lock_ignoring_poison(&server.conversation), EraState::Opening | EraState::Open) {
        return Err(wrong_era());
    }
    check_meta(message)?;
    Ok(discover_result(&[MODERN]))
}

fn initialize(server: &StdioFaultServer, message: &ClientMessage) -> Result<Value, ErrorReply> {
    let mut conversation = lock_ignoring_poison(&server.conversation);
    if *conversation != EraState::Undecided {
        return Err(wrong_era());
    }
    *conversation = EraState::Opening;
    Ok(initialize_result(server.options.era, message))
}

/// Checks that a request fits the era, and sets the era if it is undecided.
fn check_era(server: &StdioFaultServer, message: &ClientMessage) -> Result<(), ErrorReply> {
    let mut conversation = lock_ignoring_poison(&server.conversation);
    match *conversation {
        EraState::Undecided if server.options.era == ServerEra::Modern => {
            check_meta(message)?;
            *conversation = EraState::Stateless;
            Ok(())
        }
        EraState::Undecided => Err(ErrorReply::new(-32600, "Server not initialized")),
        EraState::Stateless => check_meta(message),
        EraState::Opening | EraState::Open => {
            if message.meta("io.modelcontextprotocol/protocolVersion").is_some() {
                return Err(wrong_era());
            }
            if *conversation == EraState::Opening {
                server.record(&format!("violation {} before notifications/initialized", message.method));
            }
            Ok(())
        }
    }
}

/// Checks the two `_meta` keys that a stateless request needs (2026-07-28, basic/index).
pub fn check_meta(message: &ClientMessage) -> Result<(), ErrorReply> {
    let version = message.meta("io.modelcontextprotocol/protocolVersion");
    let capabilities = message.meta("io.modelcontextprotocol/clientCapabilities");
    match version {
        Some(version @ Value::String(name)) if name != MODERN => Err(unsupported_version(&[MODERN], version)),
        Some(Value::String(_)) if capabilities.is_some_and(Value::is_object) => Ok(()),
        _ => Err(ErrorReply::new(-32602, "Missing required _meta: protocolVersion and clientCapabilities")),
    }
}

fn wrong_era() -> ErrorReply {
    ErrorReply::new(-32600, "this connection serves the other protocol era")
}

fn look_up(server: &dyn RequestServer, message: &ClientMessage) -> Result<Value, ErrorReply> {
    match message.method.as_str() {
        "tools/list" => tools::list(server, message),
        "resources/list" => Ok(with_cache_hint(json!({
            "resources": [{ "uri": "fault://greeting", "name": "greeting", "mimeType": "text/plain" }],
        }))),
        "resources/templates/list" => Ok(with_cache_hint(json!({
            "resourceTemplates": [{ "uriTemplate": "fault://item/{number}", "name": "item" }],
        }))),
        "resources/read" => read(server, message),
        "prompts/list" => Ok(with_cache_hint(json!({
            "prompts": [{ "name": "greet", "arguments": [{ "name": "who", "required": true }] }],
        }))),
        "prompts/get" => prompt(message),
        _ => Err(method_not_found(message)),
    }
}

fn read(server: &dyn RequestServer, message: &ClientMessage) -> Result<Value, ErrorReply> {
    let uri = message.params["uri"].as_str().unwrap_or_default();
    if uri != "fault://greeting" && !uri.starts_with("fault://item/") {
        let code = if server.is_stateless() { -32602 } else { -32002 };
        return Err(ErrorReply::new(code, format!("Resource not found: {uri}")));
    }
    Ok(with_cache_hint(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": "hello" }] })))
}

fn prompt(message: &ClientMessage) -> Result<Value, ErrorReply> {
    if message.params["name"] != "greet" {
        return Err(ErrorReply::new(-32602, "Unknown prompt"));
    }
    let text = format!("Greet {}.", message.argument("who").as_str().unwrap_or("everybody"));
    Ok(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] }))
}

/// Marks a result as cacheable for a minute.
pub fn with_cache_hint(mut body: Value) -> Value {
    body["ttlMs"] = json!(60_000);
    body["cacheScope"] = json!("private");
    body
}

/// Adapts a result to the era of the connection.
pub fn adapt_result(server: &StdioFaultServer, body: Value) -> Value {
    match *lock_ignoring_poison(&server.conversation) {
        EraState::Undecided => body,
        conversation => adapt_to_era(body, conversation == EraState::Stateless),
    }
}

/// Adapts a result to its era: adds `resultType`, or removes the caching fields.
pub fn adapt_to_era(mut body: Value, stateless: bool) -> Value {
    if let Some(fields) = body.as_object_mut() {
        if stateless {
            fields.entry("resultType").or_insert_with(|| json!("complete"));
        } else {
            fields.remove("ttlMs");
            fields.remove("cacheScope");
        }
    }
    body
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true }, "resources": { "listChanged": true }, "prompts": {} })
}

fn server_info() -> Value {
    json!({ "name": "faultd", "version": env!("CARGO_PKG_VERSION") })
}

/// Formats an id for the ledger: strings without quotes.
pub fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
