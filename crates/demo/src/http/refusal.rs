//! Rejected requests: an HTTP status, and the reason as a JSON-RPC error.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::message::{INTERNAL_ERROR, INVALID_REQUEST, RpcError};

/// Rejection of a request.
#[derive(Debug)]
pub struct HttpRefusal {
    status: StatusCode,
    reply: Value,
}

impl HttpRefusal {
    /// Creates a rejection with the whole reply to send.
    pub fn new(status: StatusCode, reply: Value) -> Self {
        Self { status, reply }
    }

    /// Creates a rejection that does not depend on the body.
    pub fn plain(status: StatusCode, message: &str) -> Self {
        Self::new(status, RpcError::new(INVALID_REQUEST, message).reply(Value::Null))
    }

    pub fn busy(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, RpcError::new(INTERNAL_ERROR, message).reply(Value::Null))
    }

    pub fn bad_request(reply: Value) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reply)
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        (self.status, [(header::CONTENT_TYPE, "application/json")], self.reply.to_string()).into_response()
    }
}
