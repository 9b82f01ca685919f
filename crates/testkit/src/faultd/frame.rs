//! Messages as text: parsing of input, and output that faults can modify byte by byte.

use serde_json::{Value, json};

/// A parsed message from the client.
pub struct ClientMessage {
    /// Present on requests and responses.
    pub id: Option<Value>,
    /// Empty on a response.
    pub method: String,
    pub params: Value,
    /// Error code of an error response.
    pub error: Option<i64>,
}

impl ClientMessage {
    /// Parses one line; returns `None` if it is not a JSON object.
    pub fn parse(line: &[u8]) -> Option<ClientMessage> {
        let mut body: Value = serde_json::from_slice(line).ok()?;
        let fields = body.as_object_mut()?;
        Some(ClientMessage {
            id: fields.remove("id"),
            method: fields.get("method").and_then(Value::as_str).unwrap_or_default().to_owned(),
            params: fields.remove("params").unwrap_or_default(),
            error: fields.get("error").map(|error| error["code"].as_i64().unwrap_or_default()),
        })
    }

    pub fn is_method(&self, method: &str) -> bool {
        self.method == method
    }

    pub fn is_response(&self) -> bool {
        self.method.is_empty()
    }

    pub fn is_request(&self) -> bool {
        !self.is_response() && self.id.is_some()
    }

    /// Returns the id, or null if it is missing.
    pub fn id(&self) -> Value {
        self.id.clone().unwrap_or_default()
    }

    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// Returns an argument of a tool call.
    pub fn argument(&self, name: &str) -> &Value {
        &self.params["arguments"][name]
    }
}

/// A JSON-RPC error to respond with.
pub struct ErrorReply {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl ErrorReply {
    pub fn new(code: i64, message: impl Into<String>) -> ErrorReply {
        ErrorReply { code, message: message.into(), data: None }
    }
}

/// Formats a response. It starts with the version and the id, in this order: [`with_id`] relies on it.
pub fn result(id: &Value, result: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub fn error(id: &Value, refusal: &ErrorReply) -> String {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if let Some(data) = &refusal.data {
        error["data"] = data.clone();
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

pub fn request(id: &str, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#)
}

pub fn notification(method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// Returns a harmless notification, for faults that need a line to modify.
pub fn harmless_notification() -> String {
    notification("notifications/message", &json!({ "level": "info", "logger": "faultd", "data": "chatter" }))
}

/// Replaces the id of a response with `token`, or removes it if `token` is `None`.
pub fn with_id(line: &str, id: &Value, token: Option<&str>) -> String {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
    let rest = line.strip_prefix(&head).unwrap_or(line);
    match token {
        Some(token) => format!(r#"{{"jsonrpc":"2.0","id":{token},{rest}"#),
        None => format!(r#"{{"jsonrpc":"2.0",{rest}"#),
    }
}

/// Inserts `fragment`, such as `"key":0`, as the first member of the result, the params or the error.
pub fn inject(line: &str, fragment: &[u8]) -> Vec<u8> {
    let (head, rest) = line.split_at(payload_start(line));
    let mut bytes = Vec::with_capacity(line.len() + fragment.len() + 1);
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(fragment);
    if !rest.starts_with('}') {
        bytes.push(b',');
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Pads a message to exactly `size` bytes; a longer message stays unchanged.
pub fn pad_to(line: &str, size: usize) -> Vec<u8> {
    let bare = inject(line, br#""pad":"""#).len();
    let filler = "a".repeat(size.saturating_sub(bare));
    inject(line, format!(r#""pad":"{filler}""#).as_bytes())
}

/// Returns the position of the first member of the message's payload.
pub fn payload_start(line: &str) -> usize {
    [r#""result":{"#, r#""params":{"#, r#""error":{"#]
        .iter()
        .find_map(|key| line.find(key).map(|at| at + key.len()))
        .unwrap_or(1)
}
