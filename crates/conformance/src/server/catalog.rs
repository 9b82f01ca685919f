//! The tools, prompts and resources that the scenarios name.

use serde_json::{Value, json};

use crate::list_changes::{ChangedList, ListState};

/// Tools without arguments.
const PLAIN_TOOLS: [&str; 23] = [
    "test_audio_content",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
    "test_logging_tool",
    "test_missing_capability",
    "test_multiple_content_types",
    "test_reconnection",
    "test_simple_text",
    "test_streaming_elicitation",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_trigger_tool_change",
];

/// Returns the tools, with the one that comes and goes if it is there.
pub fn tools(lists: &ListState) -> Value {
    let empty = || json!({"type": "object", "properties": {}});
    let tool = |name: &str, schema: Value| json!({"name": name, "description": format!("Fixture {name}"), "inputSchema": schema});
    let mut tools: Vec<Value> = PLAIN_TOOLS.iter().map(|name| tool(name, empty())).collect();
    tools.push(tool("test_trigger_prompt_change", empty()));
    tools.push(tool("test_sampling", text_arguments("prompt")));
    tools.push(tool("test_elicitation", text_arguments("message")));
    tools.push(tool("json_schema_2020_12_tool", schema_2020_12()));
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    tools.push(tool("test_custom_header", json!({"type": "object", "properties": {"region": region}})));
    if lists.has_extra(ChangedList::Tools) {
        tools.push(tool("test_extra_tool", empty()));
    }
    tools.into()
}

fn text_arguments(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// A schema with keywords of JSON Schema 2020-12 that must survive.
fn schema_2020_12() -> Value {
    let address = json!({
        "$anchor": "addressDef",
        "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": address},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Returns the prompts, with the one that comes and goes if it is there.
pub fn prompts(lists: &ListState) -> Value {
    let argument = |name: &str| json!({"name": name, "description": name, "required": true});
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<Value> = arguments.iter().map(|name| argument(name)).collect();
        json!({"name": name, "description": format!("Fixture {name}"), "arguments": arguments})
    };
    let mut prompts = vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ];
    if lists.has_extra(ChangedList::Prompts) {
        prompts.push(prompt("test_extra_prompt", &[]));
    }
    prompts.into()
}

pub fn resources() -> Value {
    let resource = |uri: &str, mime: &str| json!({"uri": uri, "name": uri, "description": "Fixture", "mimeType": mime});
    json!([
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
        resource("test://watched-resource", "text/plain"),
    ])
}

pub fn templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Fixture",
        "mimeType": "application/json",
    }])
}

/// Returns the contents of a resource.
pub fn contents(uri: &str) -> Option<Value> {
    let text = |text: String, mime: &str| Some(json!([{"uri": uri, "mimeType": mime, "text": text}]));
    match uri {
        "test://static-text" => text("This is the content of the static text resource.".to_owned(), "text/plain"),
        "test://watched-resource" => text("Watched.".to_owned(), "text/plain"),
        "test://static-binary" => Some(json!([{"uri": uri, "mimeType": "image/png", "blob": IMAGE}])),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            text(data.to_string(), "application/json")
        }
    }
}

/// Returns the messages of a prompt.
pub fn messages(name: &str, arguments: &Value) -> Option<Value> {
    let user = |content: Value| json!({"role": "user", "content": content});
    let text = |text: String| user(json!({"type": "text", "text": text}));
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    Some(match name {
        "test_simple_prompt" | "test_extra_prompt" => json!([text("This is a simple prompt for testing.".to_owned())]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = embedded_text(&argument("resourceUri"), "Embedded resource content for testing.");
            json!([user(resource), text("Please process the embedded resource above.".to_owned())])
        }
        "test_prompt_with_image" => {
            json!([user(image()), text("Please analyze the image above.".to_owned())])
        }
        _ => return None,
    })
}

pub fn embedded_text(uri: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": text}})
}

pub fn image() -> Value {
    json!({"type": "image", "data": IMAGE, "mimeType": "image/png"})
}

pub fn audio() -> Value {
    json!({"type": "audio", "data": AUDIO, "mimeType": "audio/wav"})
}

/// One red pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A sound without samples.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
