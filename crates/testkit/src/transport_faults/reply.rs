//! A minimal healthy server of revision 2026-07-28: one stateless request in, one JSON response out.

use serde_json::{Value, json};

/// A response, independent of the HTTP version.
#[derive(Debug)]
pub(super) struct HealthyReply {
    pub status: u16,
    /// Empty for a response without content.
    pub body: Vec<u8>,
}

/// Answers the body of a POST; an empty body gives 405.
pub(super) fn healthy_reply(body: &[u8]) -> HealthyReply {
    if body.is_empty() {
        return HealthyReply { status: 405, body: Vec::new() };
    }
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return failure(400, &Value::Null, -32700, "Parse error");
    };
    let Some(id) = message.get("id") else { return HealthyReply { status: 202, body: Vec::new() } };
    match result(&message) {
        Some(mut result) => {
            result["resultType"] = json!("complete");
            HealthyReply { status: 200, body: to_bytes(&json!({ "jsonrpc": "2.0", "id": id, "result": result })) }
        }
        None => failure(404, id, -32601, "Method not found"),
    }
}

fn result(message: &Value) -> Option<Value> {
    let info = json!({ "io.modelcontextprotocol/serverInfo": { "name": "below", "version": "0" } });
    Some(match message["method"].as_str()? {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "ttlMs": 60_000,
            "cacheScope": "public",
            "_meta": info,
        }),
        "tools/list" => json!({
            "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }],
            "ttlMs": 60_000,
            "cacheScope": "public",
        }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"].to_string() }] }),
        _ => return None,
    })
}

fn failure(status: u16, id: &Value, code: i64, text: &str) -> HealthyReply {
    let error = json!({ "code": code, "message": text });
    HealthyReply { status, body: to_bytes(&json!({ "jsonrpc": "2.0", "id": id, "error": error })) }
}

fn to_bytes(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}
