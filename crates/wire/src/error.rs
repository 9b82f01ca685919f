//! What a peer says when it refuses.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Bounds, View};
use wharf_json::{DecodeError, Raw};

/// Codes the protocol gives a meaning to.
pub mod code {
    /// The text was no JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON was no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Parameters that do not fit; also unknown tools and, since 2026-07-28, unknown resources.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed by itself.
    pub const INTERNAL: i64 = -32603;
    /// Unknown resource, before 2026-07-28.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A header and the body disagree (HTTP, since 2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request lacks a client capability the server needs (since 2026-07-28).
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The request names a revision the server does not speak (since 2026-07-28).
    pub const UNSUPPORTED_REVISION: i64 = -32022;
    /// A page must be visited first (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// An error answer, with code and data as the peer sent them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The peer's code.
    pub code: i64,
    /// The peer's words: untrusted text.
    pub message: String,
    /// Whatever else it sent along.
    pub data: Option<Raw>,
}

impl View for RpcError {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Shape<'a> {
            code: i64,
            #[serde(default)]
            message: String,
            #[serde(borrow, default)]
            data: Option<&'a RawValue>,
        }
        let shape: Shape = raw.decode(bounds)?;
        Ok(Self { code: shape.code, message: shape.message, data: shape.data.map(|data| raw.part(data)) })
    }
}
