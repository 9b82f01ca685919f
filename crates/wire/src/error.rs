//! JSON-RPC errors.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

/// Error codes defined by the protocol.
pub mod code {
    /// The message is not valid JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is not a valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Invalid parameters. Also unknown tools and, since 2026-07-28, unknown resources.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Internal server error.
    pub const INTERNAL: i64 = -32603;
    /// Unknown resource, before 2026-07-28.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A header and the body disagree (HTTP, since 2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request lacks a client capability the server needs (since 2026-07-28).
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The request names a revision the server does not speak (since 2026-07-28).
    pub const UNSUPPORTED_REVISION: i64 = -32022;
    /// The user must open a URL first (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// An error response, with code and data as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// The error message: untrusted text.
    pub message: String,
    /// Additional data.
    pub data: Option<RawJson>,
}

impl View for RpcError {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        struct WireRpcError<'a> {
            code: i64,
            #[serde(default)]
            message: String,
            #[serde(borrow, default)]
            data: Option<&'a RawValue>,
        }
        let shape: WireRpcError = raw.decode(bounds)?;
        Ok(Self { code: shape.code, message: shape.message, data: shape.data.map(|data| raw.slice_part(data)) })
    }
}
