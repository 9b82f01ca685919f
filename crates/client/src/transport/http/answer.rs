//! What comes back: one JSON message, or a stream of events.

use std::time::Duration;

use bytes::Bytes;
use wharf_net::{Body, HeaderMap, Response, SseEvent, SseParser, header};
use wharf_spec::Untrusted;
use wharf_wire::scan;

use super::order::{EVENTS, JSON};
use crate::limits::Limits;

/// How much of what is no answer is worth showing.
pub(super) const EXCERPT: usize = 120;
/// What may follow an answer before its stream is closed: little, and soon.
const REST_BYTES: usize = 64 << 10;
const REST_TIME: Duration = Duration::from_millis(250);

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Events,
    Other,
}

impl Kind {
    pub fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case(JSON) {
            Self::Json
        } else if essence.eq_ignore_ascii_case(EVENTS) {
            Self::Events
        } else {
            Self::Other
        }
    }
}

/// A stream of events being read.
pub(super) struct Events {
    body: Body,
    parser: SseParser,
}

/// What a stream brought.
pub(super) enum Piece {
    Event(SseEvent),
    /// It ended, by itself or because something broke; what can be said of that.
    End(String),
    TooLarge,
}

impl Events {
    pub fn new(body: Body, limits: &Limits) -> Self {
        // An event is a message and a few words around it.
        Self { body, parser: SseParser::new(limits.message + (4 << 10)) }
    }

    /// The next event.
    ///
    /// Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Piece {
        loop {
            match self.parser.next() {
                Some(Ok(event)) => return Piece::Event(event),
                Some(Err(_)) => return Piece::TooLarge,
                None => {}
            }
            match self.body.chunk().await {
                Ok(Some(chunk)) => self.parser.push(chunk),
                Ok(None) => return Piece::End("the stream ended".to_owned()),
                Err(error) => return Piece::End(error.to_string()),
            }
        }
    }

    /// The name of the last event that had one.
    pub fn last_id(&self) -> Option<&str> {
        self.parser.last_id().filter(|id| !id.is_empty())
    }

    /// How long the server wants to be left alone before the stream is taken up again.
    pub fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }

    pub fn into_body(self) -> Body {
        self.body
    }
}

/// Whether an event carries a message; a name that is not known means something else.
pub(super) fn message_of(event: SseEvent) -> Option<Bytes> {
    let is_message = event.event.as_deref().is_none_or(|name| name.is_empty() || name == "message");
    (is_message && !event.data.is_empty()).then_some(event.data)
}

/// The first message that answers something, for whoever reads it without the engine.
pub(super) async fn first_answer(mut response: Response, limits: &Limits) -> Result<Bytes, String> {
    match Kind::of(&response.headers) {
        Kind::Json => response.body.collect(limits.message).await.map_err(|error| error.to_string()),
        Kind::Other => Err("neither JSON nor a stream of events".to_owned()),
        Kind::Events => {
            let mut events = Events::new(response.body, limits);
            loop {
                match events.next().await {
                    Piece::Event(event) => {
                        let answer = message_of(event).filter(|message| answers(message));
                        if let Some(message) = answer {
                            finish(events.into_body()).await;
                            return Ok(message);
                        }
                    }
                    Piece::End(what) => return Err(what),
                    Piece::TooLarge => return Err("it is too large".to_owned()),
                }
            }
        }
    }
}

/// Whether a message is an answer, rather than something the server says by itself.
pub(super) fn answers(message: &[u8]) -> bool {
    scan(message).is_ok_and(|envelope| envelope.method.is_none())
}

/// The first bytes of what is no answer, escaped.
pub(super) async fn excerpt(body: &mut Body) -> String {
    let seen = tokio::time::timeout(REST_TIME, body.excerpt(4 * EXCERPT)).await.unwrap_or_default();
    Untrusted::from_bytes(seen.trim_ascii()).shortened(EXCERPT).to_string()
}

/// Reads what little follows an answer, so that its connection can be used again.
pub(super) async fn finish(mut body: Body) {
    let rest = async {
        let mut read = 0;
        while let Ok(Some(chunk)) = body.chunk().await {
            read += chunk.len();
            if read > REST_BYTES {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(REST_TIME, rest).await;
}
