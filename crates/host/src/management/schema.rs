//! JSON schemas of the management tools' arguments.

use serde_json::{Value, json};

use super::arguments::MAX_URI_BYTES;
use crate::polling::{DEFAULT_POLL_INTERVAL, MAX_POLL_INTERVAL, MIN_POLL_INTERVAL};

pub(super) fn listing() -> Value {
    object(json!({ "server": text("The server to list. All servers if absent.") }), &[])
}

pub(super) fn reading() -> Value {
    object(json!({ "server": server(), "uri": uri() }), &["server", "uri"])
}

pub(super) fn watching() -> Value {
    object(json!({ "server": server(), "uri": uri(), "reason": reason() }), &["server", "uri"])
}

pub(super) fn unwatching() -> Value {
    object(json!({ "server": server(), "uri": uri(), "subscriptionId": subscription() }), &[])
}

pub(super) fn polling() -> Value {
    let interval = json!({
        "type": "number",
        "minimum": millis(MIN_POLL_INTERVAL),
        "maximum": millis(MAX_POLL_INTERVAL),
        "default": millis(DEFAULT_POLL_INTERVAL),
        "description": "Milliseconds between two polls.",
    });
    let properties = json!({
        "type": { "type": "string", "enum": ["tool", "resource"], "description": "The kind of target to poll." },
        "server": server(),
        "toolName": text("The tool's name at the server (type `tool` only)."),
        "arguments": { "type": "object", "description": "The tool's arguments (type `tool` only)." },
        "uri": text("The URI of the resource (type `resource` only)."),
        "intervalMs": interval,
        "reason": reason(),
    });
    object(properties, &["type", "server"])
}

pub(super) fn unpolling() -> Value {
    let target = text("The polled target: a tool name or a resource URI.");
    object(json!({ "subscriptionId": subscription(), "server": server(), "target": target }), &[])
}

pub(super) fn prompting() -> Value {
    let arguments = json!({
        "type": "object",
        "additionalProperties": { "type": "string" },
        "description": "The prompt's arguments, as strings.",
    });
    let name = text("The prompt's name at the server.");
    object(json!({ "server": server(), "name": name, "arguments": arguments }), &["server", "name"])
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn server() -> Value {
    text("The name of the server.")
}

fn uri() -> Value {
    json!({ "type": "string", "maxLength": MAX_URI_BYTES, "description": "The URI of the resource." })
}

fn reason() -> Value {
    text("The purpose, in one sentence.")
}

fn subscription() -> Value {
    text("The subscription id returned when subscribing.")
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
