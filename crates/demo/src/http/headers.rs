//! Headers that repeat parts of a stateless request's body (2026-07-28 basic/transports/streamable-http).
//!
//! Intermediaries may act on the headers without reading the body, so both must agree.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::message::{HEADER_MISMATCH, IncomingRequest, RpcError};
use crate::negotiation::declared_version;
use crate::server::HeaderParams;

pub const VERSION: &str = "MCP-Protocol-Version";
const METHOD: &str = "Mcp-Method";
const NAME: &str = "Mcp-Name";
const PARAM: &str = "mcp-param-";

/// Returns the arguments repeated in headers, undecoded.
pub fn header_params(headers: &HeaderMap) -> HeaderParams {
    let params = headers.iter().filter(|(name, _)| name.as_str().starts_with(PARAM));
    params.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect()
}

/// Checks the version header of a request that declares a version.
///
/// # Errors
///
/// Fails with a header mismatch.
pub fn check_version(headers: &HeaderMap, request: &IncomingRequest) -> Result<(), RpcError> {
    match declared_version(request) {
        Some(version) => check(headers, VERSION, Some(version)),
        None => Ok(()),
    }
}

/// Checks the other headers. `schema_of` returns the input schema of a tool.
///
/// # Errors
///
/// Fails with a header mismatch.
pub fn check_rest(
    headers: &HeaderMap,
    request: &IncomingRequest,
    schema_of: impl Fn(&str) -> Option<Value>,
) -> Result<(), RpcError> {
    check(headers, METHOD, Some(&request.method))?;
    let Some(name) = expected_name(request) else { return Ok(()) };
    check(headers, NAME, Some(name))?;
    match schema_of(name) {
        Some(schema) if request.method == "tools/call" => check_params(headers, request, &schema),
        _ => Ok(()),
    }
}

/// Returns the value that `Mcp-Name` must repeat. An invalid name is left to the method.
fn expected_name(request: &IncomingRequest) -> Option<&str> {
    let field = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    request.params.get(field)?.as_str()
}

fn check_params(headers: &HeaderMap, request: &IncomingRequest, schema: &Value) -> Result<(), RpcError> {
    let none = Map::new();
    let arguments = request.params.get("arguments").and_then(Value::as_object).unwrap_or(&none);
    for (name, argument) in required_headers(schema, arguments) {
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

fn check(headers: &HeaderMap, name: &str, expected: Option<&str>) -> Result<(), RpcError> {
    let mut values = headers.get_all(name).iter();
    let mismatch = |complaint: &str| Err(RpcError::new(HEADER_MISMATCH, format!("the header `{name}` {complaint}")));
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
        let arguments = json!({"in": {"it": argument}});
        let params = json!({"name": "t", "arguments": arguments}).as_object().unwrap().clone();
        let request = IncomingRequest { id: json!(1), method: "tools/call".to_owned(), params };
        let mut headers = HeaderMap::new();
        headers.insert(METHOD, "tools/call".parse().unwrap());
        headers.insert(NAME, "t".parse().unwrap());
        if let Some(header) = header {
            headers.insert("mcp-param-it", header.parse().unwrap());
        }
        let found = check_rest(&headers, &request, |_| Some(schema.clone()));
        assert_eq!(found.as_ref().err().map(|error| error.code), (!fits).then_some(HEADER_MISMATCH), "{header:?}");
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
