//! A POST of a stateless revision: one request and its response, without session state.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::Value;

use super::feed::Beginning;
use super::outbox::CallOutbox;
use super::reader::Reader;
use super::refusal::Refusal;
use super::{Site, answer, headers};
use crate::message::{Incoming, Request, RpcError, classify};
use crate::server::DemoServer;

/// Answers a message on `server`, which serves only this request.
///
/// # Errors
///
/// Fails if the message is invalid or there are too many exchanges.
pub async fn receive(
    site: &Site,
    server: DemoServer,
    headers: &HeaderMap,
    message: Value,
) -> Result<Response, Refusal> {
    let incoming = classify(message).map_err(Refusal::bad_request)?;
    match &incoming {
        Incoming::Request(request) => {
            let checked = check(&server, headers, request);
            checked.map_err(|error| Refusal::bad_request(error.reply(request.id.clone())))?;
        }
        Incoming::Notification { .. } | Incoming::Ignored => return Ok(answer::accepted()),
        Incoming::Response { .. } => return Err(Refusal::plain(StatusCode::BAD_REQUEST, "nobody asked anything")),
    }
    let permit = site.admit_exchange()?;
    let (feed, out) = CallOutbox::open(None);
    // If the client disconnects before the reply, this future is dropped, which cancels the call.
    let attendance = CancelOnDisconnect(Arc::new(server));
    attendance.0.handle_incoming(incoming, &out);
    drop(out);
    Ok(match answer::beginning(&feed).await {
        Beginning::Sole(reply) => answer::json(answer::stateless_status(&reply), reply),
        Beginning::More | Beginning::Nothing => {
            let bookmark = feed.open();
            answer::events(Reader::new(feed, bookmark, (attendance, permit)))
        }
    })
}

/// Rejects a request that does not describe itself or does not match its headers.
fn check(server: &DemoServer, headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    headers::check_version(headers, request)?;
    server.admit(request)?;
    headers::check_rest(headers, request, |tool| server.input_schema(tool))
}

/// Cancels the call on drop.
struct CancelOnDisconnect(Arc<DemoServer>);

impl Drop for CancelOnDisconnect {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}
