//! Tools of the healthy server.

use std::time::Duration;

use serde_json::{Value, json};

use super::frame::{self, ClientMessage, ErrorReply};
use super::healthy::with_cache_hint;
use super::request_context::RequestServer;

/// Reports whether the call takes time and must not block other requests.
pub fn takes_time(message: &ClientMessage) -> bool {
    message.is_method("tools/call") && matches!(message.params["name"].as_str(), Some("slow" | "progress"))
}

/// Returns a page of tools. With `--pages N` there are N pages, each after the first with one filler tool.
pub fn list(server: &dyn RequestServer, message: &ClientMessage) -> Result<Value, ErrorReply> {
    let page = match message.params.get("cursor").and_then(Value::as_str) {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix("page-")
            .and_then(|number| number.parse::<usize>().ok())
            .filter(|page| (1..server.options().pages).contains(page))
            .ok_or_else(|| ErrorReply::new(-32602, "Invalid cursor"))?,
    };
    let tools = if page == 0 { definitions() } else { vec![filler(page)] };
    let mut body = json!({ "tools": tools });
    if page + 1 < server.options().pages {
        body["nextCursor"] = json!(format!("page-{}", page + 1));
    }
    Ok(with_cache_hint(body))
}

/// Executes a tool call; returns `None` if it was cancelled meanwhile.
pub fn call(server: &dyn RequestServer, message: &ClientMessage) -> Option<Result<Value, ErrorReply>> {
    let number = |name| message.argument(name).as_u64().unwrap_or_default();
    Some(Ok(match message.params["name"].as_str().unwrap_or_default() {
        "echo" => text(message.argument("text").as_str().unwrap_or_default()),
        "note" => {
            let nonce = message.argument("nonce").as_str().unwrap_or_default();
            server.record(nonce);
            text(&format!("noted {nonce}"))
        }
        "slow" => {
            if server.cancelled_within(&message.id(), Duration::from_millis(number("ms"))) {
                return None;
            }
            text("done")
        }
        "progress" => progress(server, message, number("steps"), Duration::from_millis(number("every_ms")))?,
        "big" => text(&"x".repeat(usize::try_from(number("bytes")).unwrap_or_default())),
        "fail" => json!({ "content": [{ "type": "text", "text": "it failed, as asked" }], "isError": true }),
        other => return Some(Err(ErrorReply::new(-32602, format!("Unknown tool: {other}")))),
    }))
}

/// Returns a result with one text.
pub fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn progress(server: &dyn RequestServer, message: &ClientMessage, steps: u64, every: Duration) -> Option<Value> {
    for step in 1..=steps {
        if server.cancelled_within(&message.id(), every) {
            return None;
        }
        if let Some(token) = message.meta("progressToken") {
            let params = json!({ "progressToken": token, "progress": step, "total": steps });
            server.notify(frame::notification("notifications/progress", &params));
        }
    }
    Some(text(&format!("{steps} steps")))
}

pub fn definitions() -> Vec<Value> {
    vec![
        tool("echo", "Says it back.", json!({ "text": { "type": "string" } })),
        tool("note", "Writes the nonce into the ledger.", json!({ "nonce": { "type": "string" } })),
        tool("slow", "Takes its time.", json!({ "ms": { "type": "integer" } })),
        tool(
            "progress",
            "Reports every step.",
            json!({ "steps": { "type": "integer" }, "every_ms": { "type": "integer" } }),
        ),
        tool("big", "Answers at length.", json!({ "bytes": { "type": "integer" } })),
        tool("fail", "Reports a failure.", json!({})),
    ]
}

/// Returns a tool that is only listed, never called.
pub fn filler(number: usize) -> Value {
    tool(&format!("filler_{number}"), "Only listed.", json!({}))
}

pub fn tool(name: &str, description: &str, properties: Value) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties },
    })
}
