//! Rejected requests: an HTTP status, and the reason as a JSON-RPC error.

use http::{Response, StatusCode};
use serde_json::Value;
use wharf_wire::code;

use super::responses::{self, ResponseBody};
use crate::message::error_reply;
use crate::service::OutgoingMessage;

/// Rejection of a request.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    status: StatusCode,
    reply: OutgoingMessage,
}

impl HttpRefusal {
    /// Creates a rejection with the whole reply to send.
    pub fn new(status: StatusCode, reply: OutgoingMessage) -> Self {
        Self { status, reply }
    }

    /// Creates a rejection that does not depend on the body.
    pub fn plain(status: StatusCode, message: &str) -> Self {
        Self::new(status, error_reply(&Value::Null, code::INVALID_REQUEST, message))
    }

    pub fn busy(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error_reply(&Value::Null, code::INTERNAL, message))
    }

    pub fn bad_request(reply: OutgoingMessage) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reply)
    }

    pub fn into_response(self) -> Response<ResponseBody> {
        responses::json(self.status, self.reply.text)
    }
}
