//! How an answer leaves: as JSON if it is all there is to say, as a stream of events if there is more.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::feed::{Beginning, Feed};
use super::reader::Reader;
use crate::message::{
    HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR, UNSUPPORTED_VERSION,
};

/// How long an answer may take before its stream begins without it, so that comments can keep it alive.
const PATIENCE: Duration = Duration::from_millis(500);

/// How the answer in a feed is to leave.
pub async fn beginning(feed: &Arc<Feed>) -> Beginning {
    tokio::time::timeout(PATIENCE, feed.beginning()).await.unwrap_or(Beginning::More)
}

pub fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

pub fn json(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

pub fn events(reader: Reader) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        // Some proxies collect a whole response unless told otherwise.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::new(reader)).into_response()
}

/// The status of a reply in the stateless era (2026-07-28 basic/transports/streamable-http, "Errors").
pub fn stateless_status(reply: &str) -> StatusCode {
    match error_code(reply) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION | INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The status of a reply in a session, where only what is no request is the status's business.
pub fn session_status(reply: &str) -> StatusCode {
    match error_code(reply) {
        Some(PARSE_ERROR | INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn error_code(reply: &str) -> Option<i64> {
    #[derive(Deserialize)]
    struct Reply {
        error: Option<Fault>,
    }
    #[derive(Deserialize)]
    struct Fault {
        code: i64,
    }
    serde_json::from_str::<Reply>(reply).ok()?.error.map(|fault| fault.code)
}
