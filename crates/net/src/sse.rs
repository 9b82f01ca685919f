//! A bounded parser for event streams (WHATWG HTML, 9.2.6).
//!
//! Handles lines and events only. The meaning of events, silence timeouts and reconnection are left to the caller.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::{Buf, Bytes};
use memchr::{memchr, memchr2};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event of a stream. All strings are untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Event type. `None` for the default, `message`.
    pub event: Option<String>,
    /// Event ID set by this event. An empty ID resets the last event ID.
    pub id: Option<String>,
    /// Data, not necessarily UTF-8. Empty in an event that only sets an ID.
    pub data: Bytes,
}

/// An error: an event exceeds the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an SSE event exceeds {limit} bytes")]
pub struct SseTooLarge {
    /// Maximum size of an event in bytes.
    pub limit: usize,
}

/// Parses chunks into events.
///
/// The iterator can be resumed after [`SseParser::push`]: `None` means that no event is complete yet, or that there was
/// an error. No events follow an error. Each byte is scanned a small number of times regardless of the chunk sizes. A
/// line within one chunk shares the chunk's memory; a line across chunks is copied once.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// Unparsed chunks, pushed since the last `None`.
    chunks: VecDeque<Bytes>,
    /// Start of an incomplete line.
    line: Vec<u8>,
    /// The last line ended in CR: a following LF belongs to that line end.
    after_return: bool,
    at_start: bool,
    failed: bool,
    draft: EventDraft,
    last_id: String,
    retry: Option<Duration>,
    activity: u64,
}

impl SseParser {
    /// Creates a parser for the start of a stream.
    ///
    /// `limit` bounds the memory of one event: data, ID and type so far, plus the current line with its field name. The
    /// maximum message size is therefore a few bytes less.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            chunks: VecDeque::new(),
            line: Vec::new(),
            after_return: false,
            at_start: true,
            failed: false,
            draft: EventDraft::default(),
            last_id: String::new(),
            retry: None,
            activity: 0,
        }
    }

    /// Adds the next chunk of the stream. Parsing happens in [`Iterator::next`].
    pub fn push(&mut self, chunk: Bytes) {
        self.activity += chunk.len() as u64;
        if !self.failed && !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// Returns the number of bytes buffered for the current event.
    pub fn buffered_bytes(&self) -> usize {
        self.draft.len() + self.line.len()
    }

    /// Returns the last valid `retry` value, unbounded. It applies even before its event is complete.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the ID to resume after: that of the last returned event with an ID, or `None` if that ID is empty.
    pub fn last_id(&self) -> Option<&str> {
        Some(self.last_id.as_str()).filter(|id| !id.is_empty())
    }

    /// Returns the total number of bytes pushed, including comments, as a measure of activity.
    pub fn activity(&self) -> u64 {
        self.activity
    }

    fn next_event(&mut self) -> Result<Option<SseEvent>, SseTooLarge> {
        while let Some(line) = self.next_line()? {
            if !line.is_empty() {
                self.apply_field(&line);
            } else if let Some(event) = self.dispatch() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Returns the next complete line without its line end.
    fn next_line(&mut self) -> Result<Option<Bytes>, SseTooLarge> {
        while let Some(mut chunk) = self.chunks.pop_front() {
            if mem::take(&mut self.after_return) && chunk.first() == Some(&b'\n') {
                chunk.advance(1);
            }
            let end = memchr2(b'\n', b'\r', &chunk);
            let piece = chunk.split_to(end.unwrap_or(chunk.len()));
            if self.draft.len() + self.line.len() + piece.len() > self.limit {
                return Err(SseTooLarge { limit: self.limit });
            }
            if end.is_some() {
                self.after_return = chunk.get_u8() == b'\r';
                if !chunk.is_empty() {
                    self.chunks.push_front(chunk);
                }
                return Ok(Some(self.complete_line(piece)));
            }
            self.line.extend_from_slice(&piece);
        }
        Ok(None)
    }

    /// Returns the line that ends with this piece.
    fn complete_line(&mut self, piece: Bytes) -> Bytes {
        let line = if self.line.is_empty() {
            piece
        } else {
            self.line.extend_from_slice(&piece);
            mem::take(&mut self.line).into()
        };
        if mem::take(&mut self.at_start) && line.starts_with(BYTE_ORDER_MARK) {
            return line.slice(BYTE_ORDER_MARK.len()..);
        }
        line
    }

    fn apply_field(&mut self, line: &Bytes) {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.draft.add(line.slice_ref(value)),
            b"event" => self.draft.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.draft.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => self.retry = parse_milliseconds(value).or(self.retry),
            // A comment (empty name) or an unknown field.
            _ => {}
        }
    }

    /// Ends the event at an empty line. Returns `None` for an event with neither data nor ID.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let EventDraft { event, id, data } = mem::take(&mut self.draft);
        if let Some(id) = &id {
            self.last_id.clone_from(id);
        }
        if data.is_none() && id.is_none() {
            return None;
        }
        let data = data.map(SseData::into_bytes).unwrap_or_default();
        Some(SseEvent { event: Some(event).filter(|event| !event.is_empty()), id, data })
    }
}

impl Iterator for SseParser {
    type Item = Result<SseEvent, SseTooLarge>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let event = self.next_event();
        if event.is_err() {
            self.failed = true;
            (self.chunks, self.line, self.draft) = Default::default();
        }
        event.transpose()
    }
}

/// Parses a decimal number of milliseconds. Saturates on overflow.
fn parse_milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = str::from_utf8(value).ok()?;
    Some(Duration::from_millis(digits.parse().unwrap_or(u64::MAX)))
}

/// The event under construction.
#[derive(Debug, Default)]
struct EventDraft {
    event: String,
    id: Option<String>,
    data: Option<SseData>,
}

#[derive(Debug)]
enum SseData {
    /// One line, shared with the chunk.
    Line(Bytes),
    /// Several lines, copied.
    Lines(Vec<u8>),
}

impl EventDraft {
    fn len(&self) -> usize {
        let data = match &self.data {
            None => 0,
            Some(SseData::Line(line)) => line.len(),
            Some(SseData::Lines(lines)) => lines.len(),
        };
        data + self.event.len() + self.id.as_ref().map_or(0, String::len)
    }

    fn add(&mut self, line: Bytes) {
        self.data = Some(match self.data.take() {
            None => SseData::Line(line),
            Some(SseData::Line(first)) => SseData::Lines([&first[..], &line[..]].join(&b'\n')),
            Some(SseData::Lines(mut lines)) => {
                lines.push(b'\n');
                lines.extend_from_slice(&line);
                SseData::Lines(lines)
            }
        });
    }
}

impl SseData {
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Line(line) => line,
            Self::Lines(lines) => lines.into(),
        }
    }
}

#[cfg(test)]
mod tests;
