//! Server-initiated streams: `subscriptions/listen`, and the GET of the handshake era.

use std::time::Duration;

use serde_json::{Value, json};

use super::HttpFault;
use super::exchange::FaultExchange;
use crate::faultd::frame;
use crate::faultd::healthy::{self, id_text};
use crate::faultd::server::lock_ignoring_poison;

/// Polling interval for notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub fn find(name: &str) -> Option<HttpFault> {
    Some(HttpFault::Listen(match name {
        "H34" => |exchange| {
            begin(exchange, &requested_notifications(exchange));
            exchange.close();
        },
        "H34-news" => |exchange| {
            begin(exchange, &requested_notifications(exchange));
            exchange.disconnects_within(exchange.server.options.delay(5000));
            exchange.event(&announcement(exchange, "notifications/tools/list_changed"));
            exchange.close();
        },
        "H35-silent" => |exchange| {
            exchange.begin_events();
            exchange.wait_for_disconnect();
        },
        "H35-early" => |exchange| {
            exchange.event(&announcement(exchange, "notifications/tools/list_changed"));
            exchange.event(&announcement(exchange, "notifications/resources/list_changed"));
            let told = announcement_count(exchange);
            begin(exchange, &requested_notifications(exchange));
            send_announcements(exchange, told);
        },
        "H35-smaller" => |exchange| {
            begin(exchange, &json!({}));
            exchange.wait_for_disconnect();
        },
        "H36-result" => |exchange| end_with(exchange, &[result(exchange)]),
        "H36-cancelled" => |exchange| end_with(exchange, &[cancelled_notification(exchange)]),
        "H36-both" => |exchange| end_with(exchange, &[cancelled_notification(exchange), result(exchange)]),
        "H36-closed" => |exchange| end_with(exchange, &[]),
        _ => return None,
    }))
}

/// Serves `subscriptions/listen`.
pub fn serve(exchange: &FaultExchange<'_>) {
    exchange.server.options.record(&format!("listen {}", id_text(&exchange.message.id())));
    if let HttpFault::Listen(act) = exchange.server.fault {
        return act(exchange);
    }
    let told = announcement_count(exchange);
    begin(exchange, &requested_notifications(exchange));
    send_announcements(exchange, told);
}

/// Serves a GET of the handshake era.
pub fn serve_stream(exchange: &FaultExchange<'_>) {
    if let HttpFault::Listen(act) = exchange.server.fault {
        return act(exchange);
    }
    let told = announcement_count(exchange);
    exchange.begin_events();
    send_announcements(exchange, told);
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
fn announcement_count(exchange: &FaultExchange<'_>) -> usize {
    lock_ignoring_poison(&exchange.server.news).len()
}

/// Sends all announcements after the first `told`, until the client disconnects.
fn send_announcements(exchange: &FaultExchange<'_>, mut told: usize) {
    while !exchange.disconnects_within(POLL_INTERVAL) {
        let fresh = lock_ignoring_poison(&exchange.server.news)[told..].to_vec();
        told += fresh.len();
        for method in fresh {
            exchange.event(&announcement(exchange, method));
        }
    }
}

fn announcement(exchange: &FaultExchange<'_>, method: &str) -> String {
    let params = if exchange.stateless { json!({ "_meta": subscription(exchange) }) } else { json!({}) };
    frame::notification(method, &params)
}

/// Subscribes for a second, sends these final lines, and ends the stream.
fn end_with(exchange: &FaultExchange<'_>, lines: &[String]) {
    begin(exchange, &requested_notifications(exchange));
    exchange.disconnects_within(exchange.server.options.delay(1000));
    for line in lines {
        exchange.event(line);
    }
    if lines.is_empty() { exchange.close() } else { exchange.end_events() }
}

fn result(exchange: &FaultExchange<'_>) -> String {
    let body = json!({ "_meta": subscription(exchange) });
    frame::result(&exchange.message.id(), &healthy::adapt_to_era(body, true))
}

fn cancelled_notification(exchange: &FaultExchange<'_>) -> String {
    let params = json!({ "requestId": exchange.message.id(), "reason": "the server is leaving" });
    frame::notification("notifications/cancelled", &params)
}

fn requested_notifications(exchange: &FaultExchange<'_>) -> Value {
    exchange.message.params["notifications"].clone()
}

fn subscription(exchange: &FaultExchange<'_>) -> Value {
    json!({ "io.modelcontextprotocol/subscriptionId": exchange.message.id() })
}
