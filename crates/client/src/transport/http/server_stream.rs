//! The stream for requests and notifications from a server of the handshake era.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_net::{AuthRecovery, NotAuthorized, SendError, StatusCode};

use super::HttpTransportKind;
use super::errors;
use super::link::HttpLink;
use super::response_body::{ContentKind, EventReader, StreamItem, event_message};
use super::resume::MAX_EVENT_ID_BYTES;
use super::session::SessionTarget;
use crate::engine::Engine;
use crate::error::{DisconnectCause, DisconnectReport};

/// A stream that ends sooner is not reopened at once.
const MIN_STREAM_LIFETIME: Duration = Duration::from_secs(5);
/// Bounds of the delay before the stream is reopened.
const MIN_REOPEN_DELAY: Duration = Duration::from_millis(100);
const MAX_REOPEN_DELAY: Duration = Duration::from_secs(60);

/// The outcome of one attempt to listen.
enum ListenOutcome {
    /// The server offers no such stream, or the connection is gone.
    ForGood,
    /// The stream ended. `spoke` reports whether it carried messages.
    Cut { asked: Option<Duration>, spoke: bool },
    /// The stream could not be opened.
    Failed,
}

impl HttpLink {
    /// Waits until the server's own stream is open, if it has one. Some servers send requests on it during a call, and
    /// lose them if no stream is open (the TypeScript SDK 1).
    pub async fn wait_for_server_stream(&self) {
        let mut decided = self.stream_decided.subscribe();
        let _ = tokio::time::timeout(self.limits.resume, decided.wait_for(|decided| *decided)).await;
    }

    /// Starts to listen, for as long as the session lasts.
    pub fn spawn_server_stream(self: &Arc<Self>) {
        let place = self.session.current().filter(|_| !self.is_closed());
        let (link, engine) = (self.clone(), self.engine());
        let (Some(place), Some(engine)) = (place.filter(|_| self.form == HttpTransportKind::Streamable), engine) else {
            return;
        };
        self.tasks.spawn_background(async move {
            ServerStreamTask { link, engine, place, last: None, opened: false }.run().await
        });
    }
}

struct ServerStreamTask {
    link: Arc<HttpLink>,
    engine: Arc<Engine>,
    place: Arc<SessionTarget>,
    last: Option<String>,
    /// True if the stream has been open before.
    opened: bool,
}

impl ServerStreamTask {
    async fn run(mut self) {
        let mut failures = 0u32;
        loop {
            let began = Instant::now();
            let (asked, fine) = match self.listen_once().await {
                ListenOutcome::ForGood => return,
                ListenOutcome::Cut { asked, spoke } => (asked, spoke || began.elapsed() > MIN_STREAM_LIFETIME),
                ListenOutcome::Failed => (None, false),
            };
            failures = if fine { 0 } else { failures + 1 };
            let max_wait = self.link.limits.resume.saturating_mul(1 << failures.saturating_sub(1).min(6));
            // The requested delay applies while the stream works; after repeated failures the backoff is the minimum.
            let wait = if failures > 1 { asked.unwrap_or_default().max(max_wait) } else { asked.unwrap_or(max_wait) };
            tokio::time::sleep(wait.clamp(MIN_REOPEN_DELAY, MAX_REOPEN_DELAY)).await;
        }
    }

    async fn listen_once(&mut self) -> ListenOutcome {
        let request = self.link.stream_request(&self.place, self.last.as_deref());
        let opened = tokio::time::timeout(self.link.limits.headers, self.link.net.send(request)).await;
        self.link.stream_decided.send_replace(true);
        let response = match opened {
            Ok(Ok(response)) => response,
            Ok(Err(SendError::NotAuthorized(why))) => return self.not_authorized(why),
            _ => return ListenOutcome::Failed,
        };
        if let Some(why) = response.not_authorized {
            return self.not_authorized(why);
        }
        match response.status {
            status if status.is_success() && ContentKind::from_headers(&response.headers) == ContentKind::Events => {
                if self.opened && self.last.is_none() {
                    // Without an event id the stream cannot be resumed, so messages may have been missed.
                    self.link.protocol.on_messages_missed();
                }
                self.opened = true;
                self.read(self.link.events(response.body)).await
            }
            // After a working stream, 404 means an expired session; otherwise the server has no such stream.
            StatusCode::NOT_FOUND if self.opened && self.place.id.is_some() => {
                self.link.on_session_expired(&self.place);
                ListenOutcome::ForGood
            }
            status if status.is_server_error() => ListenOutcome::Failed,
            // 405 means that the server offers no stream. Any other status is also final.
            _ => ListenOutcome::ForGood,
        }
    }

    /// Handles an authorization failure. If a login is required, the connection ends. A missing permission only ends
    /// the stream, and a transient failure is retried.
    fn not_authorized(&self, why: NotAuthorized) -> ListenOutcome {
        match &why.remedy {
            AuthRecovery::Waiting => ListenOutcome::Failed,
            AuthRecovery::Login => {
                self.engine.close(errors::not_authorized(why));
                ListenOutcome::ForGood
            }
            _ => ListenOutcome::ForGood,
        }
    }

    async fn read(&mut self, mut events: EventReader) -> ListenOutcome {
        let mut spoke = false;
        loop {
            match events.next().await {
                StreamItem::Event(event) => {
                    let Some(message) = event_message(event) else { continue };
                    spoke = true;
                    if let Err(peer) = self.engine.deliver_by_size(message).await {
                        self.engine.close(DisconnectReport::from_cause(DisconnectCause::NotMcp(peer.0)));
                        return ListenOutcome::ForGood;
                    }
                }
                StreamItem::End(_) => {
                    let last = events.last_id().filter(|id| id.len() <= MAX_EVENT_ID_BYTES).map(str::to_owned);
                    self.last = last.or(self.last.take());
                    return ListenOutcome::Cut { asked: events.retry(), spoke };
                }
                StreamItem::TooLarge => {
                    tracing::warn!("closing the server's stream: message over the size limit");
                    return ListenOutcome::Failed;
                }
                StreamItem::Discarded(exceeded) => {
                    tracing::warn!("closing the server's stream: {exceeded}");
                    return ListenOutcome::Failed;
                }
            }
        }
    }
}
