//! Minimal HTTP/1.1 for OAuth: request fields and responses.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::request::{Fields, Request};

/// Returns the fields of a request's query.
pub(super) fn query(request: &Request) -> Fields {
    request.target.split_once('?').map_or_else(Fields::new, |(_, query)| parse_fields(query))
}

/// Returns the fields of a form body; empty for other bodies.
pub(super) fn form(request: &Request) -> Fields {
    let is_form = request.header("content-type").is_some_and(|kind| kind.starts_with("application/x-www-form"));
    if is_form { parse_fields(&String::from_utf8_lossy(&request.body)) } else { Fields::new() }
}

/// Returns the value of a field.
pub(super) fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The response to a request.
pub(super) enum AuthResponse {
    Whole(FullResponse),
    /// No response until the peer disconnects.
    Silence,
    /// The connection closes without a response.
    Cut,
    /// An event stream: these events, then [`StreamEnding`].
    Events(Vec<Value>, StreamEnding),
}

/// The end of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnding {
    /// The connection closes mid-stream.
    Broken,
    /// The stream ends regularly after the current tokens expire.
    WithTokens,
}

/// A response with a complete body.
pub(super) struct FullResponse {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl AuthResponse {
    pub fn json(status: u16, body: &Value) -> AuthResponse {
        AuthResponse::text(status, "application/json", body.to_string())
    }

    pub fn text(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> AuthResponse {
        let headers = vec![("Content-Type", kind.to_owned()), ("Cache-Control", "no-store".to_owned())];
        AuthResponse::Whole(FullResponse { status, headers, body: body.into() })
    }

    /// Returns an OAuth error response.
    pub fn error(status: u16, code: &str) -> AuthResponse {
        AuthResponse::json(status, &json!({ "error": code, "error_description": format!("authd says {code}") }))
    }

    pub fn empty(status: u16) -> AuthResponse {
        AuthResponse::Whole(FullResponse { status, headers: Vec::new(), body: Vec::new() })
    }

    pub fn redirect(location: String) -> AuthResponse {
        AuthResponse::empty(302).with_header("Location", location)
    }

    /// Adds a header; other variants than [`Answer::Whole`] have none.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> AuthResponse {
        if let AuthResponse::Whole(whole) = &mut self {
            whole.headers.push((name, value.into()));
        }
        self
    }
}

impl FullResponse {
    pub fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Answer\r\nContent-Length: {}\r\n", self.status, self.body.len());
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").ok();
        }
        head.push_str("\r\n");
        stream.write_all(&[head.as_bytes(), &self.body].concat())
    }
}

/// Starts an event stream.
pub(super) fn begin_events(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
}

/// Sends text as one chunk of the stream.
pub(super) fn chunk(stream: &mut impl Write, text: &str) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

/// Percent-encodes text for a query.
pub(super) fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut written, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(char::from(byte));
        } else {
            write!(written, "%{byte:02X}").ok();
        }
        written
    })
}

/// Decodes text encoded by [`encoded`], with `+` for a space.
pub(super) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = escaped.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parse_fields(text: &str) -> Fields {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (percent_decode(key), percent_decode(value)))
        .collect()
}
