//! Server-initiated streams: `subscriptions/listen`, and the GET of the handshake era.

use std::time::Duration;

use serde_json::{Value, json};

use super::HttpFault;
use super::exchange::FaultExchange;
use crate::faultd::frame;
use crate::faultd::healthy::{self, plain};
use crate::faultd::server::locked;

/// Polling interval for notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub fn find(name: &str) -> Option<HttpFault> {
    Some(HttpFault::Listen(match name {
        "H34" => |exchange| {
            begin(exchange, &asked(exchange));
            exchange.cut();
        },
        "H34-news" => |exchange| {
            begin(exchange, &asked(exchange));
            exchange.gone_within(exchange.server.options.delay(5000));
            exchange.event(&news(exchange, "notifications/tools/list_changed"));
            exchange.cut();
        },
        "H35-silent" => |exchange| {
            exchange.begin_events();
            exchange.hang();
        },
        "H35-early" => |exchange| {
            exchange.event(&news(exchange, "notifications/tools/list_changed"));
            exchange.event(&news(exchange, "notifications/resources/list_changed"));
            let told = announced(exchange);
            begin(exchange, &asked(exchange));
            tell_news(exchange, told);
        },
        "H35-smaller" => |exchange| {
            begin(exchange, &json!({}));
            exchange.hang();
        },
        "H36-result" => |exchange| end_with(exchange, &[result(exchange)]),
        "H36-cancelled" => |exchange| end_with(exchange, &[cancelled(exchange)]),
        "H36-both" => |exchange| end_with(exchange, &[cancelled(exchange), result(exchange)]),
        "H36-closed" => |exchange| end_with(exchange, &[]),
        _ => return None,
    }))
}

/// Serves `subscriptions/listen`.
pub fn serve(exchange: &FaultExchange<'_>) {
    exchange.server.options.record(&format!("listen {}", plain(&exchange.message.id())));
    if let HttpFault::Listen(act) = exchange.server.fault {
        return act(exchange);
    }
    let told = announced(exchange);
    begin(exchange, &asked(exchange));
    tell_news(exchange, told);
}

/// Serves a GET of the handshake era.
pub fn serve_stream(exchange: &FaultExchange<'_>) {
    if let HttpFault::Listen(act) = exchange.server.fault {
        return act(exchange);
    }
    let told = announced(exchange);
    exchange.begin_events();
    tell_news(exchange, told);
}

/// Acknowledges a subscription to `honoured`; a GET is not acknowledged.
fn begin(exchange: &FaultExchange<'_>, honoured: &Value) {
    exchange.begin_events();
    if exchange.stateless {
        let params = json!({ "notifications": honoured, "_meta": subscription(exchange) });
        exchange.event(&frame::notification("notifications/subscriptions/acknowledged", &params));
    }
}

/// Returns the number of announcements so far. Must be called before the client sees that its stream is open, or it may
/// miss some.
fn announced(exchange: &FaultExchange<'_>) -> usize {
    locked(&exchange.server.news).len()
}

/// Sends all announcements after the first `told`, until the client disconnects.
fn tell_news(exchange: &FaultExchange<'_>, mut told: usize) {
    while !exchange.gone_within(POLL_INTERVAL) {
        let fresh = locked(&exchange.server.news)[told..].to_vec();
        told += fresh.len();
        for method in fresh {
            exchange.event(&news(exchange, method));
        }
    }
}

fn news(exchange: &FaultExchange<'_>, method: &str) -> String {
    let params = if exchange.stateless { json!({ "_meta": subscription(exchange) }) } else { json!({}) };
    frame::notification(method, &params)
}

/// Subscribes for a second, sends these final lines, and ends the stream.
fn end_with(exchange: &FaultExchange<'_>, lines: &[String]) {
    begin(exchange, &asked(exchange));
    exchange.gone_within(exchange.server.options.delay(1000));
    for line in lines {
        exchange.event(line);
    }
    if lines.is_empty() { exchange.cut() } else { exchange.end_events() }
}

fn result(exchange: &FaultExchange<'_>) -> String {
    let body = json!({ "_meta": subscription(exchange) });
    frame::result(&exchange.message.id(), &healthy::dressed(body, true))
}

fn cancelled(exchange: &FaultExchange<'_>) -> String {
    let params = json!({ "requestId": exchange.message.id(), "reason": "the server is leaving" });
    frame::notification("notifications/cancelled", &params)
}

fn asked(exchange: &FaultExchange<'_>) -> Value {
    exchange.message.params["notifications"].clone()
}

fn subscription(exchange: &FaultExchange<'_>) -> Value {
    json!({ "io.modelcontextprotocol/subscriptionId": exchange.message.id() })
}
