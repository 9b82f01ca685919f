//! Tools that ask the client before they return.

use serde_json::{Value, json};

use super::{changing_annotations, read_only_annotations, schema};

pub fn asking_tools() -> Vec<Value> {
    let mut tools = Vec::from(asking_a_person());
    tools.extend(asking_the_client());
    tools
}

fn asking_a_person() -> [Value; 4] {
    let rounds = json!({
        "rounds": {
            "type": "integer", "minimum": 1, "maximum": 100, "default": 3,
            "description": "In how many rounds to ask",
        },
        "together": {
            "type": "integer", "minimum": 1, "maximum": 20, "default": 1,
            "description": "How many questions a round has",
        },
    });
    let via = json!({
        "via": {
            "type": "string", "enum": ["question", "error"], "default": "question",
            "description": "Whether to ask while the call is under way, or by failing it first",
        },
    });
    [
        json!({
            "name": "book_berth",
            "title": "Book a berth",
            "description": "Asks for the particulars by a form, and repeats what it was told.",
            "inputSchema": schema(&json!({}), &[]),
            "outputSchema": schema(&json!({"action": {"type": "string"}, "content": {"type": "object"}}), &["action"]),
            "annotations": changing_annotations(),
        }),
        json!({
            "name": "open_harbour_page",
            "title": "Open the harbour page",
            "description": "Asks to have a web page opened.",
            "inputSchema": schema(&via, &[]),
            "annotations": changing_annotations(),
        }),
        json!({
            "name": "many_questions",
            "title": "Many questions",
            "description": "Asks several times before it answers.",
            "inputSchema": schema(&rounds, &[]),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "stubborn",
            "title": "Stubborn",
            "description": "Asks the same thing for ever, to show who gives in.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": read_only_annotations(),
        }),
    ]
}

fn asking_the_client() -> [Value; 2] {
    let question = json!({
        "question": {"type": "string", "default": "When is high water?", "description": "What to ask"},
        "tools": {"type": "boolean", "default": false, "description": "Whether the model gets a tool to use"},
    });
    [
        json!({
            "name": "ask_model",
            "title": "Ask the model",
            "description": "Has the client's model answer a question.",
            "inputSchema": schema(&question, &[]),
            "outputSchema": schema(&json!({"text": {"type": "string"}, "model": {}}), &["text"]),
            "annotations": read_only_annotations(),
        }),
        json!({
            "name": "show_roots",
            "title": "Show the roots",
            "description": "Lists the folders that the client lets servers work on.",
            "inputSchema": schema(&json!({}), &[]),
            "annotations": read_only_annotations(),
        }),
    ]
}
