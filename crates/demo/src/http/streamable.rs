//! Streamable HTTP on one URL: routes requests by era, and handles those of sessions.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::Value;

use super::event_stream::EventStream;
use super::feed::FeedStart;
use super::headers::{self, VERSION};
use super::outbox::CallOutbox;
use super::refusal::HttpRefusal;
use super::sessions::{HttpSession, OWN_STREAM};
use super::{HttpSite, responses, stateless};
use crate::negotiation::PROTOCOL_VERSION_KEY;
use crate::revision::DemoRevision;
use crate::server::not_json;

pub const PATH: &str = "/mcp";

const SESSION_ID: &str = "Mcp-Session-Id";
const LAST_EVENT_ID: &str = "Last-Event-ID";

pub fn routes(site: &Arc<HttpSite>) -> Router {
    Router::new().route(PATH, get(open_stream).post(receive).delete(end_session)).with_state(Arc::clone(site))
}

/// POST: one message, or in 2025-03-26 a batch.
async fn receive(State(site): State<Arc<HttpSite>>, headers: HeaderMap, body: Bytes) -> Result<Response, HttpRefusal> {
    check_media(&headers)?;
    let message = serde_json::from_slice(&body);
    let message: Value = message.map_err(|error| HttpRefusal::bad_request(not_json(&error).reply(Value::Null)))?;
    let is_handshake = message["method"] == "initialize" || header_text(&headers, SESSION_ID).is_some();
    let is_stateless = is_self_describing(&headers, &message) || !is_handshake || !site.has_sessions;
    if is_stateless && let Some(server) = site.root.for_request(headers::header_params(&headers)) {
        return stateless::receive(&site, server, &headers, message).await;
    }
    match header_text(&headers, SESSION_ID) {
        Some(_) => receive_in_session(&site, &find_session(&site, &headers)?, message).await,
        None => open_session(&site, &headers, message).await,
    }
}

/// Reports whether a message belongs to the stateless era, by its body or its headers.
fn is_self_describing(headers: &HeaderMap, message: &Value) -> bool {
    let is_stateless = |version| DemoRevision::parse(version).is_some_and(DemoRevision::is_stateless);
    message["params"]["_meta"].get(PROTOCOL_VERSION_KEY).is_some()
        || header_text(headers, VERSION).is_some_and(is_stateless)
}

fn check_media(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let content = header_text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    if !is_media(content, "application/json") {
        return Err(HttpRefusal::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "`Content-Type` must be `application/json`",
        ));
    }
    check_accept(headers, &["application/json", "text/event-stream"])
}

fn check_accept(headers: &HeaderMap, kinds: &[&str]) -> Result<(), HttpRefusal> {
    let named = || headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_accepted = |kind: &&str| named().flat_map(|value| value.split(',')).any(|named| is_media(named, kind));
    if kinds.iter().all(is_accepted) {
        return Ok(());
    }
    Err(HttpRefusal::plain(StatusCode::NOT_ACCEPTABLE, &format!("`Accept` must name {}", kinds.join(" and "))))
}

fn is_media(value: &str, kind: &str) -> bool {
    value.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(kind))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Finds the session of a request and checks the version header against the session's revision.
fn find_session(site: &HttpSite, headers: &HeaderMap) -> Result<Arc<HttpSession>, HttpRefusal> {
    let id = header_text(headers, SESSION_ID);
    let id = id.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing"))?;
    let session = site.sessions.find(id);
    let session = session.ok_or_else(|| HttpRefusal::plain(StatusCode::NOT_FOUND, "session not found"))?;
    let agreed = session.server.negotiated().map(DemoRevision::as_str);
    match header_text(headers, VERSION) {
        // 2025-06-18 basic/transports, "Protocol Version Header". Earlier revisions have none.
        Some(version) if Some(version) != agreed => {
            let complaint = "`MCP-Protocol-Version` is not the version that the session agreed on";
            Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, complaint))
        }
        _ => Ok(session),
    }
}

/// Answers the request that opens a session. An error opens none.
async fn open_session(site: &HttpSite, headers: &HeaderMap, message: Value) -> Result<Response, HttpRefusal> {
    let server = site.root.for_session();
    let server = server.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "sessions are not supported"))?;
    if let Some(version) = header_text(headers, VERSION)
        && DemoRevision::parse(version).is_none_or(DemoRevision::is_stateless)
    {
        return Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, "`MCP-Protocol-Version` is not supported"));
    }
    let (feed, out) = CallOutbox::open(None);
    server.handle_json(message, &out);
    drop(out);
    let FeedStart::Sole(reply) = feed.wait_for_start().await else {
        return Err(HttpRefusal::plain(StatusCode::BAD_REQUEST, "the first message must be `initialize`"));
    };
    if server.negotiated().is_none() {
        return Ok(responses::json(StatusCode::BAD_REQUEST, reply));
    }
    let session = Arc::new(HttpSession::new(server).map_err(|_| HttpRefusal::busy("cannot create a session"))?);
    site.sessions.add(&session);
    let mut response = responses::json(StatusCode::OK, reply);
    let id = HeaderValue::from_str(&session.id).expect("an id is hexadecimal");
    response.headers_mut().insert("mcp-session-id", id);
    Ok(response)
}

/// Handles a message in its session. The client can resume the stream later.
async fn receive_in_session(
    site: &HttpSite,
    session: &Arc<HttpSession>,
    message: Value,
) -> Result<Response, HttpRefusal> {
    let permit = site.admit_exchange()?;
    let asks = has_request(&message);
    let (feed, out) = CallOutbox::open(Some(Arc::clone(&session.own)));
    session.server.handle_json(message, &out);
    drop(out);
    Ok(match responses::wait_for_start(&feed).await {
        FeedStart::Sole(reply) => responses::json(responses::session_status(&reply), reply),
        FeedStart::Nothing if !asks => responses::accepted(),
        // A cancelled request has no reply: its stream just ends.
        FeedStart::More | FeedStart::Nothing => {
            let (number, bookmark) = (session.store_stream(&feed), feed.open());
            let reader = EventStream::new(feed, bookmark, permit).with_event_ids(number);
            responses::events(prime_if_supported(reader, session))
        }
    })
}

/// Reports whether a message, or one of a batch, expects a reply.
fn has_request(message: &Value) -> bool {
    let is_request = |message: &Value| message.get("method").is_some() && message.get("id").is_some();
    message.as_array().map_or_else(|| is_request(message), |batch| batch.iter().any(is_request))
}

/// Adds the priming event from 2025-11-25 on. Older clients do not expect an event without a message.
fn prime_if_supported(reader: EventStream, session: &HttpSession) -> EventStream {
    let knows_priming = session.server.negotiated().is_some_and(DemoRevision::has_priming_events);
    if knows_priming { reader.with_priming_event() } else { reader }
}

/// GET: opens the session's own stream, or resumes any of its streams.
async fn open_stream(State(site): State<Arc<HttpSite>>, headers: HeaderMap) -> Result<Response, HttpRefusal> {
    if !has_session(&site, &headers) {
        return Ok(method_not_allowed());
    }
    check_accept(&headers, &["text/event-stream"])?;
    let session = find_session(&site, &headers)?;
    let permit = site.admit_exchange()?;
    let Some(last) = header_text(&headers, LAST_EVENT_ID) else {
        let own = Arc::clone(&session.own);
        let bookmark = own.open();
        return Ok(responses::events(prime_if_supported(
            EventStream::new(own, bookmark, permit).with_event_ids(OWN_STREAM),
            &session,
        )));
    };
    let resumed = session.resume(last);
    let resumed =
        resumed.ok_or_else(|| HttpRefusal::plain(StatusCode::BAD_REQUEST, "that event is no longer available"));
    resumed.map(|(stream, feed, bookmark)| {
        responses::events(EventStream::new(feed, bookmark, permit).with_event_ids(stream))
    })
}

/// DELETE: ends a session.
async fn end_session(State(site): State<Arc<HttpSite>>, headers: HeaderMap) -> Result<Response, HttpRefusal> {
    if !has_session(&site, &headers) {
        return Ok(method_not_allowed());
    }
    let session = find_session(&site, &headers)?;
    site.sessions.end(&session.id);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reports whether a request belongs to a session. Requests of a stateless revision never do.
fn has_session(site: &HttpSite, headers: &HeaderMap) -> bool {
    site.has_sessions && header_text(headers, SESSION_ID).is_some() && !is_self_describing(headers, &Value::Null)
}

fn method_not_allowed() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response()
}
