//! Headers of requests, by era.

use base64::Engine as _;
use bytes::Bytes;
use url::Url;
use wharf_net::{HeaderMap, HeaderName, HeaderValue, header};
use wharf_spec::Secret;
use wharf_wire::{Era, Revision, encode_header_value};

use super::link::HttpLink;
use crate::engine::{CallEffect, RequestFacts};
use crate::era::INITIALIZE;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER: &str = "mcp-param-";
pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// Configured headers of every request to a server.
#[derive(Clone)]
pub(super) struct ConfiguredHeaders(HeaderMap);

/// Reports whether a header is set by the protocol or by HTTP itself.
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

impl ConfiguredHeaders {
    /// Validates the configured headers.
    ///
    /// # Errors
    ///
    /// A description of the problem, without the value.
    pub fn new(wanted: &[(String, Secret)]) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION"))));
        for (known, value) in Self::parse(wanted)? {
            if known == header::USER_AGENT {
                headers.insert(known, value);
            } else {
                headers.append(known, value);
            }
        }
        Ok(Self(headers))
    }

    /// Parses headers and marks their values as sensitive.
    ///
    /// # Errors
    ///
    /// A description of the problem, without the value.
    pub fn parse(wanted: &[(String, Secret)]) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let header = |(name, value): &(String, Secret)| {
            let known =
                HeaderName::try_from(name.as_str()).map_err(|_| format!("`{name}` is not a valid header name"))?;
            if is_reserved(&known) {
                return Err(format!("`{name}` is set by the connection itself"));
            }
            let mut value = HeaderValue::from_str(value.reveal())
                .map_err(|_| format!("the value of `{name}` contains invalid characters"))?;
            value.set_sensitive(true);
            Ok((known, value))
        };
        wanted.iter().map(header).collect()
    }

    /// Moves credentials from the address to a header: addresses are logged and displayed more often.
    pub fn move_credentials_from(&mut self, url: &mut Url) -> Result<(), String> {
        if url.username().is_empty() && url.password().is_none() {
            return Ok(());
        }
        if self.0.contains_key(header::AUTHORIZATION) {
            return Err("credentials are set both in the URL and in `Authorization`".to_owned());
        }
        let who = format!("{}:{}", percent_decode(url.username()), percent_decode(url.password().unwrap_or_default()));
        let text = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(who));
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| "the credentials in the URL are invalid".to_owned())?;
        value.set_sensitive(true);
        self.0.insert(header::AUTHORIZATION, value);
        // Fails only for addresses without a host, which cannot have credentials.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        Ok(())
    }

    /// Reports whether the headers contain credentials.
    pub fn has_authorization(&self) -> bool {
        self.0.contains_key(header::AUTHORIZATION)
    }

    fn post_headers(&self) -> HeaderMap {
        let mut headers = self.0.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers
    }

    /// Returns the headers of a GET for a stream.
    pub fn stream_headers(&self, revision: Option<Revision>) -> HeaderMap {
        let mut headers = self.0.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static(EVENTS));
        insert_revision(&mut headers, revision);
        headers
    }

    /// Returns the headers of the DELETE that ends a session.
    pub fn delete_headers(&self, revision: Option<Revision>) -> HeaderMap {
        let mut headers = self.0.clone();
        insert_revision(&mut headers, revision);
        headers
    }
}

/// Decodes the percent-encoding in a part of a URL.
fn percent_decode(text: &str) -> String {
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

/// Adds the revision header, which exists since 2025-06-18.
fn insert_revision(headers: &mut HeaderMap, revision: Option<Revision>) {
    if let Some(revision) = revision.filter(|revision| *revision >= Revision::V2025_06_18) {
        headers.insert(REVISION, HeaderValue::from_static(revision.as_str()));
    }
}

/// One message to post.
pub(super) struct PostRequest {
    pub headers: HeaderMap,
    pub body: Bytes,
    pub era: Era,
    /// Id of the call. 0 if the message is not a call.
    pub id: u64,
    pub effect: CallEffect,
    /// True if the request opens the session.
    pub opens: bool,
    /// True if the request is long-running, so that it must not occupy a slot of the concurrency limit.
    pub lasts: bool,
}

impl PostRequest {
    /// Creates a request that gets a response.
    pub fn request(link: &HttpLink, facts: RequestFacts<'_>, body: Bytes) -> Self {
        let (era, revision) = link.era_of(facts.method);
        let mut headers = link.headers.post_headers();
        insert_revision(&mut headers, revision);
        if era == Era::Stateless {
            insert_request_headers(&mut headers, &facts);
        }
        Self {
            headers,
            body,
            era,
            id: facts.id,
            effect: facts.effect,
            opens: facts.method == INITIALIZE,
            lasts: matches!(facts.method, "subscriptions/listen" | "tasks/result"),
        }
    }

    /// Creates the request that opens a session again.
    pub fn reinitialize(link: &HttpLink, body: Bytes) -> Self {
        let headers = link.headers.post_headers();
        Self { headers, body, era: Era::Handshake, id: 0, effect: CallEffect::Reads, opens: true, lasts: false }
    }

    /// Creates a notification or a reply to the server.
    pub fn notification(link: &HttpLink, body: Bytes) -> Self {
        let revision = link.protocol.revision();
        let mut headers = link.headers.post_headers();
        insert_revision(&mut headers, revision);
        Self { headers, body, era: Era::Handshake, id: 0, effect: CallEffect::MayWrite, opens: false, lasts: false }
    }
}

/// Repeats the target of the request in headers (2026-07-28, basic/transports), verbatim or in Base64.
fn insert_request_headers(headers: &mut HeaderMap, facts: &RequestFacts<'_>) {
    insert(headers, METHOD, facts.method);
    if let Some(name) = facts.name {
        insert(headers, NAME, name);
    }
    for (parameter, value) in facts.header_params {
        // Validated as a token when the tool was listed.
        if let Ok(name) = HeaderName::try_from(format!("{PARAMETER}{}", parameter.to_ascii_lowercase())) {
            insert(headers, name, value);
        }
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(&encode_header_value(text)) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_headers_cannot_be_configured() {
        for name in ["Accept", "content-type", "Host", "Mcp-Session-Id", "MCP-Protocol-Version", "mcp-anything"] {
            assert!(ConfiguredHeaders::new(&[(name.to_owned(), Secret::new("x"))]).is_err(), "{name}");
        }
        for name in ["Authorization", "X-Api-Key", "Cookie"] {
            assert!(ConfiguredHeaders::new(&[(name.to_owned(), Secret::new("x"))]).is_ok(), "{name}");
        }
    }

    #[test]
    fn url_credentials_become_an_authorization_header() {
        let mut headers = ConfiguredHeaders::new(&[]).unwrap();
        let mut url = Url::parse("https://me:p%40ss@example.org/mcp").unwrap();
        headers.move_credentials_from(&mut url).unwrap();
        assert_eq!(url.as_str(), "https://example.org/mcp");
        assert_eq!(headers.0[header::AUTHORIZATION], "Basic bWU6cEBzcw==");
        let mut url = Url::parse("https://me@example.org/mcp").unwrap();
        assert!(headers.move_credentials_from(&mut url).is_err(), "somebody else logs in already");
    }

    #[test]
    fn invalid_header_is_rejected_without_showing_its_value() {
        for (name, value) in [("a b", "hush"), ("", "hush"), ("X-Key", "hush\r\nX-Other: 1"), ("X-Key", "hush\0")] {
            let refused = ConfiguredHeaders::new(&[(name.to_owned(), Secret::new(value))]).err().unwrap();
            assert!(!refused.contains("hush"), "{refused}");
        }
    }
}
