//! Messages of the control socket: JSON-RPC 2.0 without batches and notifications.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ControlRequest;
use super::lines::MAX_LINE_BYTES;
use crate::failure::Failure;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
/// Error code of a failed request; `data` holds the failure.
pub const FAILED: i64 = -32000;

/// A parsed method call.
#[derive(Debug, PartialEq, Eq)]
pub enum ControlCall {
    /// `hello`: identify the process.
    Hello,
    Asked(ControlRequest),
}

/// A JSON-RPC error object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ControlError {
    fn new(code: i64, message: &str) -> Self {
        Self { code, message: message.to_owned(), data: None }
    }

    pub fn from_failure(failure: &Failure, data: Value) -> Self {
        Self { code: FAILED, message: failure.error.message.clone(), data: Some(data) }
    }

    pub fn too_long() -> Self {
        Self::new(INVALID_REQUEST, "the line exceeds the size limit")
    }

    pub fn no_response() -> Self {
        Self::new(FAILED, "the request timed out or the host is shutting down")
    }
}

/// Encodes a request.
pub fn encode_request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into_bytes()
}

/// Parses a request line. Returns the id for the response, and the call.
pub fn parse_call(line: &[u8]) -> (Value, Result<ControlCall, ControlError>) {
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return (Value::Null, Err(ControlError::new(PARSE_ERROR, "the line is not valid JSON")));
    };
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let method = message.get("method").and_then(Value::as_str);
    match (id, method) {
        (Some(id), Some(method)) if message["jsonrpc"] == "2.0" => (id, parse_method(method, &message["params"])),
        (id, _) => {
            (id.unwrap_or_default(), Err(ControlError::new(INVALID_REQUEST, "the line is not a JSON-RPC 2.0 request")))
        }
    }
}

fn parse_method(method: &str, params: &Value) -> Result<ControlCall, ControlError> {
    Ok(match method {
        "hello" => ControlCall::Hello,
        "mcp.list" => ControlCall::Asked(ControlRequest::List),
        "mcp.get" => match params.get("id").and_then(Value::as_str) {
            Some(id) => ControlCall::Asked(ControlRequest::One(id.to_owned())),
            None => return Err(ControlError::new(INVALID_PARAMS, "`id` must be a server name")),
        },
        "mcp.reload" => ControlCall::Asked(ControlRequest::Reload),
        "run.cancel" => ControlCall::Asked(ControlRequest::Cancel),
        _ => return Err(ControlError::new(METHOD_NOT_FOUND, "unknown method")),
    })
}

/// Encodes a response. A response over the line limit becomes an error.
pub fn encode_response(id: &Value, outcome: Result<Value, ControlError>) -> Vec<u8> {
    let line =
        |(key, value): (&str, Value)| json!({ "jsonrpc": "2.0", "id": id, (key): value }).to_string().into_bytes();
    let error_member = |fault: &ControlError| ("error", serde_json::to_value(fault).unwrap_or_default());
    let encoded = line(match &outcome {
        Ok(result) => ("result", result.clone()),
        Err(fault) => error_member(fault),
    });
    if encoded.len() <= MAX_LINE_BYTES {
        encoded
    } else {
        line(error_member(&ControlError::new(FAILED, "the response exceeds the size limit")))
    }
}

/// Decodes a response line.
pub fn decode_response(line: &[u8]) -> Option<Result<Value, ControlError>> {
    let mut answer: Value = serde_json::from_slice(line).ok()?;
    match answer.get_mut("error") {
        Some(error) => serde_json::from_value(error.take()).ok().map(Err),
        None => answer.get_mut("result").map(|result| Ok(result.take())),
    }
}
