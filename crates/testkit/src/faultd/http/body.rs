//! Faults of the HTTP response: type, length, headers, speed, and the request it belongs to.

use std::thread;

use super::HttpFault;
use super::exchange::FaultExchange;
use crate::faultd::frame;

const LOGIN: &str = "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action=\"/login\">\
<input name=\"user\"><input name=\"password\" type=\"password\"></form></body></html>";

pub fn find(name: &str) -> Option<HttpFault> {
    Some(match name {
        "H12-type" => HttpFault::spoil(|exchange, line| exchange.reply(200, &[("Content-Type", "text/plain")], line)),
        "H12-untyped" => HttpFault::spoil(|exchange, line| exchange.reply(200, &[], line)),
        "H12-charset" => HttpFault::spoil(|exchange, line| {
            exchange.reply(200, &[("Content-Type", "application/json;charset=utf-8")], line);
        }),
        "H12-login" => HttpFault::spoil(|exchange, _| exchange.reply(200, &[("Content-Type", "text/html")], LOGIN)),
        "H13-202" => HttpFault::spoil(|exchange, _| exchange.reply(202, &[], "")),
        "H13-204" => HttpFault::spoil(|exchange, _| exchange.reply(204, &[], "")),
        "H13-empty" => HttpFault::spoil(|exchange, _| exchange.json(200, "")),
        "H14-long" => HttpFault::spoil(|exchange, line| of_length(exchange, line, line.len() + 100)),
        "H14-short" => HttpFault::spoil(|exchange, line| of_length(exchange, line, line.len() - 10)),
        "H14-crlf" => {
            HttpFault::spoil(|exchange, line| chunks(exchange, &format!("{:x}\r\n{line}XX0\r\n\r\n", line.len())))
        }
        "H14-overflow" => {
            HttpFault::spoil(|exchange, line| chunks(exchange, &format!("fffffffffffffffff\r\n{line}\r\n")))
        }
        "H15" => HttpFault::spoil(|exchange, line| exchange.json(200, format!("{line} and then some"))),
        "H16-id" => HttpFault::spoil(|exchange, line| {
            exchange.json(200, frame::with_id(line, &exchange.message.id(), Some("987654321")));
        }),
        "H16-array" => HttpFault::spoil(|exchange, line| exchange.json(200, format!("[{line}]"))),
        "H16-notification" => HttpFault::spoil(|exchange, _| exchange.json(200, frame::chatter())),
        "H27-headers" => HttpFault::spoil(|exchange, line| drip(exchange, &whole(exchange, line), 0)),
        "H27-body" => HttpFault::spoil(drip_body),
        "H29-large" => HttpFault::spoil(|exchange, line| with_headers(exchange, line, &large_header())),
        "H29-many" => HttpFault::spoil(|exchange, line| with_headers(exchange, line, &many_headers())),
        "H29-lengths" => HttpFault::spoil(|exchange, line| with_headers(exchange, line, "Content-Length: 3\r\n")),
        "H29-both" => HttpFault::spoil(length_and_chunks),
        "H42" => HttpFault::spoil(|exchange, _| exchange.hang()),
        "H42-stream" => HttpFault::spoil(|exchange, _| {
            exchange.begin_events();
            exchange.hang();
        }),
        "endless-json" => HttpFault::spoil(endless),
        _ => return None,
    })
}

/// Sends a wrong length, then closes.
fn of_length(exchange: &FaultExchange<'_>, line: &str, length: usize) {
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Content-Length", &length.to_string())]);
    exchange.bytes(format!("{head}\r\n{line}").as_bytes());
    exchange.cut();
}

/// Sends a malformed chunked body, then closes.
fn chunks(exchange: &FaultExchange<'_>, framed: &str) {
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]);
    exchange.bytes(format!("{head}\r\n{framed}").as_bytes());
    exchange.cut();
}

/// Returns the healthy response as one text.
fn whole(exchange: &FaultExchange<'_>, line: &str) -> String {
    let length = line.len().to_string();
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Content-Length", &length)]);
    format!("{head}\r\n{line}")
}

fn drip_body(exchange: &FaultExchange<'_>, line: &str) {
    let text = whole(exchange, line);
    drip(exchange, &text, text.len() - line.len());
}

/// Sends the first `at_once` bytes, then one byte per second.
fn drip(exchange: &FaultExchange<'_>, text: &str, at_once: usize) {
    let (first, rest) = text.as_bytes().split_at(at_once);
    exchange.bytes(first);
    for byte in rest {
        thread::sleep(exchange.server.options.delay(1000));
        if !exchange.bytes(&[*byte]) {
            return;
        }
    }
}

fn with_headers(exchange: &FaultExchange<'_>, line: &str, headers: &str) {
    let text = whole(exchange, line);
    let (head, body) = text.split_at(text.len() - line.len() - 2);
    exchange.bytes(format!("{head}{headers}{body}").as_bytes());
    exchange.cut();
}

fn large_header() -> String {
    format!("X-Large: {}\r\n", "l".repeat(64 << 10))
}

fn many_headers() -> String {
    (0..10_000).map(|number| format!("X-Many-{number}: {number}\r\n")).collect()
}

/// Sends both a length and chunks, as in request smuggling (RFC 9112, 6.1).
fn length_and_chunks(exchange: &FaultExchange<'_>, line: &str) {
    let types = [("Content-Type", "application/json"), ("Content-Length", "5"), ("Transfer-Encoding", "chunked")];
    let head = exchange.head(200, &types);
    exchange.bytes(format!("{head}\r\n{:x}\r\n{line}\r\n0\r\n\r\n", line.len()).as_bytes());
    exchange.cut();
}

/// Sends a response without end, until a write fails.
fn endless(exchange: &FaultExchange<'_>, line: &str) {
    let (start, _) = line.split_at(frame::payload(line));
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]);
    let first = format!(r#"{start}"pad":""#);
    let filler = "a".repeat(1 << 16);
    let mut open = exchange.bytes(format!("{head}\r\n{:x}\r\n{first}\r\n", first.len()).as_bytes());
    let chunk = format!("{:x}\r\n{filler}\r\n", filler.len());
    while open {
        open = exchange.bytes(chunk.as_bytes());
    }
}
