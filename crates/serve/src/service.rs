//! What a server has to provide, and where its messages go.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::IgnoredAny;
use wharf_wire::{RawJson, Revision, code, scan};

use crate::message::{ClientMessage, on_one_line};

/// A server whose clients arrive over a transport.
pub trait Service: Send + Sync + 'static {
    /// Reports whether a handshake revision is supported.
    fn has_sessions(&self) -> bool;

    /// Opens the connection of a session, which begins with `initialize`. `None` if no handshake revision is supported.
    fn open_session(&self) -> Option<Arc<dyn ClientConnection>>;

    /// Opens the connection of one stateless request. `None` if no stateless revision is supported.
    fn open_request(&self, headers: &http::HeaderMap) -> Option<Arc<dyn ClientConnection>>;
}

/// One client: a session, or a single stateless request.
pub trait ClientConnection: Send + Sync + 'static {
    /// Handles a message or a batch. Must not block: a request is answered through `out`, now or later.
    ///
    /// Every request gets one response, unless the client cancels it.
    fn receive(&self, message: ClientMessage, out: Arc<dyn Outbox>);

    /// Checks a stateless request before its headers are compared with its body.
    ///
    /// # Errors
    ///
    /// Returns the reply if the request does not describe itself correctly.
    fn admit(&self, request: &ClientMessage) -> Result<(), OutgoingMessage>;

    /// Returns the input schema of a tool, whose arguments may be repeated in headers.
    fn input_schema(&self, tool: &str) -> Option<RawJson>;

    /// Returns the negotiated revision, if there is one yet.
    fn revision(&self) -> Option<Revision>;

    /// Gives the connection a stream for messages that belong to no request. Called at most once.
    ///
    /// # Errors
    ///
    /// Fails if the connection cannot be kept, for example for lack of threads.
    fn attach(&self, out: Arc<dyn Outbox>) -> io::Result<()>;

    /// Cancels all requests in progress without a response: the client has disconnected.
    fn cancel_pending(&self);

    /// Ends the connection.
    fn close(&self);
}

/// Sends messages to a client. A transport has one for each connection or request.
pub trait Outbox: Send + Sync {
    /// Sends one message. A message that can no longer be delivered is dropped.
    fn send(&self, message: OutgoingMessage);

    /// Returns the outbox for messages that do not belong to the request or come after its response.
    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        None
    }
}

/// A message to a client: JSON text. Line breaks are replaced, so that no server can end a line or an event.
///
/// The text of a server that is only forwarded may be malformed deep inside. It is checked here, once and without a
/// copy: a client would lose its whole connection over one line that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The text.
    pub text: Bytes,
    /// Reports whether this is the response to the request, or to the whole batch.
    pub is_response: bool,
    /// Code of an error response.
    pub error_code: Option<i64>,
}

impl OutgoingMessage {
    /// A notification, or a request of the server. A malformed one is empty, and is not sent.
    pub fn unsolicited(text: impl Into<Bytes>) -> Self {
        let text = on_one_line(text.into());
        let text = if is_json(&text) { text } else { Bytes::new() };
        Self { text, is_response: false, error_code: None }
    }

    /// The response to a request. A malformed one becomes an error response.
    pub fn response(text: impl Into<Bytes>) -> Self {
        Self::checked(text.into(), None)
    }

    /// An error response.
    pub fn error(text: impl Into<Bytes>, code: i64) -> Self {
        Self::checked(text.into(), Some(code))
    }

    fn checked(text: Bytes, error_code: Option<i64>) -> Self {
        let text = on_one_line(text);
        if is_json(&text) {
            return Self { text, is_response: true, error_code };
        }
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":"the server's response is not valid JSON"}}}}"#,
            response_id(&text),
            code::INTERNAL,
        );
        Self { text: text.into(), is_response: true, error_code: Some(code::INTERNAL) }
    }
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Returns the raw id of a malformed response, or `null`.
fn response_id(text: &[u8]) -> String {
    let id = match scan(text) {
        Ok(envelope) => envelope.id.map(|span| span.slice(text).to_vec()),
        Err(error) => error.id,
    };
    let id = id.and_then(|id| String::from_utf8(id).ok()).filter(|id| is_json(id.as_bytes()));
    id.unwrap_or_else(|| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &'static str, expected: &str) {
        let sent = OutgoingMessage::response(text);
        let text: serde_json::Value = serde_json::from_slice(&sent.text).unwrap();
        let found = format!("{} {}", text["id"], sent.error_code.unwrap_or_default());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn malformed_response_becomes_an_error_for_its_request() {
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1,2]}}"#, "1 0");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1,}}}"#, "1 -32603");
        check(r#"{"jsonrpc":"2.0","id":"x","result":{"a":tru}}"#, "\"x\" -32603");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\q"}}"#, "1 -32603");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":01}}"#, "1 -32603");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a" 1}}"#, "1 -32603");
        check("no", "null -32603");
    }

    #[test]
    fn malformed_notification_is_empty() {
        assert!(OutgoingMessage::unsolicited(r#"{"method":"a","params":{"b":}}"#).text.is_empty());
        let whole = r#"{"method":"a","params":{"b":1}}"#;
        assert_eq!(OutgoingMessage::unsolicited(whole).text, whole);
    }
}
