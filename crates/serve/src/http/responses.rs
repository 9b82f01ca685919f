//! Builds responses: JSON for a single reply, an event stream for more.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use wharf_wire::{Id, code, scan};

use super::event_stream::EventStream;
use super::timed_stream::ActiveRequest;
use crate::service::OutgoingMessage;

/// Body of a response.
pub(super) enum ResponseBody {
    Text(Bytes),
    Events(Box<EventStream>),
}

/// A body and the request that it answers, which ends with it.
pub(super) struct AnsweringBody {
    pub body: ResponseBody,
    pub _request: ActiveRequest,
}

impl Body for AnsweringBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Text(text) => {
                let text = std::mem::take(text);
                Poll::Ready((!text.is_empty()).then(|| Ok(Frame::data(text))))
            }
            Self::Events(events) => events.poll_text(context).map(|text| text.map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    text(status, Bytes::new())
}

pub(super) fn accepted() -> Response<ResponseBody> {
    empty(StatusCode::ACCEPTED)
}

pub(super) fn method_not_allowed(allowed: &'static str) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

pub(super) fn unauthorized() -> Response<ResponseBody> {
    let mut response = empty(StatusCode::UNAUTHORIZED);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Ends the connection after this response.
pub(super) fn closing(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

pub(super) fn json(status: StatusCode, body: Bytes) -> Response<ResponseBody> {
    let mut response = text(status, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn events(reader: EventStream) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Events(Box::new(reader)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Some proxies buffer a whole response without this header.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

fn text(status: StatusCode, body: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Text(body));
    *response.status_mut() = status;
    response
}

/// Returns the HTTP status of a stateless reply (2026-07-28 basic/transports/streamable-http, "Errors").
pub(super) fn stateless_status(reply: &OutgoingMessage) -> StatusCode {
    match reply.error_code {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::PARSE
            | code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CAPABILITY
            | code::UNSUPPORTED_REVISION,
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Returns the HTTP status of a reply in a session. Only a message that could not be accepted has an error status: its
/// reply names no request. Errors of the servers behind this one do.
pub(super) fn session_status(reply: &OutgoingMessage) -> StatusCode {
    let names_no_request = || {
        let envelope = scan(&reply.text).ok();
        envelope.is_none_or(|envelope| matches!(envelope.id(&reply.text), None | Some(Id::Null)))
    };
    match reply.error_code {
        Some(code::PARSE | code::INVALID_REQUEST) if names_no_request() => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::message::error_reply;

    #[test]
    fn error_of_a_request_in_a_session_is_not_an_http_error() {
        for (id, code, expected) in [
            (json!(7), code::INVALID_REQUEST, StatusCode::OK),
            (json!("a"), code::PARSE, StatusCode::OK),
            (json!(7), code::INTERNAL, StatusCode::OK),
            (Value::Null, code::INVALID_REQUEST, StatusCode::BAD_REQUEST),
            (Value::Null, code::INTERNAL, StatusCode::OK),
        ] {
            assert_eq!(session_status(&error_reply(&id, code, "no")), expected, "{id} {code}");
        }
    }
}
