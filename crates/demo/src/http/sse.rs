//! HTTP+SSE of 2024-11-05: one stream for all server messages, and a URL to post messages to.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

use super::event_stream::EventStream;
use super::refusal::HttpRefusal;
use super::sessions::HttpSession;
use super::{HttpSite, responses};
use crate::message::Outbox;

pub const PATH: &str = "/sse";

const MESSAGES: &str = "/messages";

pub fn routes(site: &Arc<HttpSite>) -> Router {
    Router::new().route(PATH, get(open)).route(MESSAGES, post(receive)).with_state(Arc::clone(site))
}

/// GET: opens a session, which lasts as long as its stream.
async fn open(State(site): State<Arc<HttpSite>>) -> Result<Response, HttpRefusal> {
    let permit = site.admit_exchange()?;
    let server = site.root.for_session().ok_or_else(|| HttpRefusal::busy("there are no sessions here"))?;
    let session = Arc::new(HttpSession::new(server).map_err(|_| HttpRefusal::busy("no session can be made"))?);
    site.sessions.add(&session);
    let (own, endpoint) = (Arc::clone(&session.own), format!("{MESSAGES}?sessionId={}", session.id));
    let bookmark = own.open();
    let visit = SseConnection { site, session };
    Ok(responses::events(EventStream::new(own, bookmark, (visit, permit)).with_opening_event("endpoint", &endpoint)))
}

/// POST: a message of a session, answered on its stream.
async fn receive(
    State(site): State<Arc<HttpSite>>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, HttpRefusal> {
    let query = query.unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
    let id = id.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "`sessionId` is missing"))?;
    let session = site.sessions.find(id);
    let session = session.ok_or_else(|| HttpRefusal::plain(StatusCode::NOT_FOUND, "there is no such session"))?;
    let out: Arc<dyn Outbox> = Arc::clone(&session.own) as _;
    session.server.handle(&body, &out);
    Ok(responses::accepted())
}

/// A client on its stream. Dropping it ends the session.
struct SseConnection {
    site: Arc<HttpSite>,
    session: Arc<HttpSession>,
}

impl Drop for SseConnection {
    fn drop(&mut self) {
        self.site.sessions.end(&self.session.id);
        self.session.close();
    }
}
