//! The tools as they are listed, in the words of each revision.

use serde_json::{Value, json};

use super::Revision;

/// All tools, always in the same order, without what `revision` does not know.
pub fn definitions(revision: Revision) -> Vec<Value> {
    let mut tools = full_definitions();
    for tool in &mut tools {
        trim(tool, revision);
    }
    tools
}

fn trim(tool: &mut Value, revision: Revision) {
    let fields = tool.as_object_mut().expect("a definition is an object");
    if !revision.has_structured_content() {
        fields.remove("outputSchema");
    }
    if !revision.has_titles()
        && let Some(title) = fields.remove("title")
    {
        // Before tools had a title, their annotations did.
        fields["annotations"]["title"] = title;
    }
    if !revision.has_tool_annotations() {
        fields.remove("annotations");
    }
}

fn full_definitions() -> Vec<Value> {
    let mut tools = Vec::from(plain_tools());
    tools.extend(media_tools());
    tools.extend(process_tools());
    tools
}

fn plain_tools() -> [Value; 5] {
    [
        json!({
            "name": "echo",
            "title": "Echo",
            "description": "Repeats a text.",
            "inputSchema": schema(
                &json!({"text": {"type": "string", "description": "What to repeat"}}),
                &["text"],
            ),
            "annotations": harmless(),
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
            "annotations": harmless(),
        }),
        json!({
            "name": "fail",
            "title": "Fail",
            "description": "Always reports an error, to show how errors look.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": harmless(),
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
            "annotations": harmless(),
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
            "annotations": harmless(),
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
            "annotations": harmless(),
        }),
        json!({
            "name": "mixed",
            "title": "Mixed content",
            "description": "Answers with one block of every kind: text, image, audio, \
                            a resource link and an embedded resource.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": harmless(),
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
            "annotations": harmless(),
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

fn schema(properties: &Value, required: &[&str]) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn harmless() -> Value {
    json!({
        "readOnlyHint": true,
        "destructiveHint": false,
        "idempotentHint": true,
        "openWorldHint": false,
    })
}
