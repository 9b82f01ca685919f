//! A POST of a stateless revision: one request and its response, without session state.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::Value;

use super::event_stream::EventStream;
use super::feed::FeedStart;
use super::outbox::CallOutbox;
use super::refusal::HttpRefusal;
use super::{HttpSite, headers, responses};
use crate::message::{IncomingMessage, IncomingRequest, RpcError, classify};
use crate::server::DemoServer;

/// Answers a message on `server`, which serves only this request.
///
/// # Errors
///
/// Fails if the message is invalid or there are too many exchanges.
pub async fn receive(
    site: &HttpSite,
    server: DemoServer,
    headers: &HeaderMap,
    message: Value,
) -> Result<Response, HttpRefusal> {
    let incoming = classify(message).map_err(HttpRefusal::bad_request)?;
    match &incoming {
        IncomingMessage::Request(request) => {
            let checked = check(&server, headers, request);
            checked.map_err(|error| HttpRefusal::bad_request(error.reply(request.id.clone())))?;
        }
        IncomingMessage::Notification { .. } | IncomingMessage::Ignored => return Ok(responses::accepted()),
        IncomingMessage::Response { .. } => {
            return Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, "unexpected response: no request is pending"));
        }
    }
    let permit = site.admit_exchange()?;
    let (feed, out) = CallOutbox::open(None);
    // If the client disconnects before the reply, this future is dropped, which cancels the call.
    let attendance = CancelOnDisconnect(Arc::new(server));
    attendance.0.handle_incoming(incoming, &out);
    drop(out);
    Ok(match responses::wait_for_start(&feed).await {
        FeedStart::Sole(reply) => responses::json(responses::stateless_status(&reply), reply),
        FeedStart::More | FeedStart::Nothing => {
            let bookmark = feed.open();
            responses::events(EventStream::new(feed, bookmark, (attendance, permit)))
        }
    })
}

/// Rejects a request that does not describe itself or does not match its headers.
fn check(server: &DemoServer, headers: &HeaderMap, request: &IncomingRequest) -> Result<(), RpcError> {
    headers::check_version(headers, request)?;
    server.admit(request)?;
    headers::check_rest(headers, request, |tool| server.input_schema(tool))
}

/// Cancels the call on drop.
struct CancelOnDisconnect(Arc<DemoServer>);

impl Drop for CancelOnDisconnect {
    fn drop(&mut self) {
        self.0.cancel_pending();
    }
}
