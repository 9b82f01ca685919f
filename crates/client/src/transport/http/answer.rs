//! What comes back: one JSON message, or a stream of events.

use std::time::Duration;

use bytes::Bytes;
use wharf_net::{Body, BodyError, HeaderMap, Response, SseEvent, SseParser, header};
use wharf_spec::Untrusted;
use wharf_wire::scan;

use super::order::{EVENTS, JSON};
use crate::budget::{BudgetExceeded, COUNTED_FROM, Charge, ServerBudget, charged};
use crate::error::CallError;
use crate::limits::Limits;

/// How much of what is no answer is worth showing.
pub(super) const EXCERPT: usize = 120;
/// What may follow an answer before its stream is closed: little, and soon.
const REST_BYTES: usize = 64 << 10;
const REST_TIME: Duration = Duration::from_millis(250);

/// Bytes of one body that are read before others get their turn.
const BYTES_PER_TURN: usize = 128 << 10;

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
    /// The event being read, where it is large.
    charge: Charge,
    budget: ServerBudget,
    turn: Turn,
}

/// Bytes of a body that were read since others had their turn: what is always there would otherwise keep a thread of the
/// runtime.
#[derive(Default)]
struct Turn(usize);

impl Turn {
    async fn read(&mut self, bytes: usize, budget: &ServerBudget) {
        self.0 += bytes;
        if self.0 > BYTES_PER_TURN {
            budget.pace().spend_large(std::mem::take(&mut self.0));
            match budget.pace().pause() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => budget.turn().await,
            }
        }
    }
}

/// What a stream brought.
pub(super) enum Piece {
    Event(SseEvent),
    /// It ended, by itself or because something broke; what can be said of that.
    End(String),
    TooLarge,
    /// There is no room for it.
    Discarded(BudgetExceeded),
}

impl Events {
    pub fn new(body: Body, limits: &Limits, budget: &ServerBudget) -> Self {
        // An event is a message and a few words around it.
        let parser = SseParser::new(limits.message + (4 << 10));
        Self { body, parser, charge: budget.empty(), budget: budget.clone(), turn: Turn::default() }
    }

    /// The next event.
    ///
    /// Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Piece {
        loop {
            match self.parser.next() {
                Some(Ok(event)) => return self.counted(event),
                Some(Err(_)) => return Piece::TooLarge,
                None => {}
            }
            let held = self.parser.held();
            if held >= COUNTED_FROM
                && let Err(exceeded) = self.charge.resize(held)
            {
                return Piece::Discarded(exceeded);
            }
            match self.body.chunk().await {
                Ok(Some(chunk)) => {
                    let bytes = chunk.len();
                    self.parser.push(chunk);
                    self.turn.read(bytes, &self.budget).await;
                }
                Ok(None) => return Piece::End("the stream ended".to_owned()),
                Err(error) => return Piece::End(error.to_string()),
            }
        }
    }

    /// Counts an event for as long as its data is held.
    fn counted(&mut self, mut event: SseEvent) -> Piece {
        let mut charge = std::mem::replace(&mut self.charge, self.budget.empty());
        if event.data.len() >= COUNTED_FROM {
            if let Err(exceeded) = charge.resize(event.data.len()) {
                return Piece::Discarded(exceeded);
            }
            event.data = charged(event.data, charge);
        }
        Piece::Event(event)
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
pub(super) async fn first_answer(
    mut response: Response,
    limits: &Limits,
    budget: &ServerBudget,
) -> Result<Bytes, String> {
    match Kind::of(&response.headers) {
        Kind::Json => response.body.collect(limits.request).await.map_err(|error| error.to_string()),
        Kind::Other => Err("neither JSON nor a stream of events".to_owned()),
        Kind::Events => {
            let mut events = Events::new(response.body, limits, budget);
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
                    Piece::Discarded(exceeded) => return Err(exceeded.to_string()),
                }
            }
        }
    }
}

/// Why a body that should be a message is none.
pub(super) enum NotCollected {
    /// It broke off; what can be said of that.
    Broken(String),
    /// There is too much of it, or of what is held already.
    Refused(CallError),
}

impl From<BodyError> for NotCollected {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge { limit } => Self::Refused(CallError::TooLarge { limit }),
            BodyError::Broken(_) => Self::Broken(error.to_string()),
        }
    }
}

impl From<BudgetExceeded> for NotCollected {
    fn from(exceeded: BudgetExceeded) -> Self {
        Self::Refused(CallError::Discarded(exceeded))
    }
}

/// Everything a body has, counted in the budget while it arrives and for as long as it is held. A body that comes in one
/// piece is not copied.
pub(super) async fn collect(body: &mut Body, limits: &Limits, budget: &ServerBudget) -> Result<Bytes, NotCollected> {
    let limit = limits.message;
    let Some(first) = body.chunk().await? else { return Ok(Bytes::new()) };
    let Some(mut chunk) = body.chunk().await? else {
        return match first.len() {
            length if length > limit => Err(BodyError::TooLarge { limit }.into()),
            length if length >= COUNTED_FROM => Ok(charged(first, budget.charge(length)?)),
            _ => Ok(first),
        };
    };
    let (mut all, mut charge, mut turn) = (Vec::from(first), budget.empty(), Turn::default());
    loop {
        let length = all.len() + chunk.len();
        if length > limit {
            return Err(BodyError::TooLarge { limit }.into());
        }
        if length > all.capacity() {
            let larger = (length + length / 2).min(limit);
            let counted = if larger < COUNTED_FROM { 0 } else { larger };
            charge.resize(counted)?;
            all.reserve_exact(larger - all.len());
        }
        all.extend_from_slice(&chunk);
        turn.read(chunk.len(), budget).await;
        match body.chunk().await? {
            Some(more) => chunk = more,
            None if all.len() < COUNTED_FROM => return Ok(all.into()),
            None => {
                all.shrink_to_fit();
                charge.resize(all.capacity())?;
                return Ok(charged(all, charge));
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
