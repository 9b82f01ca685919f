//! Streamable HTTP on one URL: routes requests by era, and handles those of sessions.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header};
use tokio::time::timeout;
use wharf_wire::{Era, Revision};

use super::event_stream::EventStream;
use super::header_match::VERSION;
use super::refusal::HttpRefusal;
use super::responses::{self, ResponseBody};
use super::sessions::HttpSession;
use super::{HttpRequest, HttpSite, stateless};
use crate::event_feed::{EventFeed, FeedStart, RequestOutbox};
use crate::message::ClientMessage;
use crate::session_streams::OWN_STREAM;

pub(super) const PATH: &str = "/mcp";

const SESSION_ID: &str = "Mcp-Session-Id";
const LAST_EVENT_ID: &str = "Last-Event-ID";

type HttpResult = Result<Response<ResponseBody>, HttpRefusal>;

/// POST: one message, or in 2025-03-26 a batch.
pub(super) async fn receive(site: &HttpSite, request: HttpRequest) -> HttpResult {
    check_media(&request)?;
    let message = ClientMessage::parse(request.body.clone()).map_err(HttpRefusal::bad_request)?;
    let is_handshake = message.method() == "initialize" || request.header(SESSION_ID).is_some();
    if (!is_handshake || !request.client.service.has_sessions() || is_self_describing(&request, Some(&message)))
        && let Some(connection) = request.client.service.open_request(&request.headers)
    {
        return stateless::receive(site, connection, &request, message).await;
    }
    match request.header(SESSION_ID) {
        Some(_) => receive_in_session(site, &find_session(site, &request)?, message).await,
        None => open_session(site, &request, message).await,
    }
}

/// Reports whether a message belongs to the stateless era, by its body or its headers.
fn is_self_describing(request: &HttpRequest, message: Option<&ClientMessage>) -> bool {
    let is_stateless = |version: &str| version.parse::<Revision>().is_ok_and(|version| version.era() == Era::Stateless);
    message.is_some_and(|message| message.declared_version().is_some())
        || request.header(VERSION).is_some_and(is_stateless)
}

fn check_media(request: &HttpRequest) -> Result<(), HttpRefusal> {
    let content = request.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
    if !is_media(content, "application/json") {
        let complaint = "`Content-Type` must be `application/json`";
        return Err(HttpRefusal::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, complaint));
    }
    check_accept(request, &["application/json", "text/event-stream"])
}

fn check_accept(request: &HttpRequest, kinds: &[&str]) -> Result<(), HttpRefusal> {
    let named = || request.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_accepted = |kind: &&str| named().flat_map(|value| value.split(',')).any(|named| is_media(named, kind));
    if kinds.iter().all(is_accepted) {
        return Ok(());
    }
    Err(HttpRefusal::plain(StatusCode::NOT_ACCEPTABLE, &format!("`Accept` must name {}", kinds.join(" and "))))
}

fn is_media(value: &str, kind: &str) -> bool {
    value.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(kind))
}

/// Finds the session of a request and checks the version header against the session's revision.
fn find_session(site: &HttpSite, request: &HttpRequest) -> Result<Arc<HttpSession>, HttpRefusal> {
    let id = request.header(SESSION_ID);
    let id = id.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing"))?;
    let session = site.sessions.find(id, &request.client.principal);
    let session = session.ok_or_else(|| HttpRefusal::plain(StatusCode::NOT_FOUND, "session not found"))?;
    let agreed = session.connection.revision().map(Revision::as_str);
    match request.header(VERSION) {
        // 2025-06-18 basic/transports, "Protocol Version Header". Earlier revisions have none.
        Some(version) if Some(version) != agreed => {
            let complaint = "`MCP-Protocol-Version` is not the version that the session agreed on";
            Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, complaint))
        }
        _ => Ok(session),
    }
}

/// Answers the request that opens a session. An error opens none.
async fn open_session(site: &HttpSite, request: &HttpRequest, message: ClientMessage) -> HttpResult {
    let connection = request.client.service.open_session();
    let connection =
        connection.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "sessions are not supported"))?;
    if let Some(version) = request.header(VERSION)
        && version.parse::<Revision>().map_or(true, |version| version.era() == Era::Stateless)
    {
        return Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, "`MCP-Protocol-Version` is not supported"));
    }
    let (feed, out) = RequestOutbox::open(None);
    connection.receive(message, out);
    let FeedStart::Sole(reply) = feed.wait_for_start().await else {
        return Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, "the first message must be `initialize`"));
    };
    if connection.revision().is_none() {
        return Ok(responses::json(StatusCode::BAD_REQUEST, reply.text));
    }
    let session = site.sessions.create(Arc::clone(&request.client.principal), connection);
    let session = session.map_err(|_| HttpRefusal::busy("cannot create a session"))?;
    site.sessions.add(&session);
    let mut response = responses::json(StatusCode::OK, reply.text);
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert("mcp-session-id", id);
    }
    Ok(response)
}

/// Handles a message in its session. The client can resume the stream later.
async fn receive_in_session(site: &HttpSite, session: &Arc<HttpSession>, message: ClientMessage) -> HttpResult {
    let permit = site.admit_exchange()?;
    let expects_response = message.has_request();
    let hold = session.hold();
    let (feed, out) = RequestOutbox::open(Some(Arc::clone(&session.streams)));
    session.connection.receive(message, out);
    Ok(match wait_for_start(site, &feed).await {
        FeedStart::Sole(reply) => responses::json(responses::session_status(&reply), reply.text),
        FeedStart::Nothing if !expects_response => responses::accepted(),
        // A cancelled request has no reply: its stream just ends.
        FeedStart::More | FeedStart::Nothing => {
            let (number, position) = (session.streams.store(&feed), feed.open());
            let reader = EventStream::new(feed, position, (permit, hold)).with_event_ids(number);
            responses::events(prime_if_supported(reader, session))
        }
    })
}

/// Waits for the start of a feed, up to the time at which a stream opens without a message.
pub(super) async fn wait_for_start(site: &HttpSite, feed: &EventFeed) -> FeedStart {
    timeout(site.limits.stream_delay, feed.wait_for_start()).await.unwrap_or(FeedStart::More)
}

/// Adds the priming event from 2025-11-25 on. Older clients do not expect an event without a message.
fn prime_if_supported(reader: EventStream, session: &HttpSession) -> EventStream {
    let has_priming = session.connection.revision().is_some_and(|revision| revision >= Revision::V2025_11_25);
    if has_priming { reader.with_priming_event() } else { reader }
}

/// GET: opens the session's own stream, or resumes any of its streams.
pub(super) fn open_stream(site: &HttpSite, request: &HttpRequest) -> HttpResult {
    if !has_session(request) {
        return Ok(responses::method_not_allowed("POST"));
    }
    check_accept(request, &["text/event-stream"])?;
    let session = find_session(site, request)?;
    let permit = site.admit_exchange()?;
    let Some(last) = request.header(LAST_EVENT_ID) else {
        let own = Arc::clone(&session.streams.own);
        let position = own.open();
        let reader = EventStream::new(own, position, (permit, session.hold())).with_event_ids(OWN_STREAM);
        return Ok(responses::events(prime_if_supported(reader, &session)));
    };
    let resumed = session.streams.resume(last);
    let (stream, feed, position) =
        resumed.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "that event is no longer available"))?;
    Ok(responses::events(EventStream::new(feed, position, (permit, session.hold())).with_event_ids(stream)))
}

/// DELETE: ends a session.
pub(super) fn end_session(site: &HttpSite, request: &HttpRequest) -> HttpResult {
    if !has_session(request) {
        return Ok(responses::method_not_allowed("POST"));
    }
    let session = find_session(site, request)?;
    site.sessions.end(&session.id);
    Ok(responses::empty(StatusCode::NO_CONTENT))
}

/// Reports whether a request belongs to a session. Requests of a stateless revision never do.
fn has_session(request: &HttpRequest) -> bool {
    request.client.service.has_sessions() && request.header(SESSION_ID).is_some() && !is_self_describing(request, None)
}
