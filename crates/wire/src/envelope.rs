//! Results of the scanner: the parts of a message, and its errors.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::memchr;

use crate::{Id, RawJson};

/// Byte range of a part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the bytes of the part.
    pub fn slice(self, line: &[u8]) -> &[u8] {
        line.get(self.start..self.end).unwrap_or_default()
    }

    /// Copies the part into its own buffer.
    pub fn to_raw(self, line: &[u8]) -> RawJson {
        RawJson::new_unchecked(Bytes::copy_from_slice(self.slice(line)))
    }

    /// Returns the part as a slice of the line's buffer.
    pub fn to_shared_raw(self, line: &Bytes) -> RawJson {
        RawJson::new_unchecked(line.slice(self.start..self.end))
    }
}

/// The parts of a message. Their presence determines the kind of message.
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
    /// Returns the parsed id.
    pub fn id<'a>(&self, line: &'a [u8]) -> Option<Id<'a>> {
        self.id.map(|span| Id::parse(span.slice(line)))
    }

    /// Returns the method name with escapes resolved; `None` if it is missing or not a string.
    pub fn method<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, str>> {
        self.method.and_then(|span| parse_string(span.slice(line)))
    }

    /// Returns the result's `resultType` with escapes resolved; an empty string if it is present but not a string.
    pub fn result_type<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, str>> {
        self.result_type.map(|span| match span.slice(line) {
            // Fast path: the value of almost every result.
            b"\"complete\"" => Cow::Borrowed("complete"),
            other => parse_string(other).unwrap_or_default(),
        })
    }
}

fn parse_string(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inside = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr(b'\\', inside).is_none() {
        return std::str::from_utf8(inside).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(quoted).ok().map(Cow::Owned)
}

/// The defect of an invalid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Does not start like an object: a banner, a log line or noise.
    NotAnObject,
    /// An array of messages.
    Batch,
    /// Ends before the envelope does.
    Truncated,
    /// Invalid JSON at this offset.
    Malformed(usize),
    /// A duplicate key in the envelope.
    DuplicateKey,
    /// More keys in the envelope than the scanner accepts.
    TooManyKeys,
    /// Trailing data on the line.
    Trailing,
    /// Not UTF-8.
    NotUtf8,
    /// Contains a raw NUL byte.
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

/// The parts extracted from a message that was too large to buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialEnvelope {
    /// The raw id.
    pub id: Option<Vec<u8>>,
    /// Set if a `method` was seen: the message is a request or notification, not a response.
    pub has_method: bool,
}

/// A scan failure, with the parts needed to fail the affected call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanError {
    /// The defect.
    pub fault: Fault,
    /// The raw id, if found. Identifies the call to fail.
    pub id: Option<Vec<u8>>,
    /// Set if a `method` was seen: the message is not a response.
    pub has_method: bool,
}
