//! Tool definitions, adapted to each revision.

mod asking;
mod plain;
mod port;

use serde_json::{Value, json};

use super::DemoRevision;
use crate::icons;
use crate::port::HarbourView;

/// Returns all tools in a fixed order, without features that `revision` does not have.
pub fn definitions(revision: DemoRevision, view: HarbourView) -> Vec<Value> {
    let mut tools = plain::plain_tools();
    tools.extend(asking::asking_tools());
    tools.extend(port::port_tools());
    tools.retain(|tool| is_offered(tool["name"].as_str().unwrap_or_default(), revision, view));
    for tool in &mut tools {
        adapt_to_revision(tool, revision);
    }
    tools
}

fn is_offered(name: &str, revision: DemoRevision, view: HarbourView) -> bool {
    match name {
        "book_berth" | "many_questions" => revision.has_elicitation(),
        "open_harbour_page" => revision.has_elicitation_modes(),
        "stubborn" | "end_subscriptions" => revision.is_stateless(),
        "survey_hull" => revision.has_core_tasks(),
        "crane" => view.has_crane,
        _ => true,
    }
}

fn adapt_to_revision(tool: &mut Value, revision: DemoRevision) {
    if matches!(tool["name"].as_str(), Some("picture" | "book_berth")) {
        icons::add_icons(tool, revision);
    }
    remove_unsupported_arguments(tool, revision);
    if !revision.is_stateless()
        && let Some(properties) = tool["inputSchema"]["properties"].as_object_mut()
    {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove("x-mcp-header");
        }
    }
    let fields = tool.as_object_mut().expect("a definition is an object");
    if !revision.has_structured_content() {
        fields.remove("outputSchema");
    }
    if !revision.has_core_tasks() {
        fields.remove("execution");
    }
    if !revision.has_titles()
        && let Some(title) = fields.remove("title")
    {
        // Before tools had a `title`, it was one of their annotations.
        fields["annotations"]["title"] = title;
    }
    if !revision.has_tool_annotations() {
        fields.remove("annotations");
    }
}

/// Removes arguments for features that `revision` does not have.
fn remove_unsupported_arguments(tool: &mut Value, revision: DemoRevision) {
    let argument = match tool["name"].as_str() {
        Some("ask_model") if !revision.has_sampling_tools() => "tools",
        Some("open_harbour_page") if !revision.has_elicitation_errors() => "via",
        Some("unload_ship") if !revision.has_elicitation() => "ask",
        _ => return,
    };
    if let Some(properties) = tool["inputSchema"]["properties"].as_object_mut() {
        properties.remove(argument);
    }
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

fn read_only_annotations() -> Value {
    json!({
        "readOnlyHint": true,
        "destructiveHint": false,
        "idempotentHint": true,
        "openWorldHint": false,
    })
}

/// Annotations of most tools that change the port: not idempotent, not destructive.
fn changing_annotations() -> Value {
    json!({
        "readOnlyHint": false,
        "destructiveHint": false,
        "idempotentHint": false,
        "openWorldHint": false,
    })
}
