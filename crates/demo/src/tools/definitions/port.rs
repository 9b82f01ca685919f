//! Tools that change the port, send notifications, or take time.

use serde_json::{Value, json};

use super::{changing_annotations, read_only_annotations, schema};
use crate::logging::LEVELS;

pub fn port_tools() -> Vec<Value> {
    let mut tools = Vec::from(working_tools());
    tools.extend(changes().map(|(name, title, description)| {
        json!({
            "name": name,
            "title": title,
            "description": description,
            "inputSchema": schema(&json!({}), &[]),
            "annotations": changing_annotations(),
        })
    }));
    tools.extend(notifying_tools());
    tools
}

fn changes() -> [(&'static str, &'static str, &'static str); 6] {
    [
        ("raise_tide", "Raise the tide", "Changes the resource harbour://tide."),
        ("hire_crane", "Hire a crane", "Adds the tool `crane` to the list."),
        ("dismiss_crane", "Dismiss the crane", "Takes the tool `crane` off the list."),
        ("learn_shanty", "Learn a shanty", "Adds the prompt `shanty` to the list."),
        ("lay_buoy", "Lay a buoy", "Adds the resource harbour://buoy to the list."),
        ("crane", "Crane", "Lifts something; there only while a crane is hired."),
    ]
}

fn working_tools() -> [Value; 2] {
    let work = json!({
        "containers": {
            "type": "integer", "minimum": 1, "maximum": 1000, "default": 3,
            "description": "How many containers there are",
        },
        "interval_ms": {
            "type": "integer", "minimum": 0, "maximum": 60000, "default": 200,
            "description": "How long each of them takes, in milliseconds",
        },
        "ask": {"type": "boolean", "default": false, "description": "Whether to have somebody sign first"},
    });
    [
        json!({
            "name": "unload_ship",
            "title": "Unload a ship",
            "description": "Unloads containers one by one; as a task, if the client knows tasks.",
            "inputSchema": schema(&work, &[]),
            "outputSchema": schema(&json!({"unloaded": {"type": "integer"}}), &["unloaded"]),
            "annotations": changing_annotations(),
            "execution": {"taskSupport": "optional"},
        }),
        json!({
            "name": "survey_hull",
            "title": "Survey the hull",
            "description": "Looks at a hull from all sides; only as a task.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": read_only_annotations(),
            "execution": {"taskSupport": "required"},
        }),
    ]
}

fn notifying_tools() -> [Value; 2] {
    let entry = json!({
        "level": {"type": "string", "enum": LEVELS, "description": "How severe it is"},
        "message": {"type": "string", "description": "What to say"},
    });
    let how = json!({
        "how": {
            "type": "string", "enum": ["result", "cancelled", "error"], "default": "result",
            "description": "In which way to end them",
        },
    });
    [
        json!({
            "name": "log_something",
            "title": "Log something",
            "description": "Sends a log message, if the client wants to hear of its level.",
            "inputSchema": schema(&entry, &["level", "message"]),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "end_subscriptions",
            "title": "End subscriptions",
            "description": "Ends every open subscription from the server's side.",
            "inputSchema": schema(&how, &[]),
            "annotations": changing_annotations(),
        }),
    ]
}
