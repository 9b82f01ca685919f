//! HTTP+SSE of 2024-11-05: one stream for all server messages, and a URL to post messages to.

use std::sync::Arc;

use http::{Response, StatusCode};

use super::event_stream::EventStream;
use super::refusal::HttpRefusal;
use super::responses::{self, ResponseBody};
use super::sessions::HttpSession;
use super::{HttpRequest, HttpSite};
use crate::admission::AuthenticatedClient;
use crate::message::ClientMessage;
use crate::service::Outbox;

pub(super) const PATH: &str = "/sse";

pub(super) const MESSAGES_PATH: &str = "/messages";

/// GET: opens a session, which lasts as long as its stream.
pub(super) fn open(site: &Arc<HttpSite>, client: &AuthenticatedClient) -> Result<Response<ResponseBody>, HttpRefusal> {
    let permit = site.admit_exchange()?;
    let connection = client.service.open_session().ok_or_else(|| HttpRefusal::busy("there are no sessions here"))?;
    let session = site.sessions.create(Arc::clone(&client.principal), connection);
    let session = session.map_err(|_| HttpRefusal::busy("cannot create a session"))?;
    site.sessions.add(&session);
    let (own, endpoint) = (Arc::clone(&session.streams.own), format!("{MESSAGES_PATH}?sessionId={}", session.id));
    let position = own.open();
    let hold = session.hold();
    let opened = OpenSession { site: Arc::clone(site), session };
    Ok(responses::events(
        EventStream::new(own, position, (opened, hold, permit)).with_opening_event("endpoint", &endpoint),
    ))
}

/// POST: a message of a session, answered on its stream.
pub(super) fn receive(site: &HttpSite, request: HttpRequest) -> Result<Response<ResponseBody>, HttpRefusal> {
    let query = request.query.unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
    let id = id.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "`sessionId` is missing"))?;
    let session = site.sessions.find(id, &request.client.principal);
    let session = session.ok_or_else(|| HttpRefusal::plain(StatusCode::NOT_FOUND, "session not found"))?;
    match ClientMessage::parse(request.body) {
        Ok(message) => session.connection.receive(message, Arc::clone(&session.streams.own) as _),
        Err(reply) => session.streams.own.send(reply),
    }
    Ok(responses::accepted())
}

/// A client on its stream. Dropping it ends the session.
struct OpenSession {
    site: Arc<HttpSite>,
    session: Arc<HttpSession>,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.site.sessions.end(&self.session.id);
        self.session.close();
    }
}
