//! Event streams, read as the HTML standard says (WHATWG, 9.2.6), within bounds.
//!
//! Owns lines and events. What an event means, how long a stream may be silent and when to come back is for whoever
//! reads it.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::{Buf, Bytes};
use memchr::{memchr, memchr2};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event of a stream. Every string is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Its type; `None` for the usual one, `message`.
    pub event: Option<String>,
    /// The id it brought itself; an empty one takes back those before.
    pub id: Option<String>,
    /// Its data, not known to be UTF-8. Empty in an event that only brings an id.
    pub data: Bytes,
}

/// An event grew beyond what was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct SseTooLarge {
    /// How large one may be.
    pub limit: usize,
}

/// Turns chunks into events.
///
/// An iterator that goes on when more has been pushed: `None` means that no event is complete yet, or that there has
/// been an error, after which nothing follows. Each byte is looked at a few times however the stream is cut. A line
/// that lies within one chunk shares its memory; one that does not is copied once.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// Not looked at yet. As many as were pushed since the last `None`.
    chunks: VecDeque<Bytes>,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// A line ended in CR: an LF that follows belongs to it.
    after_return: bool,
    at_start: bool,
    failed: bool,
    draft: Draft,
    last_id: String,
    retry: Option<Duration>,
    activity: u64,
}

impl SseParser {
    /// A parser for one stream from its beginning.
    ///
    /// The limit is on what one event makes it hold: data, id and type so far, and the line being read with its
    /// field's name. A message is thus allowed a few bytes less.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            chunks: VecDeque::new(),
            line: Vec::new(),
            after_return: false,
            at_start: true,
            failed: false,
            draft: Draft::default(),
            last_id: String::new(),
            retry: None,
            activity: 0,
        }
    }

    /// Takes the next piece of the stream. Nothing is read until an event is asked for.
    pub fn push(&mut self, chunk: Bytes) {
        self.activity += chunk.len() as u64;
        if !self.failed && !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// How many bytes the event being read has so far.
    pub fn held(&self) -> usize {
        self.draft.len() + self.line.len()
    }

    /// The last valid `retry` so far, however long. An event need not be complete for it.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The id to resume after: that of the last event given which had one, `None` if it was empty.
    pub fn last_id(&self) -> Option<&str> {
        Some(self.last_id.as_str()).filter(|id| !id.is_empty())
    }

    /// How many bytes were ever pushed, so that comments count as signs of life.
    pub fn activity(&self) -> u64 {
        self.activity
    }

    fn event(&mut self) -> Result<Option<SseEvent>, SseTooLarge> {
        while let Some(line) = self.line()? {
            if !line.is_empty() {
                self.field(&line);
            } else if let Some(event) = self.dispatch() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The next whole line without its end.
    fn line(&mut self) -> Result<Option<Bytes>, SseTooLarge> {
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
                return Ok(Some(self.whole(piece)));
            }
            self.line.extend_from_slice(&piece);
        }
        Ok(None)
    }

    /// The line that ends with this piece.
    fn whole(&mut self, piece: Bytes) -> Bytes {
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

    fn field(&mut self, line: &Bytes) {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.draft.add(line.slice_ref(value)),
            b"event" => self.draft.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.draft.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => self.retry = milliseconds(value).or(self.retry),
            // A comment, which has no name, or a field nobody knows.
            _ => {}
        }
    }

    /// Ends the event at an empty line; one without data and without an id was none.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let Draft { event, id, data } = mem::take(&mut self.draft);
        if let Some(id) = &id {
            self.last_id.clone_from(id);
        }
        if data.is_none() && id.is_none() {
            return None;
        }
        let data = data.map(Data::into_bytes).unwrap_or_default();
        Some(SseEvent { event: Some(event).filter(|event| !event.is_empty()), id, data })
    }
}

impl Iterator for SseParser {
    type Item = Result<SseEvent, SseTooLarge>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let event = self.event();
        if event.is_err() {
            self.failed = true;
            (self.chunks, self.line, self.draft) = Default::default();
        }
        event.transpose()
    }
}

/// Digits alone; more than a number can hold is as good as for ever.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = str::from_utf8(value).ok()?;
    Some(Duration::from_millis(digits.parse().unwrap_or(u64::MAX)))
}

/// The event being read.
#[derive(Debug, Default)]
struct Draft {
    event: String,
    id: Option<String>,
    data: Option<Data>,
}

#[derive(Debug)]
enum Data {
    /// One line, where it came.
    Line(Bytes),
    /// Several, copied together.
    Lines(Vec<u8>),
}

impl Draft {
    fn len(&self) -> usize {
        let data = match &self.data {
            None => 0,
            Some(Data::Line(line)) => line.len(),
            Some(Data::Lines(lines)) => lines.len(),
        };
        data + self.event.len() + self.id.as_ref().map_or(0, String::len)
    }

    fn add(&mut self, line: Bytes) {
        self.data = Some(match self.data.take() {
            None => Data::Line(line),
            Some(Data::Line(first)) => Data::Lines([&first[..], &line[..]].join(&b'\n')),
            Some(Data::Lines(mut lines)) => {
                lines.push(b'\n');
                lines.extend_from_slice(&line);
                Data::Lines(lines)
            }
        });
    }
}

impl Data {
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Line(line) => line,
            Self::Lines(lines) => lines.into(),
        }
    }
}

#[cfg(test)]
mod tests;
