//! JSON schemas of the management tools' arguments.

use serde_json::{Value, json};

use super::arguments::MAX_URI_BYTES;
use crate::polling::{DEFAULT_POLL_INTERVAL, MAX_POLL_INTERVAL, MIN_POLL_INTERVAL};

pub(super) fn list_schema() -> Value {
    object_schema(json!({ "server": string_schema("The server to list. All servers if absent.") }), &[])
}

pub(super) fn read_resource_schema() -> Value {
    object_schema(json!({ "server": server_schema(), "uri": uri_schema() }), &["server", "uri"])
}

pub(super) fn subscribe_schema() -> Value {
    object_schema(
        json!({ "server": server_schema(), "uri": uri_schema(), "reason": reason_schema() }),
        &["server", "uri"],
    )
}

pub(super) fn unsubscribe_schema() -> Value {
    object_schema(
        json!({ "server": server_schema(), "uri": uri_schema(), "subscriptionId": subscription_schema() }),
        &[],
    )
}

pub(super) fn polling_schema() -> Value {
    let interval = json!({
        "type": "number",
        "minimum": millis(MIN_POLL_INTERVAL),
        "maximum": millis(MAX_POLL_INTERVAL),
        "default": millis(DEFAULT_POLL_INTERVAL),
        "description": "Milliseconds between two polls.",
    });
    let properties = json!({
        "type": { "type": "string", "enum": ["tool", "resource"], "description": "The kind of target to poll." },
        "server": server_schema(),
        "toolName": string_schema("The tool's name at the server (type `tool` only)."),
        "arguments": { "type": "object", "description": "The tool's arguments (type `tool` only)." },
        "uri": string_schema("The URI of the resource (type `resource` only)."),
        "intervalMs": interval,
        "reason": reason_schema(),
    });
    object_schema(properties, &["type", "server"])
}

pub(super) fn stop_polling_schema() -> Value {
    let target = string_schema("The polled target: a tool name or a resource URI.");
    object_schema(json!({ "subscriptionId": subscription_schema(), "server": server_schema(), "target": target }), &[])
}

pub(super) fn get_prompt_schema() -> Value {
    let arguments = json!({
        "type": "object",
        "additionalProperties": { "type": "string" },
        "description": "The prompt's arguments, as strings.",
    });
    let name = string_schema("The prompt's name at the server.");
    object_schema(json!({ "server": server_schema(), "name": name, "arguments": arguments }), &["server", "name"])
}

fn object_schema(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn string_schema(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn server_schema() -> Value {
    string_schema("The name of the server.")
}

fn uri_schema() -> Value {
    json!({ "type": "string", "maxLength": MAX_URI_BYTES, "description": "The URI of the resource." })
}

fn reason_schema() -> Value {
    string_schema("The purpose, in one sentence.")
}

fn subscription_schema() -> Value {
    string_schema("The subscription id returned when subscribing.")
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
