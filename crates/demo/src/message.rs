//! JSON-RPC for this server: classifies messages and builds replies.
//!
//! Defines requests, errors and the [`Outbox`]. Knows no methods.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
pub const MISSING_CAPABILITY: i64 = -32021;
pub const UNSUPPORTED_VERSION: i64 = -32022;
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Sends messages to the client. A transport has one for each connection or exchange.
pub trait Outbox: Send + Sync {
    /// Sends one message. A message that can no longer be delivered is dropped silently.
    fn send(&self, message: Value);

    /// Returns the outbox for messages that are unrelated to the exchange or outlive it. `None` by default.
    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        None
    }
}

/// A classified message from the client.
pub enum IncomingMessage {
    Request(IncomingRequest),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The response to a request of the server: an object with `result` or `error`.
    Response {
        id: Value,
        response: Value,
    },
    /// A malformed notification, which is ignored.
    Ignored,
}

pub struct IncomingRequest {
    pub id: Value,
    pub method: String,
    pub params: Map<String, Value>,
}

/// A JSON-RPC error without an id.
#[derive(Debug)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Returns the error reply to the request `id`, which may be null.
    pub fn reply(self, id: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": self.to_json()})
    }

    pub fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// Returns the reply with `result` to the request `id`.
pub fn result_reply(id: Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Classifies a message.
///
/// # Errors
///
/// Returns the whole error reply.
pub fn classify(message: Value) -> Result<IncomingMessage, Value> {
    let Value::Object(mut fields) = message else {
        return Err(refuse(Value::Null, "a message is a JSON object"));
    };
    let id = fields.remove("id");
    // Repeat only valid request ids in an error.
    let usable_id = id.clone().filter(is_request_id);
    let id_or_null = usable_id.clone().unwrap_or(Value::Null);
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(refuse(id_or_null, "`jsonrpc` must be \"2.0\""));
    }
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return Err(refuse(id_or_null, "`method` must be a string")),
        None if fields.contains_key("result") || fields.contains_key("error") => {
            return Ok(IncomingMessage::Response { id: id_or_null, response: fields.into() });
        }
        None => return Err(refuse(id_or_null, "`method` is missing")),
    };
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        // A notification is never answered, not even a malformed one.
        Some(_) if id.is_none() => return Ok(IncomingMessage::Ignored),
        Some(_) => {
            return Err(RpcError::invalid_params("`params` must be an object").reply(id_or_null));
        }
    };
    match (id, usable_id) {
        (None, _) => Ok(IncomingMessage::Notification { method, params }),
        (Some(_), Some(id)) => Ok(IncomingMessage::Request(IncomingRequest { id, method, params })),
        (Some(_), None) => Err(refuse(Value::Null, "`id` must be a string or an integer")),
    }
}

/// Reports whether `value` is a valid request id: a string or an integer, not null.
pub fn is_request_id(value: &Value) -> bool {
    value.is_string() || value.is_i64() || value.is_u64()
}

fn refuse(id: Value, message: &str) -> Value {
    RpcError::new(INVALID_REQUEST, message).reply(id)
}

/// Collects the replies of a batch and sends them as one array when the last reference is dropped.
///
/// Every member holds a reference, also long calls, so the last one to finish or to be cancelled sends the array.
/// Notifications are sent immediately, since progress is useless after the end.
pub struct BatchOutbox {
    out: Arc<dyn Outbox>,
    replies: Mutex<Vec<Value>>,
}

impl BatchOutbox {
    pub fn new(out: Arc<dyn Outbox>) -> Self {
        Self { out, replies: Mutex::default() }
    }
}

impl Outbox for BatchOutbox {
    fn send(&self, message: Value) {
        if message.get("method").is_some() {
            self.out.send(message);
        } else {
            lock_unpoisoned(&self.replies).push(message);
        }
    }

    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        self.out.session_outbox()
    }
}

impl Drop for BatchOutbox {
    fn drop(&mut self) {
        let replies = std::mem::take(&mut *lock_unpoisoned(&self.replies));
        if !replies.is_empty() {
            self.out.send(Value::Array(replies));
        }
    }
}

/// Locks a mutex, ignoring poisoning: no panic leaves partial changes behind.
pub fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{IncomingMessage, classify};

    fn check(message: Value, expected: &str) {
        let found = match classify(message.clone()) {
            Ok(IncomingMessage::Request(request)) => format!("request {}", request.id),
            Ok(IncomingMessage::Notification { method, .. }) => format!("notification {method}"),
            Ok(IncomingMessage::Response { id, .. }) => format!("response {id}"),
            Ok(IncomingMessage::Ignored) => "ignored".to_owned(),
            Err(reply) => format!("{} for {}", reply["error"]["code"], reply["id"]),
        };
        assert_eq!(found, expected, "{message}");
    }

    #[test]
    fn messages_are_classified() {
        check(json!({"jsonrpc": "2.0", "id": 1, "method": "a"}), "request 1");
        check(json!({"jsonrpc": "2.0", "id": "x", "method": "a"}), "request \"x\"");
        check(json!({"jsonrpc": "2.0", "method": "a"}), "notification a");
        check(json!({"jsonrpc": "2.0", "method": "a", "params": []}), "ignored");
        check(json!({"jsonrpc": "2.0", "id": 1, "result": {}}), "response 1");
        check(json!({"jsonrpc": "2.0", "id": null, "error": {}}), "response null");
        check(json!({"jsonrpc": "2.0", "id": null, "method": "a"}), "-32600 for null");
        check(json!({"jsonrpc": "2.0", "id": 1.5, "method": "a"}), "-32600 for null");
        check(json!({"jsonrpc": "2.0", "id": 1, "method": 2}), "-32600 for 1");
        check(json!({"jsonrpc": "2.0", "id": 1}), "-32600 for 1");
        check(json!({"jsonrpc": "1.0", "id": 1, "method": "a"}), "-32600 for 1");
        check(json!({"jsonrpc": "2.0", "id": 1, "method": "a", "params": 3}), "-32602 for 1");
        check(json!(42), "-32600 for null");
    }
}
