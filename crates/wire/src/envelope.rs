//! What the scanner finds in a message, and what it says of one that is none.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::memchr;

use crate::{Id, Raw};

/// Where a part of a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

impl Span {
    /// The bytes of the part.
    pub fn of(self, line: &[u8]) -> &[u8] {
        line.get(self.start..self.end).unwrap_or_default()
    }

    /// The part as raw JSON in memory of its own.
    pub fn copy(self, line: &[u8]) -> Raw {
        Raw::known(Bytes::copy_from_slice(self.of(line)))
    }

    /// The part as raw JSON that shares the line's memory.
    pub fn share(self, line: &Bytes) -> Raw {
        Raw::known(line.slice(self.start..self.end))
    }
}

/// The parts of a message. Which of them are there says what kind of message it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The raw id.
    pub id: Option<Span>,
    /// The raw method name, quotes included.
    pub method: Option<Span>,
    /// The raw parameters.
    pub params: Option<Span>,
    /// The raw result.
    pub result: Option<Span>,
    /// The raw error.
    pub error: Option<Span>,
    /// The raw `resultType` at the top of the result.
    pub result_type: Option<Span>,
}

impl Envelope {
    /// The id, read.
    pub fn id<'a>(&self, line: &'a [u8]) -> Option<Id<'a>> {
        self.id.map(|span| Id::read(span.of(line)))
    }

    /// The method name, escapes resolved; `None` when there is none or it is no string.
    pub fn method<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, str>> {
        self.method.and_then(|span| string(span.of(line)))
    }

    /// The result's `resultType`, escapes resolved; an empty string when it is there but no string.
    pub fn result_type<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, str>> {
        self.result_type.map(|span| match span.of(line) {
            // What nearly every result says.
            b"\"complete\"" => Cow::Borrowed("complete"),
            other => string(other).unwrap_or_default(),
        })
    }
}

fn string(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inside = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr(b'\\', inside).is_none() {
        return std::str::from_utf8(inside).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(quoted).ok().map(Cow::Owned)
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Does not begin like an object: a banner, a log line, noise.
    NotAnObject,
    /// An array: several messages at once.
    Batch,
    /// Ends before the envelope does.
    Truncated,
    /// Breaks JSON's grammar at this offset.
    Malformed(usize),
    /// The same key twice in the envelope.
    DuplicateKey,
    /// More keys than an envelope can reasonably have.
    TooManyKeys,
    /// Something follows the message on its line.
    Trailing,
    /// Not UTF-8.
    NotUtf8,
    /// A raw NUL byte.
    Nul,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("not a JSON object"),
            Self::Batch => f.write_str("an array of messages, which this revision does not allow"),
            Self::Truncated => f.write_str("ends in the middle of the message"),
            Self::Malformed(at) => write!(f, "malformed JSON at byte {at}"),
            Self::DuplicateKey => f.write_str("the same key twice in the envelope"),
            Self::TooManyKeys => f.write_str("too many keys in the envelope"),
            Self::Trailing => f.write_str("more text after the message on the same line"),
            Self::NotUtf8 => f.write_str("not UTF-8"),
            Self::Nul => f.write_str("a NUL byte"),
        }
    }
}

/// What is known of a message that was too large to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Its id, raw.
    pub id: Option<Vec<u8>>,
    /// Whether it has a method: then the id is the sender's own, and it is no answer.
    pub has_method: bool,
}

/// A message that cannot be used, with what is still known of whom it was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanError {
    /// What is wrong.
    pub fault: Fault,
    /// The raw id, where one was found: the call it belongs to can be told.
    pub id: Option<Vec<u8>>,
    /// A `method` was seen, so it is no answer.
    pub has_method: bool,
}
