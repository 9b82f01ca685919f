//! HTTP+SSE (2024-11-05): one stream for all messages from the server, and a separate address to post to.
//!
//! The stream is the session: if it is lost, all pending calls are lost, and a new session starts from scratch.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use url::Url;
use wharf_net::{HttpResponse, SendError, StatusCode};
use wharf_spec::{HttpSpec, UntrustedText};
use wharf_wire::scan;

use super::errors;
use super::link::HttpLink;
use super::post_request::PostRequest;
use super::response_body::{ContentKind, EventReader, StreamItem, event_message};
use super::session::SessionTarget;
use crate::engine::Engine;
use crate::error::{ConnectCause, DisconnectCause, DisconnectReport};

/// Maximum attempts to reopen the stream.
const MAX_REOPEN_ATTEMPTS: u32 = 6;

/// The reason there is no stream.
enum StreamOpenError {
    /// The server refused the stream.
    Refused(ConnectCause),
    /// The server could not be reached or did not announce its endpoint.
    Failed(DisconnectReport),
}

impl StreamOpenError {
    /// Converts an authorization error response. A transient failure of the authorizer is not a refusal.
    fn from_response(response: HttpResponse) -> Self {
        let challenge = super::status::challenge(&response.headers);
        match response.not_authorized {
            Some(why) if why.is_transient() => Self::Failed(errors::not_authorized(why)),
            why => {
                let (status, why) = (response.status.as_u16(), why.map(Box::new));
                Self::Refused(ConnectCause::Unauthorized { status, challenge, why })
            }
        }
    }

    /// Converts the error of a request that was not sent.
    fn from_send_error(error: SendError) -> Self {
        match error {
            SendError::NotAuthorized(why) if !why.is_transient() => {
                Self::Refused(ConnectCause::Unauthorized { status: 401, challenge: None, why: Some(Box::new(why)) })
            }
            error => Self::Failed(errors::from_send_error(&error)),
        }
    }

    /// Converts the error for a server that offered a stream before.
    fn into_disconnect(self) -> DisconnectReport {
        match self {
            Self::Failed(gone) => gone,
            Self::Refused(cause) if cause.needs_login() => errors::login_required(&cause),
            Self::Refused(cause) => DisconnectReport { hint: Some(cause.to_string()), ..errors::revision_changed() },
        }
    }
}

/// Opens the stream and waits for the endpoint to post to.
pub(super) async fn open_session(link: &Arc<HttpLink>) -> Result<(), ConnectCause> {
    match link.open_stream().await {
        Ok((events, endpoint)) => {
            link.session.set_target(SessionTarget::new(endpoint));
            link.spawn_reader(events);
            Ok(())
        }
        Err(StreamOpenError::Refused(cause)) => Err(cause),
        Err(StreamOpenError::Failed(gone)) => Err(ConnectCause::Gone(Arc::new(gone))),
    }
}

impl HttpLink {
    async fn open_stream(&self) -> Result<(EventReader, Url), StreamOpenError> {
        let limit = self.limits.endpoint;
        match tokio::time::timeout(limit, self.await_endpoint()).await {
            Ok(opened) => opened,
            Err(_) => Err(StreamOpenError::Failed(errors::stream_interrupted(&format!(
                "no endpoint event within {} ms",
                limit.as_millis()
            )))),
        }
    }

    async fn await_endpoint(&self) -> Result<(EventReader, Url), StreamOpenError> {
        let request = self.stream_request(&SessionTarget::new(self.home.clone()), None);
        let response = self.net.send(request).await.map_err(StreamOpenError::from_send_error)?;
        match response.status {
            status if status.is_success() && ContentKind::from_headers(&response.headers) == ContentKind::Events => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(StreamOpenError::from_response(response)),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(StreamOpenError::Failed(errors::unclear_status(status, "")));
            }
            status => {
                let detail = "response to GET is not an event stream".to_owned();
                return Err(StreamOpenError::Refused(ConnectCause::Status { status: status.as_u16(), detail }));
            }
        }
        let base = response.url;
        let mut events = self.events(response.body);
        loop {
            match events.next().await {
                StreamItem::Event(event) if event.event.as_deref() == Some("endpoint") => {
                    let endpoint = parse_endpoint(&self.spec, &base, &event.data).map_err(StreamOpenError::Refused)?;
                    return Ok((events, endpoint));
                }
                StreamItem::Event(_) => {}
                StreamItem::End(what) => return Err(StreamOpenError::Failed(errors::stream_interrupted(&what))),
                StreamItem::TooLarge => {
                    return Err(StreamOpenError::Failed(errors::stream_interrupted("event over the size limit")));
                }
                StreamItem::Discarded(exceeded) => {
                    return Err(StreamOpenError::Failed(errors::stream_interrupted(&exceeded.to_string())));
                }
            }
        }
    }

    /// Reads the stream to its end, then reopens it.
    fn spawn_reader(self: &Arc<Self>, events: EventReader) {
        let (link, Some(engine)) = (self.clone(), self.engine()) else { return };
        self.tasks.spawn_background(async move {
            let gone = read_stream(events, &engine).await;
            let Some(place) = link.session.current() else { return };
            if matches!(gone.cause, DisconnectCause::NotMcp(_)) {
                return engine.close(gone);
            }
            if link.session.abandon_target(&place) {
                engine.lose_calls(gone);
                link.reopen().await;
            }
        });
    }

    /// Reopens the stream and initializes the session again. Between attempts, calls fail at once instead of waiting.
    pub async fn reopen(self: Arc<Self>) {
        let Some(engine) = self.engine() else { return };
        let mut wait = self.limits.resume;
        for attempt in 1.. {
            let gone = match self.reinitialize(&engine).await {
                Ok(events) => {
                    tracing::info!("stream lost, opened a new one");
                    self.protocol.on_server_restarted(&engine);
                    return self.spawn_reader(events);
                }
                Err(gone) => gone,
            };
            if attempt == MAX_REOPEN_ATTEMPTS || gone.is_final() {
                return engine.close(gone);
            }
            self.session.lose(gone);
            tokio::time::sleep(super::status::with_jitter(wait)).await;
            wait = (wait * 2).min(Duration::from_secs(60));
            // A call may have claimed the next attempt.
            if !self.session.claim_reconnect(Duration::ZERO) {
                return;
            }
        }
    }

    async fn reinitialize(self: &Arc<Self>, engine: &Arc<Engine>) -> Result<EventReader, DisconnectReport> {
        let (mut events, endpoint) = self.open_stream().await.map_err(StreamOpenError::into_disconnect)?;
        let place = SessionTarget::new(endpoint);
        // Lost during the initial connect: the connecting caller gets the error of `initialize`.
        let Some(initialize) = self.session.initialize().filter(|_| self.protocol.revision().is_some()) else {
            return Err(errors::session_expired());
        };
        let introduced = tokio::time::timeout(self.limits.startup, async {
            let post = PostRequest::reinitialize(self, initialize.clone());
            let response = self.post(&place, &post).await.map_err(|error| errors::from_send_error(&error))?;
            if !response.status.is_success() {
                return Err(errors::initialize_rejected(&response));
            }
            drop(response);
            let message = await_response(&mut events, &initialize, engine).await?;
            self.check_initialize_result(&message)
        });
        introduced.await.unwrap_or_else(|_| Err(errors::response_timeout(self.limits.startup)))?;
        self.session.set_pending_target(place);
        self.send_initialized().await;
        Ok(events)
    }
}

/// Validates the endpoint to post to: it must have the stream's own origin.
fn parse_endpoint(spec: &HttpSpec, base: &Url, text: &[u8]) -> Result<Url, ConnectCause> {
    let url = base.join(String::from_utf8_lossy(text).trim()).ok();
    // Displayed without its query, which often contains the session id.
    let shown = url.as_ref().map_or_else(|| "invalid URL".to_owned(), |url| spec.mask_url(url));
    url.filter(|url| url.origin() == base.origin()).ok_or_else(|| ConnectCause::BadEndpoint {
        endpoint: UntrustedText::new(shown).truncate(200).to_string(),
        stream: spec.mask_url(base),
    })
}

/// Delivers the stream's messages to the engine until the stream ends.
async fn read_stream(mut events: EventReader, engine: &Arc<Engine>) -> DisconnectReport {
    loop {
        match events.next().await {
            // A second `endpoint` is ignored: it would redirect later messages.
            StreamItem::Event(event) => {
                let Some(message) = event_message(event) else { continue };
                if let Err(peer) = engine.deliver_by_size(message).await {
                    return DisconnectReport::from_cause(DisconnectCause::NotMcp(peer.0));
                }
            }
            StreamItem::End(what) => return errors::stream_interrupted(&what),
            StreamItem::TooLarge => return errors::stream_interrupted("message over the size limit"),
            StreamItem::Discarded(exceeded) => return errors::stream_interrupted(&exceeded.to_string()),
        }
    }
}

/// Waits for the response to a request that was posted without the engine.
async fn await_response(
    events: &mut EventReader,
    request: &Bytes,
    engine: &Arc<Engine>,
) -> Result<Bytes, DisconnectReport> {
    let id_of =
        |message: &[u8]| scan(message).ok().and_then(|envelope| envelope.id(message).map(|id| format!("{id:?}")));
    let wanted = id_of(request);
    loop {
        match events.next().await {
            StreamItem::Event(event) => {
                let Some(message) = event_message(event) else { continue };
                if super::response_body::is_response(&message) && id_of(&message) == wanted {
                    return Ok(message);
                }
                let _ = engine.deliver_by_size(message).await;
            }
            StreamItem::End(what) => return Err(errors::stream_interrupted(&what)),
            StreamItem::TooLarge => return Err(errors::stream_interrupted("message over the size limit")),
            StreamItem::Discarded(exceeded) => return Err(errors::stream_interrupted(&exceeded.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_must_share_the_stream_origin() {
        let base = Url::parse("http://127.0.0.1:8000/base/sse").unwrap();
        for (text, expected) in [
            ("/message?sessionId=1", Some("http://127.0.0.1:8000/message?sessionId=1")),
            ("message", Some("http://127.0.0.1:8000/base/message")),
            ("?sessionId=1", Some("http://127.0.0.1:8000/base/sse?sessionId=1")),
            (" /m\n", Some("http://127.0.0.1:8000/m")),
            ("http://127.0.0.1:8000/m", Some("http://127.0.0.1:8000/m")),
            ("http://127.0.0.1:8001/m", None),
            ("https://127.0.0.1:8000/m", None),
            ("//example.org/m", None),
            ("http://localhost:8000/m", None),
            ("file:///etc/passwd", None),
            ("http://[", None),
        ] {
            let found = parse_endpoint(&HttpSpec::new(base.clone()), &base, text.as_bytes());
            assert_eq!(found.ok().map(String::from).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn bad_endpoint_error_hides_secrets_in_urls() {
        let mut spec = HttpSpec::new(Url::parse("http://127.0.0.1:8000/hush/sse").unwrap());
        spec.hidden.push(wharf_spec::Secret::new("hush"));
        let told = format!("{:?}", parse_endpoint(&spec, &spec.url, b"http://example.org/hush").unwrap_err());
        assert!(told.contains("8000/***/sse") && told.contains("example.org/***"), "{told}");
    }
}
