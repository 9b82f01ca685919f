//! Faults of the HTTP response: type, length, headers, speed, and the request it belongs to.

use std::thread;

use super::HttpFault;
use super::exchange::FaultExchange;
use crate::faultd::frame;

const LOGIN: &str = "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action=\"/login\">\
<input name=\"user\"><input name=\"password\" type=\"password\"></form></body></html>";

pub fn find(name: &str) -> Option<HttpFault> {
    Some(match name {
        "H12-type" => {
            HttpFault::modify_response(|exchange, line| exchange.reply(200, &[("Content-Type", "text/plain")], line))
        }
        "H12-untyped" => HttpFault::modify_response(|exchange, line| exchange.reply(200, &[], line)),
        "H12-charset" => HttpFault::modify_response(|exchange, line| {
            exchange.reply(200, &[("Content-Type", "application/json;charset=utf-8")], line);
        }),
        "H12-login" => {
            HttpFault::modify_response(|exchange, _| exchange.reply(200, &[("Content-Type", "text/html")], LOGIN))
        }
        "H13-202" => HttpFault::modify_response(|exchange, _| exchange.reply(202, &[], "")),
        "H13-204" => HttpFault::modify_response(|exchange, _| exchange.reply(204, &[], "")),
        "H13-empty" => HttpFault::modify_response(|exchange, _| exchange.json(200, "")),
        "H14-long" => HttpFault::modify_response(|exchange, line| send_with_length(exchange, line, line.len() + 100)),
        "H14-short" => HttpFault::modify_response(|exchange, line| send_with_length(exchange, line, line.len() - 10)),
        "H14-crlf" => HttpFault::modify_response(|exchange, line| {
            chunks(exchange, &format!("{:x}\r\n{line}XX0\r\n\r\n", line.len()))
        }),
        "H14-overflow" => {
            HttpFault::modify_response(|exchange, line| chunks(exchange, &format!("fffffffffffffffff\r\n{line}\r\n")))
        }
        "H15" => HttpFault::modify_response(|exchange, line| exchange.json(200, format!("{line} and then some"))),
        "H16-id" => HttpFault::modify_response(|exchange, line| {
            exchange.json(200, frame::with_id(line, &exchange.message.id(), Some("987654321")));
        }),
        "H16-array" => HttpFault::modify_response(|exchange, line| exchange.json(200, format!("[{line}]"))),
        "H16-notification" => {
            HttpFault::modify_response(|exchange, _| exchange.json(200, frame::harmless_notification()))
        }
        "H27-headers" => {
            HttpFault::modify_response(|exchange, line| send_slowly(exchange, &healthy_response(exchange, line), 0))
        }
        "H27-body" => HttpFault::modify_response(send_body_slowly),
        "H29-large" => HttpFault::modify_response(|exchange, line| with_headers(exchange, line, &large_header())),
        "H29-many" => HttpFault::modify_response(|exchange, line| with_headers(exchange, line, &many_headers())),
        "H29-lengths" => {
            HttpFault::modify_response(|exchange, line| with_headers(exchange, line, "Content-Length: 3\r\n"))
        }
        "H29-both" => HttpFault::modify_response(length_and_chunks),
        "H42" => HttpFault::modify_response(|exchange, _| exchange.wait_for_disconnect()),
        "H42-stream" => HttpFault::modify_response(|exchange, _| {
            exchange.begin_events();
            exchange.wait_for_disconnect();
        }),
        "endless-json" => HttpFault::modify_response(send_endless_body),
        _ => return None,
    })
}

/// Sends a wrong length, then closes.
fn send_with_length(exchange: &FaultExchange<'_>, line: &str, length: usize) {
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Content-Length", &length.to_string())]);
    exchange.send_bytes(format!("{head}\r\n{line}").as_bytes());
    exchange.close();
}

/// Sends a malformed chunked body, then closes.
fn chunks(exchange: &FaultExchange<'_>, framed: &str) {
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]);
    exchange.send_bytes(format!("{head}\r\n{framed}").as_bytes());
    exchange.close();
}

/// Returns the healthy response as one text.
fn healthy_response(exchange: &FaultExchange<'_>, line: &str) -> String {
    let length = line.len().to_string();
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Content-Length", &length)]);
    format!("{head}\r\n{line}")
}

fn send_body_slowly(exchange: &FaultExchange<'_>, line: &str) {
    let text = healthy_response(exchange, line);
    send_slowly(exchange, &text, text.len() - line.len());
}

/// Sends the first `at_once` bytes, then one byte per second.
fn send_slowly(exchange: &FaultExchange<'_>, text: &str, at_once: usize) {
    let (first, rest) = text.as_bytes().split_at(at_once);
    exchange.send_bytes(first);
    for byte in rest {
        thread::sleep(exchange.server.options.delay(1000));
        if !exchange.send_bytes(&[*byte]) {
            return;
        }
    }
}

fn with_headers(exchange: &FaultExchange<'_>, line: &str, headers: &str) {
    let text = healthy_response(exchange, line);
    let (head, body) = text.split_at(text.len() - line.len() - 2);
    exchange.send_bytes(format!("{head}{headers}{body}").as_bytes());
    exchange.close();
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
    exchange.send_bytes(format!("{head}\r\n{:x}\r\n{line}\r\n0\r\n\r\n", line.len()).as_bytes());
    exchange.close();
}

/// Sends a response without end, until a write fails.
fn send_endless_body(exchange: &FaultExchange<'_>, line: &str) {
    let (start, _) = line.split_at(frame::payload_start(line));
    let head = exchange.head(200, &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]);
    let first = format!(r#"{start}"pad":""#);
    let filler = "a".repeat(1 << 16);
    let mut open = exchange.send_bytes(format!("{head}\r\n{:x}\r\n{first}\r\n", first.len()).as_bytes());
    let chunk = format!("{:x}\r\n{filler}\r\n", filler.len());
    while open {
        open = exchange.send_bytes(chunk.as_bytes());
    }
}
