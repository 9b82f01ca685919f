//! Request checks of OpenAI's chat completions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{RequestCheckResult, has_parameter, is_filled, tools};
use crate::modeld::api_error::Refusal;
use crate::modeld::new_content::entries;

pub(super) fn check(body: &Value) -> RequestCheckResult {
    has_parameter(body, "model", Value::is_string)?;
    has_parameter(body, "messages", is_filled)?;
    if body.get("tools").is_some_and(|tools| !is_filled(tools)) {
        let message = "Invalid 'tools': empty array. Expected an array with minimum length 1.";
        return Err(Refusal::invalid(message).with_param("tools").with_code("empty_array"));
    }
    if body["stream"] != true && !body["stream_options"].is_null() {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Refusal::invalid(message).with_param("stream_options"));
    }
    tools::chat(body)?;
    let messages = entries(&body["messages"]);
    for (index, message) in messages.iter().enumerate() {
        self::message(index, message)?;
    }
    check_tool_results(messages)
}

fn message(index: usize, message: &Value) -> RequestCheckResult {
    let role = message["role"].as_str().unwrap_or_default();
    let content = &message["content"];
    match role {
        "assistant" if content.is_null() && is_filled(&message["tool_calls"]) => {}
        "system" | "developer" | "user" | "assistant" | "tool" if content.is_null() => {
            let text = "Invalid value for 'content': expected a string, got null.";
            return Err(Refusal::invalid(text).with_param(format!("messages.[{index}].content")));
        }
        "system" | "developer" | "user" | "assistant" | "tool" => {}
        _ => {
            let allowed = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'";
            let text = format!("Invalid value: '{role}'. Supported values are: {allowed}.");
            return Err(Refusal::invalid(text)
                .with_param(format!("messages[{index}].role"))
                .with_code("invalid_value"));
        }
    }
    calls(index, message)?;
    parts(index, role, content)
}

fn calls(index: usize, message: &Value) -> RequestCheckResult {
    for (place, call) in entries(&message["tool_calls"]).iter().enumerate() {
        let function = &call["function"];
        let members = [
            ("id", call["id"].is_string()),
            ("type", call["type"] == "function"),
            ("function.name", function["name"].is_string()),
            ("function.arguments", function["arguments"].is_string()),
        ];
        let Some((wrong, _)) = members.iter().find(|(_, is_right)| !is_right) else { continue };
        let param = format!("messages[{index}].tool_calls[{place}].{wrong}");
        return Err(Refusal::invalid(format!("Invalid type for '{param}': expected a string.")).with_param(param));
    }
    Ok(())
}

/// Checks message parts. Images are allowed in user messages only.
fn parts(index: usize, role: &str, content: &Value) -> RequestCheckResult {
    for (place, part) in entries(content).iter().enumerate() {
        let param = format!("messages[{index}].content[{place}]");
        match part["type"].as_str().unwrap_or_default() {
            "text" if part["text"].is_string() => {}
            "refusal" if role == "assistant" => {}
            "image_url" if role == "user" && part["image_url"]["url"].is_string() => {}
            "input_audio" | "file" if role == "user" => {}
            "image_url" if role != "user" => {
                let found = format!("this message with role '{role}' contains an image URL");
                let text = format!("Image URLs are only allowed for messages with role 'user', but {found}.");
                return Err(Refusal::invalid(text).with_param(param).with_code("invalid_value"));
            }
            kind => {
                let text = format!("Invalid value: '{kind}'. Supported values are: 'text', 'image_url'.");
                return Err(Refusal::invalid(text).with_param(param).with_code("invalid_value"));
            }
        }
    }
    Ok(())
}

/// Checks that calls are answered by the messages right after them, one each.
fn check_tool_results(messages: &[Value]) -> RequestCheckResult {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            if !message["tool_call_id"].as_str().is_some_and(|id| open.remove(id)) {
                let rule = "must be a response to a preceeding message with 'tool_calls'";
                let text = format!("Invalid parameter: messages with role 'tool' {rule}.");
                return Err(Refusal::invalid(text).with_param(format!("messages.[{index}].role")));
            }
            continue;
        }
        check_none_open(&open, index)?;
        open = entries(&message["tool_calls"]).iter().filter_map(|call| call["id"].as_str()).collect();
    }
    check_none_open(&open, messages.len())
}

fn check_none_open(open: &BTreeSet<&str>, index: usize) -> RequestCheckResult {
    if open.is_empty() {
        return Ok(());
    }
    let ids = open.iter().copied().collect::<Vec<_>>().join(", ");
    let rule = "must be followed by tool messages responding to each 'tool_call_id'";
    let found = format!("The following tool_call_ids did not have response messages: {ids}");
    let text = format!("An assistant message with 'tool_calls' {rule}. {found}");
    Err(Refusal::invalid(text).with_param(format!("messages.[{index}].role")))
}
