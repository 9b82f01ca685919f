//! What a server has to provide, and where its messages go.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use wharf_wire::{RawJson, Revision};

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
    /// A notification, or a request of the server.
    pub fn unsolicited(text: impl Into<Bytes>) -> Self {
        Self { text: on_one_line(text.into()), is_response: false, error_code: None }
    }

    /// The response to a request.
    pub fn response(text: impl Into<Bytes>) -> Self {
        Self { text: on_one_line(text.into()), is_response: true, error_code: None }
    }

    /// An error response.
    pub fn error(text: impl Into<Bytes>, code: i64) -> Self {
        Self { text: on_one_line(text.into()), is_response: true, error_code: Some(code) }
    }
}
