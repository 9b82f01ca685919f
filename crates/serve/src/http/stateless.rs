//! A POST of a stateless revision: one request and its response, without session state.

use std::sync::Arc;

use http::{Response, StatusCode};

use super::event_stream::EventStream;
use super::refusal::HttpRefusal;
use super::responses::{self, ResponseBody};
use super::streamable::wait_for_start;
use super::{HttpRequest, HttpSite, header_match};
use crate::event_feed::{FeedStart, RequestOutbox};
use crate::message::{ClientMessage, MessageKind, error_reply};
use crate::service::{ClientConnection, OutgoingMessage};

/// Answers a message on `connection`, which serves only this request.
///
/// # Errors
///
/// Fails if the message is invalid or there are too many exchanges.
pub(super) async fn receive(
    site: &HttpSite,
    connection: Arc<dyn ClientConnection>,
    request: &HttpRequest,
    message: ClientMessage,
) -> Result<Response<ResponseBody>, HttpRefusal> {
    match message.kind() {
        MessageKind::Request => check(&*connection, request, &message).map_err(HttpRefusal::bad_request)?,
        MessageKind::Notification => return Ok(responses::accepted()),
        MessageKind::Response => {
            return Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, "unexpected response: no request is pending"));
        }
        MessageKind::Batch => {
            let complaint = "a message is a JSON object";
            let reply = error_reply(&message.id(), wharf_wire::code::INVALID_REQUEST, complaint);
            return Err(HttpRefusal::bad_request(reply));
        }
    }
    let permit = site.admit_exchange()?;
    let (feed, out) = RequestOutbox::open(None);
    // If the client disconnects before the reply, this future is dropped, which cancels the request.
    let pending = CancelOnDisconnect(connection);
    pending.0.receive(message, out);
    Ok(match wait_for_start(site, &feed).await {
        FeedStart::Sole(reply) => responses::json(responses::stateless_status(&reply), reply.text),
        FeedStart::More | FeedStart::Nothing => {
            let position = feed.open();
            responses::events(EventStream::new(feed, position, (pending, permit)))
        }
    })
}

/// Rejects a request that does not describe itself or does not match its headers.
fn check(
    connection: &dyn ClientConnection,
    request: &HttpRequest,
    message: &ClientMessage,
) -> Result<(), OutgoingMessage> {
    header_match::check_version(&request.headers, message)?;
    connection.admit(message)?;
    header_match::check_rest(&request.headers, message, |tool| connection.input_schema(tool))
}

/// Cancels the request on drop.
struct CancelOnDisconnect(Arc<dyn ClientConnection>);

impl Drop for CancelOnDisconnect {
    fn drop(&mut self) {
        self.0.cancel_pending();
    }
}
