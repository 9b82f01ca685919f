//! Reading of response bodies: one JSON message, or a stream of events.

use std::time::Duration;

use bytes::Bytes;
use wharf_net::{BodyError, HeaderMap, HttpResponse, ResponseBody, SseEvent, SseParser, header};
use wharf_spec::UntrustedText;
use wharf_wire::scan;

use super::post_request::{EVENTS, JSON};
use crate::budget::{BudgetCharge, BudgetExceeded, MIN_COUNTED_BYTES, ServerBudget, attach_charge};
use crate::error::CallError;
use crate::limits::Limits;

/// Maximum characters of an unexpected body in an error.
pub(super) const EXCERPT: usize = 120;
/// Maximum bytes after the response, and maximum time to wait for them, before the stream is closed.
const MAX_REST_BYTES: usize = 64 << 10;
const REST_TIMEOUT: Duration = Duration::from_millis(250);

/// Bytes of one body that are read before other tasks run.
const BYTES_PER_TURN: usize = 128 << 10;

/// The content type of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Json,
    Events,
    Other,
}

impl ContentKind {
    pub fn from_headers(headers: &HeaderMap) -> Self {
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

/// A reader of an event stream.
pub(super) struct EventReader {
    body: ResponseBody,
    parser: SseParser,
    /// Charge for the event being read, if it is large.
    charge: BudgetCharge,
    budget: ServerBudget,
    turn: ReadTurn,
}

/// Bytes read from a body since the last yield. A body that is always ready would otherwise occupy a runtime thread.
#[derive(Default)]
struct ReadTurn(usize);

impl ReadTurn {
    async fn count_read(&mut self, bytes: usize, budget: &ServerBudget) {
        self.0 += bytes;
        if self.0 > BYTES_PER_TURN {
            budget.throttle().record_large(std::mem::take(&mut self.0));
            budget.wait_for_turn().await;
        }
    }
}

/// The next item of a stream.
pub(super) enum StreamItem {
    Event(SseEvent),
    /// The stream ended or failed; a description.
    End(String),
    TooLarge,
    /// The memory budget has no room for the event.
    Discarded(BudgetExceeded),
}

impl EventReader {
    pub fn new(body: ResponseBody, limits: &Limits, budget: &ServerBudget) -> Self {
        // An event is a message plus a small overhead.
        let parser = SseParser::new(limits.max_message + (4 << 10));
        Self { body, parser, charge: budget.empty_charge(), budget: budget.clone(), turn: ReadTurn::default() }
    }

    /// Returns the next event. Cancel-safe.
    pub async fn next(&mut self) -> StreamItem {
        loop {
            match self.parser.next() {
                Some(Ok(event)) => return self.charge_event(event),
                Some(Err(_)) => return StreamItem::TooLarge,
                None => {}
            }
            let held = self.parser.buffered_bytes();
            if held >= MIN_COUNTED_BYTES
                && let Err(exceeded) = self.charge.resize(held)
            {
                return StreamItem::Discarded(exceeded);
            }
            match self.body.chunk().await {
                Ok(Some(chunk)) => {
                    let bytes = chunk.len();
                    self.parser.push(chunk);
                    self.turn.count_read(bytes, &self.budget).await;
                }
                Ok(None) => return StreamItem::End("the stream ended".to_owned()),
                Err(error) => return StreamItem::End(error.to_string()),
            }
        }
    }

    /// Charges an event to the budget for as long as its data is held.
    fn charge_event(&mut self, mut event: SseEvent) -> StreamItem {
        let mut charge = std::mem::replace(&mut self.charge, self.budget.empty_charge());
        if event.data.len() >= MIN_COUNTED_BYTES {
            if let Err(exceeded) = charge.resize(event.data.len()) {
                return StreamItem::Discarded(exceeded);
            }
            event.data = attach_charge(event.data, charge);
        }
        StreamItem::Event(event)
    }

    /// Returns the id of the last event that had one.
    pub fn last_id(&self) -> Option<&str> {
        self.parser.last_id().filter(|id| !id.is_empty())
    }

    /// Returns the delay the server requests before the stream is resumed.
    pub fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }

    pub fn into_body(self) -> ResponseBody {
        self.body
    }
}

/// Returns the message of an event. Events with an unknown name carry none.
pub(super) fn event_message(event: SseEvent) -> Option<Bytes> {
    let is_message = event.event.as_deref().is_none_or(|name| name.is_empty() || name == "message");
    (is_message && !event.data.is_empty()).then_some(event.data)
}

/// Returns the first response in the body, for a caller that reads it without the engine.
pub(super) async fn first_response(
    mut response: HttpResponse,
    limits: &Limits,
    budget: &ServerBudget,
) -> Result<Bytes, String> {
    match ContentKind::from_headers(&response.headers) {
        ContentKind::Json => response.body.collect(limits.max_server_request).await.map_err(|error| error.to_string()),
        ContentKind::Other => Err("response is neither JSON nor an event stream".to_owned()),
        ContentKind::Events => {
            let mut events = EventReader::new(response.body, limits, budget);
            loop {
                match events.next().await {
                    StreamItem::Event(event) => {
                        let answer = event_message(event).filter(|message| is_response(message));
                        if let Some(message) = answer {
                            drain_rest(events.into_body()).await;
                            return Ok(message);
                        }
                    }
                    StreamItem::End(what) => return Err(what),
                    StreamItem::TooLarge => return Err("response is too large".to_owned()),
                    StreamItem::Discarded(exceeded) => return Err(exceeded.to_string()),
                }
            }
        }
    }
}

/// The reason a body could not be collected.
pub(super) enum CollectError {
    /// The body was interrupted; a description.
    Broken(String),
    /// The body exceeds the size limit or the memory budget.
    Refused(CallError),
}

impl From<BodyError> for CollectError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge { limit } => Self::Refused(CallError::TooLarge { limit }),
            BodyError::Broken(_) => Self::Broken(error.to_string()),
        }
    }
}

impl From<BudgetExceeded> for CollectError {
    fn from(exceeded: BudgetExceeded) -> Self {
        Self::Refused(CallError::Discarded(exceeded))
    }
}

/// Collects a body, charged to the budget while it arrives and for as long as it is held. A body in a single chunk is
/// not copied.
pub(super) async fn collect_body(
    body: &mut ResponseBody,
    limits: &Limits,
    budget: &ServerBudget,
) -> Result<Bytes, CollectError> {
    let limit = limits.max_message;
    let Some(first) = body.chunk().await? else { return Ok(Bytes::new()) };
    let Some(mut chunk) = body.chunk().await? else {
        return match first.len() {
            length if length > limit => Err(BodyError::TooLarge { limit }.into()),
            length if length >= MIN_COUNTED_BYTES => Ok(attach_charge(first, budget.charge(length)?)),
            _ => Ok(first),
        };
    };
    let (mut all, mut charge, mut turn) = (Vec::from(first), budget.empty_charge(), ReadTurn::default());
    loop {
        let length = all.len() + chunk.len();
        if length > limit {
            return Err(BodyError::TooLarge { limit }.into());
        }
        if length > all.capacity() {
            let larger = (length + length / 2).min(limit);
            let counted = if larger < MIN_COUNTED_BYTES { 0 } else { larger };
            charge.resize(counted)?;
            all.reserve_exact(larger - all.len());
        }
        all.extend_from_slice(&chunk);
        turn.count_read(chunk.len(), budget).await;
        match body.chunk().await? {
            Some(more) => chunk = more,
            None if all.len() < MIN_COUNTED_BYTES => return Ok(all.into()),
            None => {
                all.shrink_to_fit();
                charge.resize(all.capacity())?;
                return Ok(attach_charge(all, charge));
            }
        }
    }
}

/// Reports whether a message is a response, not a request or notification.
pub(super) fn is_response(message: &[u8]) -> bool {
    scan(message).is_ok_and(|envelope| envelope.method.is_none())
}

/// Returns the first bytes of an unexpected body, escaped.
pub(super) async fn body_excerpt(body: &mut ResponseBody) -> String {
    let seen = tokio::time::timeout(REST_TIMEOUT, body.excerpt(4 * EXCERPT)).await.unwrap_or_default();
    UntrustedText::from_bytes(seen.trim_ascii()).truncate(EXCERPT).to_string()
}

/// Reads the rest of a body, within bounds, so that its connection can be reused.
pub(super) async fn drain_rest(mut body: ResponseBody) {
    let rest = async {
        let mut read = 0;
        while let Ok(Some(chunk)) = body.chunk().await {
            read += chunk.len();
            if read > MAX_REST_BYTES {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(REST_TIMEOUT, rest).await;
}
