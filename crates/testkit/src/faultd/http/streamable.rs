//! Streamable HTTP without faults: stateless requests, sessions with their streams, and request validation.

use serde_json::json;

use super::exchange::FaultExchange;
use super::server::ServedEras;
use super::{HttpFault, RequestStage, listen, resume};
use crate::faultd::frame::{self, ClientMessage, ErrorReply};
use crate::faultd::healthy::{self, adapt_to_era, check_meta, discover_result, execute, initialize_result, nonce};
use crate::faultd::options::{HANDSHAKE, MODERN};
use crate::faultd::server::lock_ignoring_poison;

/// A rejected request: the HTTP status and the error.
type HttpRejection = (u16, ErrorReply);

pub fn serve(exchange: &FaultExchange<'_>) {
    let session = exchange.request.header("mcp-session-id").unwrap_or("-");
    let record = |entry: String| exchange.server.options.record(&entry);
    match exchange.request.method.as_str() {
        _ if !matches!(exchange.request.path(), "/mcp" | "/moved") => reply_not_found(exchange),
        "POST" => {
            let method = exchange.message.method.as_str();
            record(format!("post {} {session}", if method.is_empty() { "reply" } else { method }));
            post(exchange);
        }
        "GET" => {
            record(format!("get {} {session}", exchange.request.header("last-event-id").unwrap_or("-")));
            open_stream(exchange);
        }
        "DELETE" => {
            record(format!("delete {session}"));
            end_session(exchange);
        }
        _ => exchange.reply(405, &[("Allow", "GET, POST, DELETE")], ""),
    }
}

/// Replies with a web server's 404 page.
pub fn reply_not_found(exchange: &FaultExchange<'_>) {
    let page = "<!DOCTYPE html><title>404</title><p>Cannot find this page.";
    exchange.reply(404, &[("Content-Type", "text/html; charset=utf-8")], page);
}

fn post(exchange: &FaultExchange<'_>) {
    let (server, message) = (exchange.server, &exchange.message);
    if matches!(server.fault, HttpFault::Intercept(act) if act(exchange)) {
        return;
    }
    let authorized = exchange.request.header("authorization").is_some();
    if let Some(act) = server.due_action(message, RequestStage::Refused, authorized) {
        server.options.record(&format!("refused {} {}", message.method, nonce(message)));
        return act(exchange, "");
    }
    if let Err((status, refusal)) = validate(exchange) {
        return exchange.json(status, frame::error(&message.id(), &refusal));
    }
    healthy::record(exchange, message);
    if let Some(act) = server.due_action(message, RequestStage::Arrived, authorized) {
        return act(exchange, "");
    }
    if message.is_request() { answer(exchange) } else { accept(exchange) }
}

/// Accepts a notification, or the reply to a server request.
fn accept(exchange: &FaultExchange<'_>) {
    let message = &exchange.message;
    if exchange.stateless {
        exchange.server.options.record(&format!("violation {} in the stateless era", message.method));
    }
    match message.method.as_str() {
        "notifications/cancelled" => exchange.server.cancel(&message.params["requestId"]),
        "notifications/initialized" => {
            let session = exchange.request.header("mcp-session-id").unwrap_or_default();
            if let Some(session) = lock_ignoring_poison(&exchange.server.sessions).get_mut(session) {
                session.open = true;
            }
        }
        _ => {}
    }
    exchange.reply(202, &[], "");
}

fn answer(exchange: &FaultExchange<'_>) {
    let message = &exchange.message;
    if exchange.stateless && message.is_method("subscriptions/listen") {
        return listen::serve(exchange);
    }
    let Some((status, line)) = healthy_line(exchange) else { return exchange.close() };
    match exchange.server.due_action(message, RequestStage::Answered, false) {
        Some(act) => act(exchange, &line),
        None => {
            // Record first: the next request may arrive before `deliver` returns.
            exchange.server.record_delivery(message);
            exchange.deliver(status, &line);
        }
    }
}

/// Returns the response with its status; `None` if the request was cancelled meanwhile.
fn healthy_line(exchange: &FaultExchange<'_>) -> Option<(u16, String)> {
    let message = &exchange.message;
    let outcome = match message.method.as_str() {
        "server/discover" => Ok(discover_result(&[MODERN])),
        "initialize" => Ok(initialize_result(exchange.server.options.era, message)),
        "ping" if !exchange.stateless => Ok(json!({})),
        _ => execute(exchange, message)?,
    };
    Some(match outcome {
        Ok(body) => (200, frame::result(&message.id(), &adapt_to_era(body, exchange.stateless))),
        Err(refusal) => (status_of(exchange, &refusal), frame::error(&message.id(), &refusal)),
    })
}

/// Returns 404 for an unknown method in the stateless era (2026-07-28, basic/transports).
fn status_of(exchange: &FaultExchange<'_>, refusal: &ErrorReply) -> u16 {
    if exchange.stateless && refusal.code == -32601 { 404 } else { 200 }
}

fn validate(exchange: &FaultExchange<'_>) -> Result<(), HttpRejection> {
    let request = exchange.request;
    if ClientMessage::parse(&request.body).is_none() {
        exchange.server.options.record("violation not a JSON object");
        return Err((400, ErrorReply::new(-32700, "Parse error")));
    }
    let header = |name| request.header(name).unwrap_or_default();
    if !header("content-type").starts_with("application/json") {
        return Err(record_violation(exchange, 415, -32000, "Content-Type is not application/json"));
    }
    let accept = header("accept");
    if !accept.contains("application/json") || !accept.contains("text/event-stream") {
        return Err(record_violation(exchange, 406, -32000, "Accept lacks one of the two types"));
    }
    match (exchange.stateless, exchange.server.speaks()) {
        (true, ServedEras::Handshake) => Err((400, ErrorReply::new(-32000, "Bad Request: Server not initialized"))),
        (true, _) => admit_stateless(exchange),
        (false, ServedEras::Stateless) => {
            let asked = json!(request.header("mcp-protocol-version").unwrap_or(HANDSHAKE[0]));
            Err((400, healthy::unsupported_version(&[MODERN], &asked)))
        }
        (false, _) => admit_handshake(exchange),
    }
}

/// Checks that the headers match the body (2026-07-28, basic/transports).
fn admit_stateless(exchange: &FaultExchange<'_>) -> Result<(), HttpRejection> {
    let (request, message) = (exchange.request, &exchange.message);
    if message.is_request() {
        check_meta(message).map_err(|refusal| (400, refusal))?;
    }
    let name = match message.method.as_str() {
        "tools/call" | "prompts/get" => message.params["name"].as_str(),
        "resources/read" => message.params["uri"].as_str(),
        _ => None,
    };
    let expected = [("mcp-protocol-version", Some(MODERN)), ("mcp-method", Some(message.method.as_str()))];
    for (header, value) in expected.into_iter().chain([("mcp-name", name)]) {
        if request.header(header) != value {
            return Err(record_violation(exchange, 400, -32020, &format!("{header} is not what the body says")));
        }
    }
    if request.header("mcp-session-id").is_some() {
        exchange.server.options.record("violation a session in the stateless era");
    }
    Ok(())
}

fn admit_handshake(exchange: &FaultExchange<'_>) -> Result<(), HttpRejection> {
    let (server, message) = (exchange.server, &exchange.message);
    if message.is_method("initialize") {
        let session = server.begin_session(healthy::negotiated_revision(server.options.era, message));
        if !server.options.bare {
            exchange.add_header("Mcp-Session-Id", &session);
        }
        return Ok(());
    }
    if server.options.bare {
        return Ok(());
    }
    let (revision, open) = find_session(exchange)?;
    if message.is_request() && !message.is_method("ping") && !open {
        server.options.record(&format!("violation {} before notifications/initialized", message.method));
    }
    // The header is required from 2025-06-18 on.
    let named = exchange.request.header("mcp-protocol-version");
    if named.map_or(revision >= "2025-06-18", |named| named != revision) {
        return Err(record_violation(exchange, 400, -32000, "MCP-Protocol-Version is not what was agreed"));
    }
    Ok(())
}

/// Returns the revision and state of the request's session.
fn find_session(exchange: &FaultExchange<'_>) -> Result<(&'static str, bool), HttpRejection> {
    let Some(id) = exchange.request.header("mcp-session-id") else {
        if exchange.server.is_open() {
            exchange.server.options.record("violation no session where there is one");
        }
        return Err((400, ErrorReply::new(-32000, "Bad Request: Mcp-Session-Id header is required")));
    };
    let sessions = lock_ignoring_poison(&exchange.server.sessions);
    let session = sessions.get(id).ok_or_else(|| (404, ErrorReply::new(-32001, "Session not found")))?;
    Ok((session.revision, session.open))
}

fn record_violation(exchange: &FaultExchange<'_>, status: u16, code: i64, what: &str) -> HttpRejection {
    exchange.server.options.record(&format!("violation {what}"));
    (status, ErrorReply::new(code, what))
}

fn open_stream(exchange: &FaultExchange<'_>) {
    if exchange.server.options.bare {
        return exchange.reply(405, &[("Allow", "POST")], "");
    }
    if let Err((status, refusal)) = find_session(exchange) {
        return exchange.json(status, frame::error(&json!(null), &refusal));
    }
    match exchange.request.header("last-event-id") {
        Some(last) => resume::serve(exchange, last),
        None => listen::serve_stream(exchange),
    }
}

fn end_session(exchange: &FaultExchange<'_>) {
    let id = exchange.request.header("mcp-session-id").unwrap_or_default();
    let status = match lock_ignoring_poison(&exchange.server.sessions).remove(id) {
        _ if exchange.server.options.bare => 405,
        Some(_) => 204,
        None => 404,
    };
    exchange.reply(status, &[], "");
}
