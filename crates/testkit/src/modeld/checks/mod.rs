//! The request validation of the real APIs, with their error messages: a request that passes here is likely to be
//! accepted there.
//!
//! Blocks and items of unknown types pass: the script may have produced them.

mod anthropic;
mod chat;
mod models;
mod responses;
mod tools;

use std::collections::BTreeMap;

use serde_json::Value;

use super::api_error::Refusal;
use super::format::ModelApiFormat;
use crate::request::Request;

/// Calls made after thinking, each with the id of that thinking: a call must be sent back with it.
pub(super) type ThinkingByCall = BTreeMap<String, String>;

/// A request and its context.
pub(super) struct IncomingModelRequest<'a> {
    pub format: ModelApiFormat,
    pub request: &'a Request,
    pub body: &'a Value,
    pub keyless: bool,
    pub thoughts: &'a ThinkingByCall,
}

type RequestCheckResult = Result<(), Refusal>;

pub(super) fn check(asked: &IncomingModelRequest<'_>) -> RequestCheckResult {
    if asked.request.method != "POST" {
        return Err(Refusal::new(405, "Method Not Allowed"));
    }
    if !asked.keyless {
        has_key(asked)?;
    }
    if !asked.body.is_object() {
        return Err(Refusal::invalid("The request body is not valid JSON"));
    }
    match asked.format {
        ModelApiFormat::Anthropic => anthropic::check(asked),
        ModelApiFormat::ChatCompletions => chat::check(asked.body),
        ModelApiFormat::Responses => responses::check(asked.body, asked.thoughts),
    }
}

fn has_key(asked: &IncomingModelRequest<'_>) -> RequestCheckResult {
    let bearer = asked.request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let key = asked.request.header("x-api-key").filter(|_| asked.format == ModelApiFormat::Anthropic);
    if key.or(bearer).is_some_and(|key| !key.is_empty()) {
        return Ok(());
    }
    Err(match asked.format {
        ModelApiFormat::Anthropic => Refusal::new(401, "x-api-key header is required"),
        ModelApiFormat::ChatCompletions | ModelApiFormat::Responses => {
            Refusal::new(401, "You didn't provide an API key.")
        }
    })
}

/// Checks a required OpenAI parameter.
fn has_parameter(body: &Value, name: &str, is_right: impl Fn(&Value) -> bool) -> RequestCheckResult {
    let value = &body[name];
    let wrong = |message: String, code| Err(Refusal::invalid(message).with_param(name).with_code(code));
    match value {
        Value::Null => wrong(format!("Missing required parameter: '{name}'."), "missing_required_parameter"),
        value if !is_right(value) => wrong(format!("Invalid value for '{name}'."), "invalid_type"),
        _ => Ok(()),
    }
}

/// Reports whether a value is a non-empty list.
fn is_filled(value: &Value) -> bool {
    value.as_array().is_some_and(|entries| !entries.is_empty())
}
