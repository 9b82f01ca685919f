//! Faults of change: information becomes outdated.

use serde_json::{Value, json};

use super::HttpFault;
use super::exchange::FaultExchange;
use super::server::ServedEras;
use super::status::reply_error;
use crate::faultd::frame::{self, ErrorReply};
use crate::faultd::healthy::{adapt_to_era, with_cache_hint};
use crate::faultd::options::ServerEra;
use crate::faultd::server::lock_ignoring_poison;
use crate::faultd::tools;

const CHANGED: &str = "notifications/tools/list_changed";

pub fn find(name: &str) -> Option<HttpFault> {
    Some(HttpFault::Intercept(match name {
        "H37" => switch_era,
        "H39" => |exchange| change_after_the_list(exchange),
        "H39-race" => |exchange| change_under_the_list(exchange),
        "H40" => |exchange| lose_cursor(exchange) && exchange.server.first_time() && invalid_cursor(exchange),
        "H40-always" => |exchange| lose_cursor(exchange) && invalid_cursor(exchange),
        _ => return None,
    }))
}

/// Switches to the other era at the first request after the opening.
fn switch_era(exchange: &FaultExchange<'_>) -> bool {
    let server = exchange.server;
    if server.is_open() && exchange.message.is_request() && server.first_time() {
        let other = if server.options.era == ServerEra::Modern { ServedEras::Handshake } else { ServedEras::Stateless };
        *lock_ignoring_poison(&server.speaks) = other;
        lock_ignoring_poison(&server.sessions).clear();
    }
    false
}

/// Sends a list with a lifetime of a minute, and changes it at once. A client that caches the list calls a removed
/// tool.
fn change_after_the_list(exchange: &FaultExchange<'_>) -> bool {
    let first = exchange.message.is_method("tools/list") && exchange.server.first_time();
    if first {
        send_list(exchange, &["before"]);
        exchange.server.announce(CHANGED);
    }
    first || after_the_change(exchange)
}

/// The change notification overtakes the outdated list.
fn change_under_the_list(exchange: &FaultExchange<'_>) -> bool {
    let first = exchange.message.is_method("tools/list") && exchange.server.first_time();
    if first {
        exchange.server.announce(CHANGED);
        exchange.disconnects_within(exchange.server.options.delay(4000));
        send_list(exchange, &["before"]);
    }
    first || after_the_change(exchange)
}

/// Records a call of the removed tool: a client that processed the notification must not make it.
fn after_the_change(exchange: &FaultExchange<'_>) -> bool {
    let message = &exchange.message;
    if message.is_method("tools/list") {
        send_list(exchange, &["after"]);
    } else if message.is_method("tools/call") && message.params["name"] == "before" {
        exchange.server.options.record("stale before");
        reply_error(exchange, 200, &ErrorReply::new(-32602, "Unknown tool: before"));
    } else {
        return false;
    }
    true
}

fn send_list(exchange: &FaultExchange<'_>, names: &[&str]) {
    let mut list = tools::definitions();
    list.extend(names.iter().map(|name| tools::tool(name, "Here today.", json!({}))));
    let body = adapt_to_era(with_cache_hint(json!({ "tools": list })), exchange.stateless);
    exchange.deliver(200, &frame::result(&exchange.message.id(), &body));
}

fn lose_cursor(exchange: &FaultExchange<'_>) -> bool {
    exchange.message.is_method("tools/list") && exchange.message.params.get("cursor").is_some_and(Value::is_string)
}

fn invalid_cursor(exchange: &FaultExchange<'_>) -> bool {
    exchange.server.options.record("cursor lost");
    reply_error(exchange, 200, &ErrorReply::new(-32602, "Invalid cursor"));
    true
}
