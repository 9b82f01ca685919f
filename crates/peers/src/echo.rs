//! Responses of the echo servers, on any transport.
//!
//! Tool calls are recognised by scanning for the text and the id at any position; all other messages are rare and
//! parsed.

use memchr::{memchr, memmem};
use serde_json::{Value, json};

/// Appends the response to a message; appends nothing for a notification.
pub fn append_response(message: &[u8], answers: &mut Vec<u8>) {
    if append_echo(message, answers).is_none()
        && let Ok(message) = serde_json::from_slice::<Value>(message)
        && let Some(reply) = response_to(&message)
    {
        answers.extend_from_slice(reply.to_string().as_bytes());
    }
}

/// Answers a tool call by copying its text, escapes included. Returns `None` if the line is not a tool call.
fn append_echo(line: &[u8], answers: &mut Vec<u8>) -> Option<()> {
    const TEXT: &[u8] = br#""text":""#;
    let before = memmem::find(line, TEXT)?;
    let begin = before + TEXT.len();
    let end = begin + string_end(&line[begin..])?;
    let id = find_id(&line[..before]).or_else(|| find_id(&line[end..]))?;
    answers.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    answers.extend_from_slice(id);
    answers.extend_from_slice(br#","result":{"resultType":"complete","content":[{"type":"text","text":""#);
    answers.extend_from_slice(&line[begin..end]);
    answers.extend_from_slice(br#""}],"isError":false}}"#);
    Some(())
}

/// Returns the end of the string that starts here: the first unescaped quote.
fn string_end(rest: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let quote = from + memchr(b'"', &rest[from..])?;
        let escapes = rest[..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            return Some(quote);
        }
        from = quote + 1;
    }
}

/// Returns the raw value of `"id":`, a number or a string.
fn find_id(part: &[u8]) -> Option<&[u8]> {
    const ID: &[u8] = br#""id":"#;
    let rest = &part[memmem::find(part, ID)? + ID.len()..];
    let length = match rest.first()? {
        b'"' => string_end(&rest[1..])? + 2,
        _ => rest.iter().take_while(|byte| byte.is_ascii_digit()).count(),
    };
    (length > 0).then(|| &rest[..length])
}

/// Answers all other messages; returns `None` for a notification.
fn response_to(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "server/discover" => discover_result(),
        "initialize" => initialize_result(),
        "tools/list" => tools(),
        "ping" => json!({}),
        method => {
            let error = json!({"code": -32601, "message": format!("no method {method}")});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn discover_result() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench-echo", "version": "1.0.0"}},
    })
}

fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bench-echo", "version": "1.0.0"},
    })
}

fn tools() -> Value {
    json!({
        "resultType": "complete",
        "ttlMs": 60_000,
        "cacheScope": "private",
        "tools": [{
            "name": "echo",
            "description": "Gives back the text.",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, id: Value, text: &str) {
        let mut answers = Vec::new();
        append_response(line.as_bytes(), &mut answers);
        let reply: Value = serde_json::from_slice(&answers).unwrap();
        assert_eq!(reply["id"], id, "{line}");
        assert_eq!(reply["result"]["content"][0]["text"], text, "{line}");
    }

    #[test]
    fn id_is_found_at_any_position() {
        check(r#"{"id":7,"params":{"arguments":{"text":"a"}}}"#, json!(7), "a");
        check(r#"{"params":{"arguments":{"text":"a"}},"id":"q-1"}"#, json!("q-1"), "a");
        check(r#"{"id":"x\"y","params":{"arguments":{"text":""}}}"#, json!("x\"y"), "");
    }

    #[test]
    fn escapes_are_preserved() {
        check(r#"{"id":1,"params":{"arguments":{"text":"say \"id\":9 \\"}}}"#, json!(1), "say \"id\":9 \\");
    }

    #[test]
    fn discovery_is_answered_and_notifications_are_not() {
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"});
        assert_eq!(response_to(&ask).unwrap()["result"]["supportedVersions"][0], "2026-07-28");
        assert_eq!(response_to(&json!({"method": "notifications/initialized"})), None);
    }
}
