//! Tools without requests to the client.

use serde_json::{Value, json};

use super::{read_only_annotations, schema};

pub fn plain_tools() -> Vec<Value> {
    let mut tools = Vec::from(simple_tools());
    tools.extend(media_tools());
    tools.extend(process_tools());
    tools.push(header_param_tool());
    tools
}

fn simple_tools() -> [Value; 5] {
    [
        json!({
            "name": "echo",
            "title": "Echo",
            "description": "Repeats a text.",
            "inputSchema": schema(
                &json!({"text": {"type": "string", "description": "What to repeat"}}),
                &["text"],
            ),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "add",
            "title": "Add",
            "description": "Adds two numbers.",
            "inputSchema": schema(
                &json!({
                    "a": {"type": "number", "description": "The first number"},
                    "b": {"type": "number", "description": "The second number"},
                }),
                &["a", "b"],
            ),
            "outputSchema": schema(&json!({"sum": {"type": "number"}}), &["sum"]),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "fail",
            "title": "Fail",
            "description": "Always reports an error, to show how errors look.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "slow",
            "title": "Wait",
            "description": "Waits for a while, reporting progress. Can be cancelled.",
            "inputSchema": schema(
                &json!({
                    "seconds": {
                        "type": "number", "minimum": 0, "maximum": 3600, "default": 5,
                        "description": "How long to wait",
                    },
                    "steps": {
                        "type": "integer", "minimum": 1, "maximum": 1000, "default": 5,
                        "description": "How many times to report progress on the way",
                    },
                }),
                &[],
            ),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "json_response",
            "title": "Structured answer",
            "description": "Answers with structured content: whatever arguments it was given.",
            "inputSchema": {
                "type": "object",
                "description": "Anything at all",
                "additionalProperties": true,
            },
            "outputSchema": schema(
                &json!({
                    "received": {"type": "object", "description": "The arguments of the call"},
                    "count": {"type": "integer", "description": "How many there were"},
                }),
                &["received", "count"],
            ),
            "annotations": read_only_annotations(),
        }),
    ]
}

fn media_tools() -> [Value; 2] {
    [
        json!({
            "name": "picture",
            "title": "Picture",
            "description": "Answers with a small PNG image of an anchor.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "mixed",
            "title": "Mixed content",
            "description": "Answers with one block of every kind: text, image, audio, \
                            a resource link and an embedded resource.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": read_only_annotations(),
        }),
    ]
}

fn process_tools() -> [Value; 2] {
    [
        json!({
            "name": "environment",
            "title": "Environment",
            "description": "Lists the names, never the values, of the environment variables \
                            that this server was started with.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "crash",
            "title": "Crash",
            "description": "Ends this server's process without an answer, to show what happens \
                            then.",
            "inputSchema": schema(
                &json!({
                    "exit_code": {
                        "type": "integer", "minimum": 0, "maximum": 255, "default": 3,
                        "description": "The exit code of the process",
                    },
                }),
                &[],
            ),
            "annotations": {
                "readOnlyHint": false,
                "destructiveHint": true,
                "idempotentHint": false,
                "openWorldHint": false,
            },
        }),
    ]
}

/// The tool with arguments repeated in headers (2026-07-28 server/tools, "x-mcp-header").
fn header_param_tool() -> Value {
    json!({
        "name": "clear_customs",
        "title": "Clear customs",
        "description": "Says which header the server saw beside its argument, if it came with any.",
        "inputSchema": schema(
            &json!({
                "region": {
                    "type": "string", "x-mcp-header": "Region",
                    "description": "Where the cargo goes",
                },
                "crates": {
                    "type": "integer", "x-mcp-header": "Crates",
                    "description": "How much of it there is",
                },
            }),
            &["region"],
        ),
        "annotations": read_only_annotations(),
    })
}
