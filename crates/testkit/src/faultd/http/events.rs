//! Faults of event streams: truncated, unusually formatted, or with additional events.

use std::fmt::Write as _;

use serde_json::json;

use super::exchange::FaultExchange;
use super::{HttpFault, HttpFaultAction, resume};
use crate::faultd::frame;

pub fn find(name: &str) -> Option<HttpFault> {
    let act: HttpFaultAction = match name {
        "H17-event" => |exchange, line| cut_after(exchange, format!("data: {}", &line[..line.len() / 2]).as_bytes()),
        "H17-character" => |exchange, line| cut_after(exchange, &half_a_character(line)),
        "H17-headers" => |exchange, _| cut_after(exchange, b""),
        "H17-reset" => |exchange, line| {
            exchange.chunk(format!("data: {}", &line[..line.len() / 2]));
            exchange.reset();
        },
        "H18" => |exchange, _| {
            exchange.event(&frame::harmless_notification());
            exchange.end_events();
        },
        "H19-comments" => comments,
        "H19-empty" => empty_events,
        "H19-retry-zero" => |exchange, line| resume::after_retry(exchange, line, "0"),
        "H19-retry-huge" => |exchange, line| resume::after_retry(exchange, line, "1000000000"),
        "H19-retry-word" => |exchange, line| resume::after_retry(exchange, line, "abc"),
        "H19-nul" => |exchange, line| finish(exchange, format!("id: a\0b\ndata: {line}\n\n")),
        "H19-cr" => |exchange, line| finish(exchange, format!("event: message\rid: 1\rdata: {line}\r\r")),
        "H19-crlf" => |exchange, line| finish(exchange, format!("event: message\r\ndata: {line}\r\n\r\n")),
        "H19-mixed" => mixed_endings,
        "H19-bom" => |exchange, line| finish(exchange, format!("\u{feff}data: {line}\n\n")),
        "H19-nospace" => |exchange, line| finish(exchange, format!("event:message\ndata:{line}\n\n")),
        "H19-lines" => many_lines,
        "H21-twice" => |exchange, line| {
            exchange.event(line);
            let second = frame::inject(line, br#""duplicate":true"#);
            finish(exchange, format!("data: {}\n\n", String::from_utf8_lossy(&second)));
        },
        "H21-after" => |exchange, line| {
            exchange.event(line);
            exchange.event(&frame::harmless_notification());
            finish(exchange, "data: {not json\n\nevent: other\ndata: x\n\n".to_owned());
        },
        "H22" => odd_progress,
        "H23" => requests,
        "endless-sse-event" => endless_event,
        _ => return None,
    };
    Some(HttpFault::modify_response(act))
}

/// Sends the rest of the stream and ends it regularly.
fn finish(exchange: &FaultExchange<'_>, text: String) {
    exchange.chunk(text);
    exchange.end_events();
}

fn cut_after(exchange: &FaultExchange<'_>, bytes: &[u8]) {
    exchange.begin_events();
    if !bytes.is_empty() {
        exchange.chunk(bytes);
    }
    exchange.close();
}

/// Returns the response up to the middle of a three-byte character.
pub fn half_a_character(line: &str) -> Vec<u8> {
    let mut bytes = format!("data: {}\"euro\":\"", &line[..frame::payload_start(line)]).into_bytes();
    bytes.extend_from_slice(&"€".as_bytes()[..2]);
    bytes
}

/// Sends ten minutes of comments, then the response.
fn comments(exchange: &FaultExchange<'_>, line: &str) {
    exchange.begin_events();
    for _ in 0..600 {
        if exchange.disconnects_within(exchange.server.options.delay(1000)) || !exchange.chunk(": still here\n\n") {
            return;
        }
    }
    exchange.deliver(200, line);
}

/// Sends `--count` (1e6) events without data, then the response.
fn empty_events(exchange: &FaultExchange<'_>, line: &str) {
    let mut left = exchange.server.options.count.unwrap_or(1_000_000);
    while left > 0 {
        let now = left.min(4096);
        if !exchange.chunk("data:\n\n".repeat(now)) {
            return;
        }
        left -= now;
    }
    finish(exchange, format!("data: {line}\n\n"));
}

/// Uses every line ending, also split between two chunks.
fn mixed_endings(exchange: &FaultExchange<'_>, line: &str) {
    let chatter = frame::harmless_notification();
    exchange.chunk(format!("data: {chatter}\r"));
    exchange.chunk(format!("\n\rdata: {chatter}\n\r\ndata: {chatter}\r\n"));
    finish(exchange, format!("\nevent: message\rdata: {line}\r\n\n"));
}

/// Sends one event of `--count` (10,000) lines, most of them blank; JSON ignores these.
fn many_lines(exchange: &FaultExchange<'_>, line: &str) {
    let mut text = "data: {\n".to_owned();
    for _ in 0..exchange.server.options.count.unwrap_or(10_000) {
        text.push_str("data: \n");
    }
    write!(text, "data: {}\n\n", &line[1..]).ok();
    finish(exchange, text);
}

/// Sends progress for unknown tokens, and progress that decreases.
fn odd_progress(exchange: &FaultExchange<'_>, line: &str) {
    let token = exchange.message.meta("progressToken").cloned();
    let unknown = [(json!("no-such-token"), 1), (json!(-7), 2)];
    let backwards = token.into_iter().flat_map(|token| [(token.clone(), 5), (token.clone(), 3), (token, 4)]);
    for (token, progress) in unknown.into_iter().chain(backwards) {
        let params = json!({ "progressToken": token, "progress": progress });
        exchange.event(&frame::notification("notifications/progress", &params));
    }
    finish(exchange, format!("data: {line}\n\n"));
}

/// Sends server requests, which the stateless era does not allow; one reuses the id of the client's request.
fn requests(exchange: &FaultExchange<'_>, line: &str) {
    for method in ["ping", "roots/list", "sampling/createMessage"] {
        exchange.event(&frame::request("faultd-1", method, &json!({})));
    }
    let id = exchange.message.id();
    exchange.event(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{}}}}"#));
    finish(exchange, format!("data: {line}\n\n"));
}

/// Sends an event over the size limit, until a write fails.
fn endless_event(exchange: &FaultExchange<'_>, line: &str) {
    exchange.chunk(format!("data: {}\"pad\":\"", &line[..frame::payload_start(line)]));
    let filler = "a".repeat(1 << 16);
    while exchange.chunk(&filler) {}
}
