//! Faults of listings, and tools that test byte-exact forwarding.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::frame::{self, ClientMessage};
use super::healthy::{adapt_result, with_cache_hint};
use super::server::{EraState, StdioFaultServer, lock_ignoring_poison};
use super::{MessageInterceptor, StdioFault, tools};

/// Input schema of the tool `odd`, byte for byte as sent.
pub const ODD_SCHEMA: &str = r#"{ "type" : "object",  "zeta":1, "properties" : {"b":{"type":"string"}, "a" :{"type":"integer","minimum":-0.0}},"x-unknown":{"k":[1.50,2E3]}, "$schema":"https://json-schema.org/draft/2020-12/schema","additionalProperties":false }"#;

/// Members of the result of the tool `odd` after `resultType`, byte for byte as sent.
pub const ODD_RESULT: &str = r#""zulu":{"b":1,"a":2},"content":[{"type":"hologram","depth":3,"data":"AAAA"},{"text":"plain \u0041 \/","type":"text","annotations":{"z":1,"audience":["user"]}}],"structuredContent":{"z":12345678901234567890123,"a":1.10,"m":[1e2,-0]},"alpha":null,"_meta":{"vendor/x":"y"}"#;

pub fn find(name: &str) -> Option<StdioFault> {
    let act: MessageInterceptor = match name {
        "bad-tool" => bad_tool,
        "fidelity" => fidelity,
        "cursor-repeat" => repeated_cursor,
        "cursor-empty" => empty_cursor,
        "pages-endless" => endless_pages,
        "env" => environment,
        _ => return None,
    };
    Some(StdioFault::Intercept { act, handshake_only: false })
}

/// Lists malformed tools, each in a different way, between valid ones.
fn bad_tool(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    let mut list = tools::definitions();
    list.insert(1, json!({ "name": 7, "inputSchema": "none" }));
    list.insert(3, json!({ "description": "no name", "inputSchema": { "type": "object" } }));
    list.push(json!("not an object"));
    message.is_method("tools/list") && send(server, message, with_cache_hint(json!({ "tools": list })))
}

fn fidelity(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    let kind = match *lock_ignoring_poison(&server.conversation) {
        EraState::Opening | EraState::Open => "",
        _ => r#""resultType":"complete","#,
    };
    let body = if message.is_method("tools/list") {
        format!(r#""tools":[{{"inputSchema":{ODD_SCHEMA},"name":"odd","x-extra":[true]}}]"#)
    } else if is_call_of(message, "odd") {
        ODD_RESULT.to_owned()
    } else {
        return false;
    };
    server.out.line(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{{kind}{body}}}}}"#, message.id()));
    true
}

fn repeated_cursor(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    message.is_method("tools/list") && page(server, message, 0, Some("same"))
}

/// An empty string is a valid cursor (server/utilities/pagination).
fn empty_cursor(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    if !message.is_method("tools/list") {
        return false;
    }
    match message.params["cursor"].as_str() {
        None => page(server, message, 0, Some("")),
        Some(_) => page(server, message, 1, None),
    }
}

fn endless_pages(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    let number = message.params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    message.is_method("tools/list") && page(server, message, number, Some(&(number + 1).to_string()))
}

/// Sends a page with one tool and the next cursor.
fn page(server: &StdioFaultServer, message: &ClientMessage, number: usize, next: Option<&str>) -> bool {
    let mut body = with_cache_hint(json!({ "tools": [tools::filler(number)] }));
    if let Some(next) = next {
        body["nextCursor"] = json!(next);
    }
    send(server, message, body)
}

/// Adds tools that report the environment of the process.
fn environment(server: &Arc<StdioFaultServer>, message: &ClientMessage) -> bool {
    if message.is_method("tools/list") {
        let mut list = tools::definitions();
        list.push(tools::tool("environ", "The environment.", json!({})));
        list.push(tools::tool("fds", "The open descriptors.", json!({})));
        return send(server, message, with_cache_hint(json!({ "tools": list })));
    }
    if is_call_of(message, "environ") {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .map(|(key, value)| (key.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect();
        return send(server, message, structured_result(json!(variables)));
    }
    is_call_of(message, "fds") && send(server, message, structured_result(json!({ "fds": descriptors() })))
}

/// Returns number and target of every open descriptor, except the one used for listing.
fn descriptors() -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            Some((entry.file_name().to_string_lossy().into_owned(), target))
        })
        .filter(|(_, target)| !(target.starts_with("/proc/") && target.ends_with("/fd")))
        .collect()
}

/// Returns the value as structured content and as text.
fn structured_result(value: Value) -> Value {
    let mut body = tools::text(&value.to_string());
    body["structuredContent"] = value;
    body
}

fn is_call_of(message: &ClientMessage, tool: &str) -> bool {
    message.is_method("tools/call") && message.params["name"] == tool
}

fn send(server: &StdioFaultServer, message: &ClientMessage, body: Value) -> bool {
    server.out.line(frame::result(&message.id(), &adapt_result(server, body)));
    true
}
