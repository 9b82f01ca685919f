//! Headers that repeat parts of a stateless request's body (2026-07-28 basic/transports/streamable-http).
//!
//! Intermediaries may act on the headers without reading the body, so both must agree.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use memchr::memmem;
use serde_json::{Map, Value};
use wharf_wire::{RawJson, code};

use crate::message::{ClientMessage, error_reply};
use crate::service::OutgoingMessage;

pub(super) const VERSION: &str = "MCP-Protocol-Version";
const METHOD: &str = "Mcp-Method";
const NAME: &str = "Mcp-Name";

/// Checks the version header of a request that declares a version.
///
/// # Errors
///
/// Returns the reply about a mismatch.
pub(super) fn check_version(headers: &HeaderMap, request: &ClientMessage) -> Result<(), OutgoingMessage> {
    match request.declared_version() {
        Some(version) => check(headers, VERSION, Some(&version)).map_err(|complaint| reply(request, &complaint)),
        None => Ok(()),
    }
}

/// Checks the other headers. `schema_of` returns the input schema of a tool.
///
/// # Errors
///
/// Returns the reply about a mismatch.
pub(super) fn check_rest(
    headers: &HeaderMap,
    request: &ClientMessage,
    schema_of: impl Fn(&str) -> Option<RawJson>,
) -> Result<(), OutgoingMessage> {
    find_mismatch(headers, request, schema_of).map_err(|complaint| reply(request, &complaint))
}

fn reply(request: &ClientMessage, complaint: &str) -> OutgoingMessage {
    error_reply(&request.id(), code::HEADER_MISMATCH, complaint)
}

fn find_mismatch(
    headers: &HeaderMap,
    request: &ClientMessage,
    schema_of: impl Fn(&str) -> Option<RawJson>,
) -> Result<(), String> {
    let method = request.method();
    check(headers, METHOD, Some(&method))?;
    let Some(name) = expected_name(&method, request) else { return Ok(()) };
    check(headers, NAME, Some(&name))?;
    let schema = schema_of(&name).filter(|_| method == "tools/call");
    // Almost no tool has such arguments, and the arguments of the others are not decoded.
    match schema.filter(|schema| memmem::find(schema.as_bytes(), b"x-mcp-header").is_some()) {
        Some(schema) => check_params(headers, request, &schema),
        None => Ok(()),
    }
}

/// Returns the value that `Mcp-Name` must repeat. An invalid name is left to the method.
fn expected_name(method: &str, request: &ClientMessage) -> Option<String> {
    let field = wharf_wire::mcp_name_param(method)?;
    serde_json::from_slice(request.param(field)?.as_bytes()).ok()
}

fn check_params(headers: &HeaderMap, request: &ClientMessage, schema: &RawJson) -> Result<(), String> {
    let schema: Value = serde_json::from_slice(schema.as_bytes()).unwrap_or_default();
    let arguments = request.param("arguments");
    let arguments = arguments.and_then(|arguments| serde_json::from_slice(arguments.as_bytes()).ok());
    for (name, argument) in required_headers(&schema, &arguments.unwrap_or_default()) {
        check(headers, &format!("Mcp-Param-{name}"), argument.as_deref())?;
    }
    Ok(())
}

/// Returns the headers that a schema requires, each with its expected value. `None` means that the header must be
/// absent.
fn required_headers(schema: &Value, arguments: &Map<String, Value>) -> Vec<(String, Option<String>)> {
    let none = Map::new();
    let mut found = Vec::new();
    for (name, property) in schema["properties"].as_object().unwrap_or(&none) {
        let argument = arguments.get(name).unwrap_or(&Value::Null);
        if let Some(header) = property["x-mcp-header"].as_str() {
            found.push((header.to_owned(), header_value(argument)));
        }
        found.extend(required_headers(property, argument.as_object().unwrap_or(&none)));
    }
    found
}

/// Formats an argument as a header value. `None` if it has none.
fn header_value(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) => Some(argument.to_string()),
        // 3.0 is an integer, too, and is written as 3.
        Value::Number(number) => {
            Some(number.as_f64().filter(|_| number.is_f64()).map_or(argument.to_string(), |float| format!("{float}")))
        }
        _ => None,
    }
}

fn check(headers: &HeaderMap, name: &str, expected: Option<&str>) -> Result<(), String> {
    let mut values = headers.get_all(name).iter();
    let mismatch = |complaint: &str| Err(format!("the header `{name}` {complaint}"));
    let said = match (values.next(), values.next()) {
        (None, _) if expected.is_none() => return Ok(()),
        (None, _) => return mismatch("is missing"),
        (Some(_), Some(_)) => return mismatch("comes more than once"),
        (Some(value), None) => value.to_str().ok().and_then(decode_value),
    };
    match (said, expected) {
        (None, _) => mismatch("cannot be read"),
        (Some(said), Some(expected)) if said == expected => Ok(()),
        _ => mismatch("does not say what the body says"),
    }
}

/// Decodes a header value, which may be wrapped in Base64.
fn decode_value(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(wrapped) => String::from_utf8(STANDARD.decode(wrapped).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks whether a header matches the call of a tool with one annotated argument.
    #[track_caller]
    fn check(argument: Value, header: Option<&str>, fits: bool) {
        let schema = json!({"properties": {"in": {"properties": {"it": {"x-mcp-header": "It"}}}}});
        let schema = RawJson::new_unchecked(schema.to_string());
        let params = json!({"name": "t", "arguments": {"in": {"it": argument}}});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let request = ClientMessage::parse(request.into()).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(METHOD, "tools/call".parse().unwrap());
        headers.insert(NAME, "t".parse().unwrap());
        if let Some(header) = header {
            headers.insert("mcp-param-it", header.parse().unwrap());
        }
        let found = check_rest(&headers, &request, |_| Some(schema.clone()));
        let code = found.err().and_then(|reply| reply.error_code);
        assert_eq!(code, (!fits).then_some(code::HEADER_MISMATCH), "{header:?}");
    }

    #[test]
    fn header_must_match_its_argument() {
        check(json!("north"), Some("north"), true);
        check(json!("north"), Some("North"), false);
        check(json!("north"), Some("=?base64?bm9ydGg=?="), true);
        check(json!("north"), Some("=?base64?bm9ydGg?="), false);
        check(json!("north"), Some("=?BASE64?bm9ydGg=?="), false);
        check(json!("nörd"), Some("=?base64?bsO2cmQ=?="), true);
        check(json!("=?base64?bm9ydGg=?="), Some("=?base64?bm9ydGg=?="), false);
        check(json!("north"), None, false);
        check(json!(""), Some(""), true);
        check(json!(""), None, false);
        check(json!(null), None, true);
        check(json!(null), Some(""), false);
        check(json!(42), Some("42"), true);
        check(json!(42.0), Some("42"), true);
        check(json!(42), Some("42.0"), false);
        check(json!(true), Some("true"), true);
        check(json!(true), Some("True"), false);
    }
}
