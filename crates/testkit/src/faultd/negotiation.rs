//! Faults of the opening: servers that misreport their protocol.

use std::process::exit;
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use super::frame::{self, ClientMessage, ErrorReply};
use super::healthy::{discover_result, initialize_result, method_not_found, unsupported_version};
use super::options::{HANDSHAKE, MODERN};
use super::server::{EraState, StdioFaultServer, lock_ignoring_poison};
use super::{MessageInterceptor, StdioFault};

/// Revisions that no client supports.
const FUTURE_REVISIONS: [&str; 1] = ["2031-01-01"];

pub fn find(name: &str) -> Option<StdioFault> {
    Some(match name {
        "S10" => intercept_handshake_only(|_, message| message.is_method("server/discover")),
        "S10-mute" => intercept_dual_era(|_, _| true),
        "S11-valid" => intercept_dual_era(late_discovery),
        "S11-both" => intercept_dual_era(late_discovery_and_handshake),
        "S11-error" => intercept_handshake_only(late_refusal),
        "S11-slow" => StdioFault::at_start(|server, _| thread::sleep(server.options.delay(40_000))),
        "dies-on-probe" => intercept_handshake_only(die_on_probe),
        "success-not-discover" => intercept_handshake_only(empty_success),
        "32022-legacy" => intercept_handshake_only(|server, message| refuse_probe(server, message, &HANDSHAKE)),
        "32022-modern" => intercept_dual_era(|server, message| {
            message.is_method("server/discover") && server.first_time() && refuse_probe(server, message, &[MODERN])
        }),
        "32022-disjoint" => intercept_dual_era(refuse_everything),
        "discover-no-overlap" => intercept_handshake_only(discover_the_future),
        _ => return None,
    })
}

/// Otherwise supports both eras, unless `--era` says otherwise.
fn intercept_dual_era(act: MessageInterceptor) -> StdioFault {
    StdioFault::Intercept { act, handshake_only: false }
}

/// Otherwise supports only the handshake.
fn intercept_handshake_only(act: MessageInterceptor) -> StdioFault {
    StdioFault::Intercept { act, handshake_only: true }
}

/// Answers the probe only after `initialize` arrives, and stays stateless (measured with Python `mcp` 2.3.0).
fn late_discovery(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    if store_probe(server, message) {
        return true;
    }
    let Some(probe) = take_stored_probe(server, message) else { return false };
    *lock_ignoring_poison(&server.conversation) = EraState::Stateless;
    server.out.line(frame::result(&probe, &discover_result(&[MODERN])));
    let refusal = ErrorReply::new(-32600, "this connection serves the stateless protocol era");
    server.out.line(frame::error(&message.id(), &refusal));
    true
}

/// Answers the probe only after `initialize` arrives, then accepts `initialize` and serves the handshake era.
fn late_discovery_and_handshake(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    if store_probe(server, message) {
        return true;
    }
    let Some(probe) = take_stored_probe(server, message) else { return false };
    server.out.line(frame::result(&probe, &discover_result(&[MODERN])));
    false
}

/// Rejects the probe only after `initialize` is answered.
fn late_refusal(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    if store_probe(server, message) {
        return true;
    }
    let Some(probe) = take_stored_probe(server, message) else { return false };
    *lock_ignoring_poison(&server.conversation) = EraState::Opening;
    server.out.line(frame::result(&message.id(), &initialize_result(server.options.era, message)));
    server.out.line(frame::error(&probe, &ErrorReply::new(-32601, "Method not found: server/discover")));
    true
}

fn store_probe(server: &StdioFaultServer, message: &ClientMessage) -> bool {
    let probe = message.is_method("server/discover");
    if probe {
        lock_ignoring_poison(&server.late).insert("probe".to_owned(), message.id().to_string());
    }
    probe
}

/// Returns the probe's id, once `initialize` has arrived.
fn take_stored_probe(server: &StdioFaultServer, message: &ClientMessage) -> Option<Value> {
    if !message.is_method("initialize") {
        return None;
    }
    let text = lock_ignoring_poison(&server.late).remove("probe")?;
    serde_json::from_str(&text).ok()
}

/// Same as older rmcp servers for any request before `initialize`.
fn die_on_probe(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    if *lock_ignoring_poison(&server.conversation) == EraState::Undecided && !message.is_method("initialize") {
        eprintln!("faultd: expected initialize, got {}", message.method);
        exit(1);
    }
    false
}

/// Same as the conformance suite's `initialize` mock.
fn empty_success(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    let probe = message.is_method("server/discover");
    if probe {
        server.out.line(frame::result(&message.id(), &json!({})));
    }
    probe
}

fn refuse_probe(server: &Arc<StdioFaultServer>, message: &ClientMessage, supported: &[&str]) -> bool {
    message.is_method("server/discover") && refuse(server, message, supported)
}

fn refuse_everything(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    message.is_request() && refuse(server, message, &FUTURE_REVISIONS)
}

fn refuse(server: &StdioFaultServer, message: &ClientMessage, supported: &[&str]) -> bool {
    let requested = message.meta("io.modelcontextprotocol/protocolVersion").cloned().unwrap_or_default();
    server.out.line(frame::error(&message.id(), &unsupported_version(supported, &requested)));
    true
}

/// Returns a valid result without a common revision; handshake clients are served.
fn discover_the_future(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    if message.is_method("server/discover") {
        server.out.line(frame::result(&message.id(), &discover_result(&FUTURE_REVISIONS)));
        return true;
    }
    if message.is_request() && message.meta("io.modelcontextprotocol/protocolVersion").is_some() {
        server.out.line(frame::error(&message.id(), &method_not_found(message)));
        return true;
    }
    false
}
