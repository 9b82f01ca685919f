//! Builds responses: JSON for a single reply, an event stream for more.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::event_stream::EventStream;
use super::feed::{EventFeed, FeedStart};
use crate::message::{
    HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR, UNSUPPORTED_VERSION,
};

/// Time to wait for a reply before the event stream starts without it, so that comments can keep the connection alive.
const STREAM_DELAY: Duration = Duration::from_millis(500);

/// Waits for the start of a feed, up to a time limit.
pub async fn wait_for_start(feed: &Arc<EventFeed>) -> FeedStart {
    tokio::time::timeout(STREAM_DELAY, feed.wait_for_start()).await.unwrap_or(FeedStart::More)
}

pub fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

pub fn json(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

pub fn events(reader: EventStream) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        // Some proxies buffer a whole response without this header.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::new(reader)).into_response()
}

/// Returns the HTTP status of a stateless reply (2026-07-28 basic/transports/streamable-http, "Errors").
pub fn stateless_status(reply: &str) -> StatusCode {
    match error_code(reply) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION | INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Returns the HTTP status of a reply in a session, where only invalid requests have an error status.
pub fn session_status(reply: &str) -> StatusCode {
    match error_code(reply) {
        Some(PARSE_ERROR | INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn error_code(reply: &str) -> Option<i64> {
    #[derive(Deserialize)]
    struct ReplyView {
        error: Option<ReplyErrorView>,
    }
    #[derive(Deserialize)]
    struct ReplyErrorView {
        code: i64,
    }
    serde_json::from_str::<ReplyView>(reply).ok()?.error.map(|fault| fault.code)
}
