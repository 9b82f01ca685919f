//! Request checks of OpenAI's responses.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{RequestCheckResult, ThinkingByCall, has_parameter, is_filled, models, tools};
use crate::modeld::api_error::Refusal;
use crate::modeld::new_content::entries;
use crate::modeld::seal::decrypt;

pub(super) fn check(body: &Value, thoughts: &ThinkingByCall) -> RequestCheckResult {
    has_parameter(body, "model", Value::is_string)?;
    has_parameter(body, "input", |input| input.is_string() || is_filled(input))?;
    if let Some(id) = body["previous_response_id"].as_str() {
        let message = format!("Previous response with id '{id}' not found.");
        return Err(Refusal::invalid(message)
            .with_param("previous_response_id")
            .with_code("previous_response_not_found"));
    }
    models::responses(body)?;
    tools::responses(body)?;
    let items = entries(&body["input"]);
    for (index, item) in items.iter().enumerate() {
        self::item(&format!("input[{index}]"), item)?;
        if item["type"] == "reasoning" {
            reasoning(item, items.get(index + 1), body["store"] == false)?;
        }
    }
    check_tool_outputs(items)?;
    check_reasoning_items(items, thoughts)
}

fn invalid(place: &str, given: &str, allowed: &str) -> RequestCheckResult {
    let message = format!("Invalid value: '{given}'. Supported values are: {allowed}.");
    Err(Refusal::invalid(message).with_param(place).with_code("invalid_value"))
}

fn missing(place: &str) -> RequestCheckResult {
    let message = format!("Missing required parameter: '{place}'.");
    Err(Refusal::invalid(message).with_param(place).with_code("missing_required_parameter"))
}

fn item(place: &str, item: &Value) -> RequestCheckResult {
    let needed: &[&str] = match item["type"].as_str() {
        Some("message") | None => return message(place, item),
        Some("function_call") => &["call_id", "name", "arguments"],
        Some("function_call_output") if item["output"].is_array() => {
            parts(&format!("{place}.output"), &item["output"], &["input_text", "input_image", "input_file"])?;
            &["call_id"]
        }
        Some("function_call_output") => &["call_id", "output"],
        Some("reasoning") if !item["summary"].is_array() => return missing(&format!("{place}.summary")),
        Some(_) => &[],
    };
    let absent = needed.iter().find(|member| !item[**member].is_string());
    absent.map_or(Ok(()), |member| missing(&format!("{place}.{member}")))
}

fn message(place: &str, item: &Value) -> RequestCheckResult {
    let allowed: &[&str] = match item["role"].as_str() {
        Some("assistant") => &["output_text", "refusal"],
        Some("user" | "system" | "developer") => &["input_text", "input_image", "input_file"],
        role => {
            let roles = "'assistant', 'system', 'developer', and 'user'";
            return invalid(&format!("{place}.role"), role.unwrap_or_default(), roles);
        }
    };
    if item["content"].is_string() {
        return Ok(());
    }
    if !item["content"].is_array() {
        return missing(&format!("{place}.content"));
    }
    parts(&format!("{place}.content"), &item["content"], allowed)
}

fn parts(place: &str, content: &Value, allowed: &[&str]) -> RequestCheckResult {
    for (index, part) in entries(content).iter().enumerate() {
        let kind = part["type"].as_str().unwrap_or_default();
        if !allowed.contains(&kind) {
            let quoted: Vec<String> = allowed.iter().map(|kind| format!("'{kind}'")).collect();
            return invalid(&format!("{place}[{index}]"), kind, &quoted.join(", "));
        }
        let member = if kind == "input_image" { "image_url" } else { "text" };
        if kind != "input_file" && kind != "refusal" && !part[member].is_string() && !part["file_id"].is_string() {
            return missing(&format!("{place}[{index}].{member}"));
        }
    }
    Ok(())
}

/// Checks that reasoning is sent back encrypted, unchanged and before the item that followed it.
fn reasoning(item: &Value, next: Option<&Value>, is_forgotten: bool) -> RequestCheckResult {
    let id = item["id"].as_str().unwrap_or_default();
    match item["encrypted_content"].as_str().map(decrypt) {
        Some(None) => {
            let message = format!("The encrypted content for item {id} could not be verified.");
            return Err(Refusal::invalid(message).with_code("invalid_encrypted_content"));
        }
        None if is_forgotten => {
            let reason = "Items are not persisted when `store` is set to false.";
            return Err(Refusal::new(404, format!("Item with id '{id}' not found. {reason}")).with_param("input"));
        }
        Some(Some(_)) | None => {}
    }
    let is_news = |next: &Value| next["role"] == "user" || next["type"] == "function_call_output";
    if next.is_none_or(is_news) {
        let message = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
        return Err(Refusal::invalid(message).with_param("input"));
    }
    Ok(())
}

/// Checks that every call has a later output, and every output an earlier call.
fn check_tool_outputs(items: &[Value]) -> RequestCheckResult {
    let (mut open, mut called) = (BTreeSet::new(), BTreeSet::new());
    for item in items {
        let id = item["call_id"].as_str().unwrap_or_default();
        if item["type"] == "function_call" {
            open.insert(id);
            called.insert(id);
        } else if item["type"] == "function_call_output" {
            if !called.contains(id) {
                let message = format!("No tool call found for function call output with call_id {id}.");
                return Err(Refusal::invalid(message).with_param("input"));
            }
            open.remove(id);
        }
    }
    let Some(id) = open.first() else { return Ok(()) };
    Err(Refusal::invalid(format!("No tool output found for function call {id}.")).with_param("input"))
}

/// Checks that a call with an item id is sent with its reasoning.
fn check_reasoning_items(items: &[Value], thoughts: &ThinkingByCall) -> RequestCheckResult {
    let has = |id: &str| items.iter().any(|item| item["type"] == "reasoning" && item["id"] == id);
    for call in items.iter().filter(|item| item["type"] == "function_call") {
        let reasoning = call["call_id"].as_str().and_then(|id| thoughts.get(id));
        if let (Some(id), Some(reasoning)) = (call["id"].as_str(), reasoning)
            && !has(reasoning)
        {
            let item = format!("Item '{id}' of type 'function_call'");
            let message = format!("{item} was provided without its required 'reasoning' item: '{reasoning}'.");
            return Err(Refusal::invalid(message).with_param("input"));
        }
    }
    Ok(())
}
