//! Faults of the opening: servers that misreport their protocol.

use serde_json::{Value, json};

use super::exchange::FaultExchange;
use super::status::reply_error;
use super::{HttpFault, HttpFaultAction};
use crate::faultd::frame;
use crate::faultd::healthy::{discover_result, method_not_found, unsupported_version};
use crate::faultd::options::HANDSHAKE;

/// Revisions that no client supports.
const FUTURE_REVISIONS: [&str; 1] = ["2031-01-01"];

pub fn find(name: &str) -> Option<HttpFault> {
    Some(HttpFault::Intercept(match name {
        // Same as the conformance suite's `initialize` mock.
        "success-not-discover" => |exchange| on_probe(exchange, |exchange, _| succeed(exchange, &json!({}))),
        // Same as sessionless servers of the TypeScript SDK 1.x for a known revision.
        "probe-200" => |exchange| on_probe(exchange, as_events),
        "probe-page" => |exchange| {
            on_probe(exchange, |exchange, _| {
                exchange.reply(400, &[("Content-Type", "text/html")], "<h1>Bad Request</h1>")
            })
        },
        "probe-empty" => |exchange| on_probe(exchange, |exchange, _| exchange.reply(405, &[("Allow", "GET")], "")),
        "32022-legacy" => |exchange| on_probe(exchange, |exchange, _| other_revisions(exchange, &HANDSHAKE)),
        "32022-disjoint" => |exchange| {
            other_revisions(exchange, &FUTURE_REVISIONS);
            true
        },
        "discover-no-overlap" => {
            |exchange| on_probe(exchange, |exchange, _| succeed(exchange, &discover_result(&FUTURE_REVISIONS)))
        }
        _ => return None,
    }))
}

/// Applies the action to `server/discover` and ignores all other messages.
fn on_probe(exchange: &FaultExchange<'_>, act: HttpFaultAction) -> bool {
    let probe = exchange.message.is_method("server/discover");
    if probe {
        exchange.server.options.record("opened server/discover");
        act(exchange, "");
    }
    probe
}

fn succeed(exchange: &FaultExchange<'_>, body: &Value) {
    exchange.deliver(200, &frame::result(&exchange.message.id(), body));
}

fn as_events(exchange: &FaultExchange<'_>, _: &str) {
    exchange.event(&frame::error(&exchange.message.id(), &method_not_found(&exchange.message)));
    exchange.end_events();
}

fn other_revisions(exchange: &FaultExchange<'_>, supported: &[&str]) {
    let requested = exchange.message.meta("io.modelcontextprotocol/protocolVersion").cloned().unwrap_or_default();
    reply_error(exchange, 400, &unsupported_version(supported, &requested));
}
