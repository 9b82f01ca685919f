//! Requests that get no further: a status, and the reason as JSON-RPC has it.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::message::{INTERNAL_ERROR, INVALID_REQUEST, RpcError};

/// Why a request is not carried out.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    reply: Value,
}

impl Refusal {
    /// A refusal with the whole reply to send along.
    pub fn new(status: StatusCode, reply: Value) -> Self {
        Self { status, reply }
    }

    /// A refusal of a request as such, whatever its body says.
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

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, [(header::CONTENT_TYPE, "application/json")], self.reply.to_string()).into_response()
    }
}
