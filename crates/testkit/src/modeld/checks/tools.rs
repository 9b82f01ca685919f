//! Checks of tool definitions: names, and the top level of schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::RequestCheckResult;
use crate::modeld::api_error::Refusal;
use crate::modeld::new_content::entries;

/// Keywords that are not allowed at the top level of a schema, because a tool takes an object.
const BRANCH_KEYWORDS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

pub(super) fn anthropic(body: &Value) -> RequestCheckResult {
    let mut names = BTreeSet::new();
    for (index, tool) in entries(&body["tools"]).iter().enumerate() {
        // Anthropic's own tools have a type and no schema.
        if tool["type"].as_str().is_some_and(|kind| kind != "custom") {
            continue;
        }
        let name = tool["name"].as_str().unwrap_or_default();
        let wrong = |what: &str| Err(Refusal::invalid(format!("tools.{index}.custom.{what}")));
        if !is_name(name, 128) {
            return wrong("name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'");
        }
        if !names.insert(name) {
            return Err(Refusal::invalid("tools: Tool names must be unique."));
        }
        if let Some(problem) = input_schema_problem(&tool["input_schema"]) {
            return wrong(problem);
        }
    }
    Ok(())
}

fn input_schema_problem(schema: &Value) -> Option<&'static str> {
    match schema["type"].as_str() {
        _ if !schema.is_object() => Some("input_schema: Field required"),
        None => Some("input_schema.type: Field required"),
        Some("object") if has_branches(schema) => {
            Some("input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
        }
        Some("object") => None,
        Some(_) => Some("input_schema.type: Input should be 'object'"),
    }
}

/// Checks the tools of chat completions, defined inside a `function`.
pub(super) fn chat(body: &Value) -> RequestCheckResult {
    for (index, tool) in entries(&body["tools"]).iter().enumerate() {
        openai(&tool["function"], &format!("tools[{index}].function"))?;
    }
    Ok(())
}

/// Checks the tools of responses; OpenAI's own tools have another type.
pub(super) fn responses(body: &Value) -> RequestCheckResult {
    for (index, tool) in entries(&body["tools"]).iter().enumerate() {
        if tool["type"] == "function" {
            openai(tool, &format!("tools[{index}]"))?;
        } else if tool["type"].is_null() {
            return missing(format!("tools[{index}].type"));
        }
    }
    Ok(())
}

fn openai(function: &Value, place: &str) -> RequestCheckResult {
    let name = function["name"].as_str().unwrap_or_default();
    let param = format!("{place}.name");
    if name.is_empty() {
        return missing(param);
    }
    if name.len() > 64 {
        let message = format!("Invalid '{param}': string too long. Expected a string with maximum length 64.");
        return Err(Refusal::invalid(message).with_param(param).with_code("string_above_max_length"));
    }
    if !is_name(name, 64) {
        let pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
        let message = format!("Invalid '{param}': string does not match pattern. {pattern}");
        return Err(Refusal::invalid(message).with_param(param).with_code("invalid_value"));
    }
    // A function without parameters is valid.
    let Some(problem) = function.get("parameters").and_then(|schema| schema_problem(schema, function)) else {
        return Ok(());
    };
    let message = format!("Invalid schema for function '{name}': {problem}");
    Err(Refusal::invalid(message).with_param(format!("{place}.parameters")).with_code("invalid_function_parameters"))
}

fn missing(param: String) -> RequestCheckResult {
    let message = format!("Missing required parameter: '{param}'.");
    Err(Refusal::invalid(message).with_param(param).with_code("missing_required_parameter"))
}

fn schema_problem(schema: &Value, function: &Value) -> Option<String> {
    let kind = schema["type"].as_str().unwrap_or("None");
    if kind != "object" {
        return Some(format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."));
    }
    if has_branches(schema) || schema.get("enum").is_some() || schema.get("not").is_some() {
        let not = "'oneOf'/'anyOf'/'allOf'/'enum'/'not'";
        return Some(format!("schema must have type 'object' and not have {not} at the top level."));
    }
    if function["strict"] == true { strict_problem(schema) } else { None }
}

/// Checks the additional rules of strict mode, on the top level only.
fn strict_problem(schema: &Value) -> Option<String> {
    if schema["additionalProperties"] != false {
        return Some("In context=(), 'additionalProperties' is required to be supplied and to be false.".to_owned());
    }
    let required = entries(&schema["required"]);
    let mut properties = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    let missing = properties.find(|property| !required.iter().any(|name| name == property.as_str()))?;
    let rule = "'required' is required to be supplied and to be an array including every key in properties.";
    Some(format!("In context=(), {rule} Missing '{missing}'."))
}

fn has_branches(schema: &Value) -> bool {
    BRANCH_KEYWORDS.iter().any(|branch| schema.get(branch).is_some())
}

fn is_name(name: &str, longest: usize) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=longest).contains(&name.len()) && name.bytes().all(is_allowed)
}
