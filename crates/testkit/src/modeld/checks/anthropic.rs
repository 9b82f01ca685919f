//! Request checks of the Anthropic API.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{IncomingModelRequest, RequestCheckResult, ThinkingByCall, is_filled, models, tools};
use crate::modeld::api_error::Refusal;
use crate::modeld::new_content::entries;
use crate::modeld::seal::signature;

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(super) fn check(asked: &IncomingModelRequest<'_>) -> RequestCheckResult {
    parameters(asked)?;
    models::anthropic(asked.body)?;
    tools::anthropic(asked.body)?;
    let messages = entries(&asked.body["messages"]);
    roles(messages)?;
    for (index, message) in messages.iter().enumerate() {
        content(index, message)?;
    }
    check_tool_results(messages)?;
    if asked.body["thinking"]["type"] == "enabled" { check_thinking(messages, asked.thoughts) } else { Ok(()) }
}

fn parameters(asked: &IncomingModelRequest<'_>) -> RequestCheckResult {
    let body = asked.body;
    if asked.request.header("anthropic-version").is_none() {
        return refuse("anthropic-version: header is required");
    }
    if !body["model"].is_string() {
        return refuse("model: Field required");
    }
    match body["max_tokens"].as_u64() {
        None => return refuse("max_tokens: Field required"),
        Some(0) => return refuse("max_tokens: Input should be greater than or equal to 1"),
        Some(_) => {}
    }
    if !is_filled(&body["messages"]) {
        return refuse("messages: at least one message is required");
    }
    Ok(())
}

fn refuse(message: impl Into<String>) -> RequestCheckResult {
    Err(Refusal::invalid(message))
}

fn roles(messages: &[Value]) -> RequestCheckResult {
    let mut expected = "user";
    for (index, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some(role) if role == expected => expected = if role == "user" { "assistant" } else { "user" },
            Some("assistant") if index == 0 => {
                return refuse("messages: first message must use the \"user\" role");
            }
            Some(role @ ("user" | "assistant")) => {
                let rule = "roles must alternate between \"user\" and \"assistant\"";
                return refuse(format!("messages: {rule}, but found multiple \"{role}\" roles in a row"));
            }
            role => return refuse(format!("messages: Unexpected role \"{}\"", role.unwrap_or_default())),
        }
    }
    if expected == "user" {
        let rule = "The conversation must end with a user message.";
        return refuse(format!("This model does not support assistant message prefill. {rule}"));
    }
    Ok(())
}

fn content(index: usize, message: &Value) -> RequestCheckResult {
    let content = &message["content"];
    if content.as_str().is_some_and(|text| !text.is_empty()) {
        return Ok(());
    }
    if !is_filled(content) {
        return refuse(format!("messages.{index}: all messages must have non-empty content"));
    }
    for (place, block) in entries(content).iter().enumerate() {
        self::block(&format!("messages.{index}.content.{place}"), block, message["role"] == "user")?;
    }
    Ok(())
}

fn block(place: &str, block: &Value, is_users: bool) -> RequestCheckResult {
    let kind = block["type"].as_str().unwrap_or_default();
    match kind {
        "" => refuse(format!("{place}.type: Field required")),
        "text" if block["text"].as_str().is_none_or(str::is_empty) => {
            refuse("messages: text content blocks must be non-empty")
        }
        "text" => Ok(()),
        "image" if is_users => image(place, block),
        "tool_result" if is_users => result(place, block),
        "tool_use" if !is_users => call(place, block),
        "thinking" if !is_users => check_signature(place, block),
        "image" | "tool_result" | "tool_use" | "thinking" => {
            let role = if is_users { "user" } else { "assistant" };
            refuse(format!("{place}: `{kind}` blocks are not permitted in `{role}` messages"))
        }
        _ => Ok(()),
    }
}

fn image(place: &str, block: &Value) -> RequestCheckResult {
    let source = &block["source"];
    if source["type"] == "url" && source["url"].is_string() {
        return Ok(());
    }
    if !source["media_type"].as_str().is_some_and(|kind| IMAGES.contains(&kind)) {
        let allowed = "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
        return refuse(format!("{place}.image.source.base64.media_type: Input should be {allowed}"));
    }
    match source["data"].as_str() {
        Some(data) if !data.is_empty() => Ok(()),
        _ => refuse(format!("{place}.image.source.base64.data: Field required")),
    }
}

fn result(place: &str, block: &Value) -> RequestCheckResult {
    if !block["tool_use_id"].is_string() {
        return refuse(format!("{place}.tool_result.tool_use_id: Field required"));
    }
    for (index, part) in entries(&block["content"]).iter().enumerate() {
        let place = format!("{place}.tool_result.content.{index}");
        match part["type"].as_str() {
            Some("text" | "image") => self::block(&place, part, true)?,
            Some("document" | "search_result" | "tool_reference") => {}
            _ => return refuse(format!("{place}.type: Input should be 'text', 'image' or 'document'")),
        }
    }
    Ok(())
}

fn call(place: &str, block: &Value) -> RequestCheckResult {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !block["id"].as_str().is_some_and(|id| !id.is_empty() && id.bytes().all(is_allowed)) {
        return refuse(format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"));
    }
    if !block["input"].is_object() {
        return refuse(format!("{place}.tool_use.input: Input should be a valid dictionary"));
    }
    Ok(())
}

fn check_signature(place: &str, block: &Value) -> RequestCheckResult {
    let seal = block["thinking"].as_str().map(signature);
    match block["signature"].as_str() {
        None => refuse(format!("{place}.thinking.signature: Field required")),
        given if given == seal.as_deref() => Ok(()),
        Some(_) => refuse(format!("{place}: Invalid `signature` in `thinking` block")),
    }
}

/// Checks that every call has its result at the start of the next message, and every result its call in the previous
/// one.
fn check_tool_results(messages: &[Value]) -> RequestCheckResult {
    let mut seen = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let calls = ids(message, "tool_use", "id");
        if !calls.iter().all(|id| seen.insert(*id)) {
            return refuse("messages: `tool_use` ids must be unique");
        }
        let results = messages.get(index + 1).map(leading_results).unwrap_or_default();
        let missing: Vec<&str> = calls.iter().copied().filter(|id| !results.contains(id)).collect();
        if !missing.is_empty() {
            let found = "`tool_use` ids were found without `tool_result` blocks immediately after";
            let rule = "Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
            return refuse(format!("messages.{index}: {found}: {}. {rule}", missing.join(", ")));
        }
        check_results_of(index, message, index.checked_sub(1).map(|before| &messages[before]))?;
    }
    Ok(())
}

fn check_results_of(index: usize, message: &Value, before: Option<&Value>) -> RequestCheckResult {
    let calls = before.map(|message| ids(message, "tool_use", "id")).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for id in ids(message, "tool_result", "tool_use_id") {
        if !calls.contains(&id) {
            let found = format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}");
            let rule = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.";
            return refuse(format!("messages.{index}: {found}. {rule}"));
        }
        if !seen.insert(id) {
            let rule = "each tool_use must have a single result";
            return refuse(format!("messages.{index}: {rule}. Found multiple `tool_result` blocks with id: {id}"));
        }
    }
    Ok(())
}

fn ids<'a>(message: &'a Value, kind: &str, member: &str) -> Vec<&'a str> {
    let blocks = entries(&message["content"]).iter().filter(|block| block["type"] == kind);
    blocks.filter_map(|block| block[member].as_str()).collect()
}

/// Returns the results at the start of a message; later ones are not valid.
fn leading_results(message: &Value) -> Vec<&str> {
    let blocks = entries(&message["content"]).iter().take_while(|block| block["type"] == "tool_result");
    blocks.filter_map(|block| block["tool_use_id"].as_str()).collect()
}

/// Checks that the last assistant message starts with its thinking while its calls are being answered. A model with
/// adaptive thinking may have none.
fn check_thinking(messages: &[Value], thoughts: &ThinkingByCall) -> RequestCheckResult {
    let Some(last) = messages.iter().rposition(|message| message["role"] == "assistant") else { return Ok(()) };
    let calls = ids(&messages[last], "tool_use", "id");
    let first = messages[last]["content"][0]["type"].as_str().unwrap_or_default();
    let begins_right = first == "thinking" || first == "redacted_thinking";
    if begins_right || !calls.iter().any(|id| thoughts.contains_key(*id)) {
        return Ok(());
    }
    let rule = "When `thinking` is enabled, a final `assistant` message must start with a thinking block";
    let found = format!("Expected `thinking` or `redacted_thinking`, but found `{first}`");
    refuse(format!("messages.{last}.content.0.type: {found}. {rule}."))
}
