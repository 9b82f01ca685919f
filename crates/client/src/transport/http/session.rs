//! Destination of messages: the address, and in the handshake era the session.
//!
//! If the server has lost the session, the link sends the same `initialize` again. New messages wait for that; messages
//! in flight are not sent again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;
use wharf_net::{HeaderValue, HttpRequest, Method, RedirectPolicy};
use wharf_wire::{Era, RawJson, scan};

use super::HttpTransportKind;
use super::errors;
use super::link::HttpLink;
use super::post_request::{PostRequest, SESSION};
use super::response_body;
use crate::counters::CounterKind;
use crate::era::{self, INITIALIZED};
use crate::error::DisconnectReport;

/// Maximum bytes of a session id. Longer ids are ignored.
const MAX_SESSION_ID_BYTES: usize = 4 << 10;

/// The current destination of messages.
#[derive(Debug, Clone)]
pub(super) struct SessionTarget {
    pub url: Url,
    /// The session id, a secret shared with the server.
    pub id: Option<HeaderValue>,
    /// Generation number of the destination.
    number: u64,
    since: Instant,
}

impl SessionTarget {
    pub fn new(url: Url) -> Self {
        Self { url, id: None, number: 0, since: Instant::now() }
    }

    /// Returns the same destination with the session id given by the server.
    fn with_session_id(&self, id: Option<&HeaderValue>) -> Self {
        let good =
            |id: &&HeaderValue| id.len() <= MAX_SESSION_ID_BYTES && id.as_bytes().iter().all(u8::is_ascii_graphic);
        let id = id.filter(good).cloned().map(|mut id| {
            id.set_sensitive(true);
            id
        });
        Self { id, ..self.clone() }
    }
}

#[derive(Clone)]
enum SessionState {
    /// Not connected yet, or reconnecting.
    Away,
    /// Connected, but `initialized` has not been sent: no other message may precede it.
    Greeting(Arc<SessionTarget>),
    Joined(Arc<SessionTarget>),
    /// Reconnecting failed.
    Lost {
        why: Arc<DisconnectReport>,
        at: Instant,
    },
}

pub(super) struct LinkSession {
    state: watch::Sender<SessionState>,
    /// Number of destinations so far.
    places: AtomicU64,
    /// The `initialize` request that opened the session.
    initialize: OnceLock<Bytes>,
}

impl Default for LinkSession {
    fn default() -> Self {
        Self { state: watch::Sender::new(SessionState::Away), places: AtomicU64::new(0), initialize: OnceLock::new() }
    }
}

impl LinkSession {
    pub fn set_initialize(&self, initialize: Bytes) {
        let _ = self.initialize.set(initialize);
    }

    /// Returns the `initialize` request that opened the session, if there was one.
    pub fn initialize(&self) -> Option<Bytes> {
        self.initialize.get().cloned()
    }

    /// Sets the destination of messages.
    pub fn set_target(&self, place: SessionTarget) {
        self.state.send_replace(SessionState::Joined(self.assign_number(place)));
    }

    /// Sets the destination of messages, held back until `initialized` is sent.
    pub fn set_pending_target(&self, place: SessionTarget) {
        self.state.send_replace(SessionState::Greeting(self.assign_number(place)));
    }

    /// Holds messages back until `initialized` is sent.
    pub fn hold_messages(&self) {
        self.state.send_modify(|state| {
            if let SessionState::Joined(place) = state {
                *state = SessionState::Greeting(place.clone());
            }
        });
    }

    fn release_messages(&self) {
        self.state.send_modify(|state| {
            if let SessionState::Greeting(place) = state {
                *state = SessionState::Joined(place.clone());
            }
        });
    }

    fn assign_number(&self, mut place: SessionTarget) -> Arc<SessionTarget> {
        place.number = self.places.fetch_add(1, Ordering::Relaxed) + 1;
        place.since = Instant::now();
        Arc::new(place)
    }

    /// Sets the session id given by the server.
    pub fn set_session_id(&self, id: Option<&HeaderValue>) {
        self.state.send_modify(|state| {
            if let SessionState::Joined(place) = state {
                *place = Arc::new(place.with_session_id(id));
            }
        });
    }

    /// Holds messages back until reconnected. Returns false if the destination was already abandoned.
    pub fn abandon_target(&self, place: &SessionTarget) -> bool {
        self.state.send_if_modified(|state| {
            let current =
                matches!(state, SessionState::Joined(known) | SessionState::Greeting(known) if known.number == place.number);
            if current {
                *state = SessionState::Away;
            }
            current
        })
    }

    pub fn lose(&self, why: DisconnectReport) {
        self.state.send_replace(SessionState::Lost { why: Arc::new(why), at: Instant::now() });
    }

    /// Returns the destination of messages, also if they are held back.
    pub fn current(&self) -> Option<Arc<SessionTarget>> {
        match &*self.state.borrow() {
            SessionState::Joined(place) | SessionState::Greeting(place) => Some(place.clone()),
            _ => None,
        }
    }

    /// Returns the destination if messages may be sent at once.
    fn ready_target(&self) -> Option<Arc<SessionTarget>> {
        match &*self.state.borrow() {
            SessionState::Joined(place) => Some(place.clone()),
            _ => None,
        }
    }

    /// Claims the attempt to reconnect, if it is due.
    pub fn claim_reconnect(&self, after: Duration) -> bool {
        self.state.send_if_modified(|state| {
            let due = matches!(state, SessionState::Lost { at, .. } if at.elapsed() >= after);
            if due {
                *state = SessionState::Away;
            }
            due
        })
    }

    async fn wait_for_target(&self) -> Result<Arc<SessionTarget>, Arc<DisconnectReport>> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, SessionState::Away | SessionState::Greeting(_))).await;
        match settled.as_deref() {
            Ok(SessionState::Joined(place)) => Ok(place.clone()),
            Ok(SessionState::Lost { why, .. }) => Err(why.clone()),
            // The sender lives as long as this value.
            Ok(SessionState::Away | SessionState::Greeting(_)) | Err(_) => Err(Arc::new(errors::session_expired())),
        }
    }
}

impl HttpLink {
    /// Waits for the destination of messages.
    pub async fn target(self: &Arc<Self>) -> Result<Arc<SessionTarget>, Arc<DisconnectReport>> {
        if let Some(place) = self.session.ready_target() {
            return Ok(place);
        }
        if self.session.claim_reconnect(self.limits.resume) {
            self.spawn_reconnect();
        }
        self.session.wait_for_target().await
    }

    /// Handles an expired session.
    pub fn on_session_expired(self: &Arc<Self>, place: &SessionTarget) {
        if !self.session.abandon_target(place) {
            return;
        }
        // A server that loses sessions immediately is not reconnected at once.
        if place.number > 1 && place.since.elapsed() < self.limits.resume {
            self.session.lose(errors::session_expired());
        } else {
            self.spawn_reconnect();
        }
    }

    fn spawn_reconnect(self: &Arc<Self>) {
        let link = self.clone();
        self.tasks.spawn_background(async move {
            match link.form {
                HttpTransportKind::Streamable => link.reopen_session().await,
                HttpTransportKind::Sse => link.reopen().await,
            }
        });
    }

    /// Opens a new session with the original `initialize`.
    async fn reopen_session(self: Arc<Self>) {
        let (Some(initialize), Some(engine)) = (self.session.initialize(), self.engine()) else { return };
        let place = SessionTarget::new(self.home.clone());
        match tokio::time::timeout(self.limits.startup, self.send_initialize(&place, initialize)).await {
            Ok(Ok(place)) => {
                self.session.set_pending_target(place);
                self.send_initialized().await;
                tracing::info!("session expired, opened a new one");
                self.protocol.on_server_restarted(&engine);
                self.spawn_server_stream();
            }
            Ok(Err(why)) if why.is_final() => engine.close(why),
            Ok(Err(why)) => self.session.lose(why),
            Err(_) => self.session.lose(errors::response_timeout(self.limits.startup)),
        }
    }

    async fn send_initialize(
        &self,
        place: &SessionTarget,
        initialize: Bytes,
    ) -> Result<SessionTarget, DisconnectReport> {
        let post = PostRequest::reinitialize(self, initialize);
        let response = self.post(place, &post).await.map_err(|error| errors::from_send_error(&error))?;
        if !response.status.is_success() {
            return Err(errors::initialize_rejected(&response));
        }
        let place = place.with_session_id(response.headers.get(SESSION));
        let message = response_body::first_response(response, &self.limits, &self.budget).await;
        let message = message.map_err(|what| errors::stream_interrupted(&what))?;
        self.check_initialize_result(&message)?;
        Ok(place)
    }

    /// Checks that the server still negotiates the same revision.
    pub fn check_initialize_result(&self, message: &Bytes) -> Result<(), DisconnectReport> {
        let result = scan(message).ok().and_then(|envelope| envelope.result.map(|result| result.to_raw(message)));
        let judged = era::evaluate_initialize(result.unwrap_or_else(RawJson::empty_object), &self.limits.bounds);
        match judged {
            Ok((revision, _)) if Some(revision) == self.protocol.revision() => Ok(()),
            Ok(_) => Err(errors::revision_changed()),
            Err(cause) => Err(errors::stream_interrupted(&cause.to_string())),
        }
    }

    /// Posts one message.
    pub async fn post(
        &self,
        place: &SessionTarget,
        post: &PostRequest,
    ) -> Result<wharf_net::HttpResponse, wharf_net::SendError> {
        let mut headers = post.headers.clone();
        // In the stateless era session ids are ignored.
        if let Some(id) = place.id.as_ref().filter(|_| post.era == Era::Handshake && !post.opens) {
            headers.insert(SESSION, id.clone());
        }
        let (url, body) = (place.url.clone(), post.body.clone());
        let shown = tracing::enabled!(tracing::Level::DEBUG).then(|| (format!("{headers:?}"), Instant::now()));
        let sent = self
            .net
            .send(HttpRequest { method: Method::POST, url, headers, body, redirects: RedirectPolicy::SameOrigin })
            .await;
        if let Some((headers, began)) = shown {
            self.log_post(&headers, began, &sent);
        }
        sent
    }

    /// Logs the headers and the outcome. Values marked as sensitive are not in the text.
    fn log_post(&self, headers: &str, began: Instant, sent: &Result<wharf_net::HttpResponse, wharf_net::SendError>) {
        let Some(engine) = self.engine() else { return };
        let server = engine.observer().server.as_str();
        let headers = engine.observer().redactor.redact(headers);
        let answer = sent.as_ref().map_or_else(ToString::to_string, |response| format!("HTTP {}", response.status));
        let answer = engine.observer().redactor.redact_truncated(&answer);
        tracing::debug!(server, millis = began.elapsed().as_millis(), %headers, "posted: {answer}");
    }

    /// Sends `initialized` and releases held messages. The wait is bounded. If sending fails it is repeated once, which
    /// is harmless.
    pub async fn send_initialized(self: &Arc<Self>) {
        let Some(place) = self.session.current() else { return };
        let post = PostRequest::notification(self, Bytes::from_static(INITIALIZED.as_bytes()));
        let told = tokio::time::timeout(self.limits.headers, async {
            match self.post(&place, &post).await {
                Err(_) => self.post(&place, &post).await,
                taken => taken,
            }
        });
        if let Ok(outcome) = told.await {
            self.on_post_outcome(&place, outcome).await;
        }
        self.session.release_messages();
    }

    /// Posts a message that gets no response. A failure is only logged.
    pub async fn post_notification(self: &Arc<Self>, post: PostRequest) {
        let told = tokio::time::timeout(self.limits.headers, async {
            match self.target().await {
                Ok(place) => {
                    let outcome = self.post(&place, &post).await;
                    self.on_post_outcome(&place, outcome).await;
                }
                Err(_) => self.log_unsent("server unreachable"),
            }
        });
        if told.await.is_err() {
            self.log_unsent("no response from the server");
        }
    }

    fn log_unsent(&self, why: &str) {
        if let Some(engine) = self.engine() {
            engine.counters.count_and_warn(CounterKind::Unsent, "failed to send a notification or a reply");
        }
        tracing::debug!(why, "failed to send a notification or a reply");
    }

    async fn on_post_outcome(
        self: &Arc<Self>,
        place: &SessionTarget,
        outcome: Result<wharf_net::HttpResponse, wharf_net::SendError>,
    ) {
        match outcome {
            Ok(response) if response.status.is_success() => response_body::drain_rest(response.body).await,
            Ok(response) if response.status == 404 && place.id.is_some() => self.on_session_expired(place),
            Ok(response) => self.log_unsent(&format!("HTTP {}", response.status)),
            Err(error) => self.log_unsent(&error.to_string()),
        }
    }

    /// Ends the session on the server, if there is one.
    pub async fn delete_session(&self) {
        let Some(place) = self.session.current() else { return };
        let (url, Some(id)) = (place.url.clone(), place.id.clone()) else { return };
        let mut headers = self.headers.delete_headers(self.protocol.revision());
        headers.insert(SESSION, id);
        let request = HttpRequest {
            method: Method::DELETE,
            url,
            headers,
            body: Bytes::new(),
            redirects: RedirectPolicy::SameOrigin,
        };
        // The status does not matter: servers without sessions return 405. If the connection was closed meanwhile, a
        // new one is used.
        if self.net.send(request.clone()).await.is_err() {
            let _ = self.net.send(request).await;
        }
    }
}
