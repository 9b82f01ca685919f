//! What one message carries in its headers, by era.

use base64::Engine as _;
use bytes::Bytes;
use url::Url;
use wharf_net::{HeaderMap, HeaderName, HeaderValue, header};
use wharf_spec::Secret;
use wharf_wire::{Era, Revision, header_text};

use super::link::HttpLink;
use crate::engine::{Effect, Label};
use crate::era::INITIALIZE;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER: &str = "mcp-param-";
pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// What every request to a server carries because its owner wants so.
#[derive(Clone)]
pub(super) struct Headers(HeaderMap);

/// Headers that are the protocol's or HTTP's own to set.
fn is_reserved(name: &HeaderName) -> bool {
    let own = [
        header::ACCEPT,
        header::ACCEPT_ENCODING,
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::CONTENT_ENCODING,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        header::HOST,
        LAST_EVENT,
    ];
    own.contains(name) || name.as_str().starts_with("mcp-")
}

impl Headers {
    /// Reads what the owner wants sent. An error says what is wrong, without the value.
    pub fn new(wanted: &[(String, Secret)]) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in wanted {
            let known = HeaderName::try_from(name.as_str()).map_err(|_| format!("`{name}` is no name for a header"))?;
            if is_reserved(&known) {
                return Err(format!("`{name}` is set by the connection itself"));
            }
            let mut value = HeaderValue::from_str(value.reveal())
                .map_err(|_| format!("the value of `{name}` has characters a header cannot carry"))?;
            value.set_sensitive(true);
            if known == header::USER_AGENT {
                headers.insert(known, value);
            } else {
                headers.append(known, value);
            }
        }
        Ok(Self(headers))
    }

    /// Who logs in by the address itself says so in a header instead: an address travels further than a header does.
    pub fn log_in(&mut self, url: &mut Url) -> Result<(), String> {
        if url.username().is_empty() && url.password().is_none() {
            return Ok(());
        }
        if self.0.contains_key(header::AUTHORIZATION) {
            return Err("the address says who logs in, and so does `Authorization`".to_owned());
        }
        let who = format!("{}:{}", unescaped(url.username()), unescaped(url.password().unwrap_or_default()));
        let text = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(who));
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| "the address names nobody who can log in".to_owned())?;
        value.set_sensitive(true);
        self.0.insert(header::AUTHORIZATION, value);
        // Only addresses that can name nobody refuse, and this one did.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        Ok(())
    }

    /// Whether they say already who asks.
    pub fn say_who_asks(&self) -> bool {
        self.0.contains_key(header::AUTHORIZATION)
    }

    fn posting(&self) -> HeaderMap {
        let mut headers = self.0.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers
    }

    /// What a GET for a stream carries.
    pub fn listening(&self, revision: Option<Revision>) -> HeaderMap {
        let mut headers = self.0.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static(EVENTS));
        name_revision(&mut headers, revision);
        headers
    }

    /// What leaving a session carries.
    pub fn leaving(&self, revision: Option<Revision>) -> HeaderMap {
        let mut headers = self.0.clone();
        name_revision(&mut headers, revision);
        headers
    }
}

/// A part of a URL without its escapes.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// In the handshake eras the revision is named from 2025-06-18 on.
fn name_revision(headers: &mut HeaderMap, revision: Option<Revision>) {
    if let Some(revision) = revision.filter(|revision| *revision >= Revision::V2025_06_18) {
        headers.insert(REVISION, HeaderValue::from_static(revision.as_str()));
    }
}

/// One message to be posted.
pub(super) struct Order {
    pub headers: HeaderMap,
    pub body: Bytes,
    pub era: Era,
    /// The call it makes, where it makes one.
    pub id: u64,
    pub effect: Effect,
    /// It opens the session.
    pub opens: bool,
    /// It is answered when it is over, however long that takes, so that it must not keep others from going.
    pub lasts: bool,
}

impl Order {
    /// A request that will be answered.
    pub fn request(link: &HttpLink, label: Label<'_>, body: Bytes) -> Self {
        let (era, revision) = link.era_of(label.method);
        let mut headers = link.headers.posting();
        name_revision(&mut headers, revision);
        if era == Era::Stateless {
            describe(&mut headers, &label);
        }
        Self {
            headers,
            body,
            era,
            id: label.id,
            effect: label.effect,
            opens: label.method == INITIALIZE,
            lasts: matches!(label.method, "subscriptions/listen" | "tasks/result"),
        }
    }

    /// The request that opens a session, made once more.
    pub fn opening(link: &HttpLink, body: Bytes) -> Self {
        let headers = link.headers.posting();
        Self { headers, body, era: Era::Handshake, id: 0, effect: Effect::Reads, opens: true, lasts: false }
    }

    /// A notification, or an answer to the server.
    pub fn word(link: &HttpLink, body: Bytes) -> Self {
        let revision = link.dialect.revision();
        let mut headers = link.headers.posting();
        name_revision(&mut headers, revision);
        Self { headers, body, era: Era::Handshake, id: 0, effect: Effect::MayWrite, opens: false, lasts: false }
    }
}

/// Says in headers what the message asks for (2026-07-28, basic/transports), byte for byte or in Base64.
fn describe(headers: &mut HeaderMap, label: &Label<'_>) {
    insert(headers, METHOD, label.method);
    if let Some(name) = label.name {
        insert(headers, NAME, name);
    }
    for (parameter, value) in label.mirrored {
        // Checked to be a token when the tool was listed.
        if let Ok(name) = HeaderName::try_from(format!("{PARAMETER}{}", parameter.to_ascii_lowercase())) {
            insert(headers, name, value);
        }
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(&header_text(text)) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_protocol_sets_cannot_be_set() {
        for name in ["Accept", "content-type", "Host", "Mcp-Session-Id", "MCP-Protocol-Version", "mcp-anything"] {
            assert!(Headers::new(&[(name.to_owned(), Secret::new("x"))]).is_err(), "{name}");
        }
        for name in ["Authorization", "X-Api-Key", "Cookie"] {
            assert!(Headers::new(&[(name.to_owned(), Secret::new("x"))]).is_ok(), "{name}");
        }
    }

    #[test]
    fn who_logs_in_by_the_address_does_so_by_a_header() {
        let mut headers = Headers::new(&[]).unwrap();
        let mut url = Url::parse("https://me:p%40ss@example.org/mcp").unwrap();
        headers.log_in(&mut url).unwrap();
        assert_eq!(url.as_str(), "https://example.org/mcp");
        assert_eq!(headers.0[header::AUTHORIZATION], "Basic bWU6cEBzcw==");
        let mut url = Url::parse("https://me@example.org/mcp").unwrap();
        assert!(headers.log_in(&mut url).is_err(), "somebody else logs in already");
    }

    #[test]
    fn a_header_that_cannot_be_is_refused_without_its_value() {
        for (name, value) in [("a b", "hush"), ("", "hush"), ("X-Key", "hush\r\nX-Other: 1"), ("X-Key", "hush\0")] {
            let refused = Headers::new(&[(name.to_owned(), Secret::new(value))]).err().unwrap();
            assert!(!refused.contains("hush"), "{refused}");
        }
    }
}
