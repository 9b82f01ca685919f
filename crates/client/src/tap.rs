//! Observation of every message.

mod redact;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use wharf_spec::Redactor;

pub(crate) use redact::{redact_message as masked, redact_value as masked_value};

/// Returns JSON for display: without the secrets of a server, and without the values of members whose names announce a
/// secret. Escape it before it reaches a terminal.
pub fn redact_json(json: &str, redactor: &Redactor) -> String {
    String::from_utf8_lossy(&masked_value(json.as_bytes(), redactor)).into_owned()
}

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Sent,
    /// From the server to the client.
    Received,
}

/// Observes every message with its server, direction and time: `--debug`, traces and recordings are taps.
///
/// Called where the message is sent or received: it must return at once. A tap that displays messages must use
/// [`TappedMessage::redact`] and escape the output.
pub trait Tap: Send + Sync {
    /// Handles one message.
    fn message(&self, passing: &TappedMessage<'_>);
}

/// An observed message.
pub struct TappedMessage<'a> {
    /// Configured name of the server.
    pub server: &'a str,
    /// Direction of the message.
    pub direction: Direction,
    /// Time of the message.
    pub at: SystemTime,
    /// The raw message without its line ending. May contain secrets.
    pub bytes: &'a [u8],
    redactor: &'a Redactor,
}

impl TappedMessage<'_> {
    /// Returns the message with the server's secrets and the values of members such as `password` replaced.
    ///
    /// JSON input stays valid JSON.
    pub fn redact(&self) -> Cow<'_, [u8]> {
        masked(self.bytes, self.redactor)
    }
}

/// The name, redactor and tap of a connection.
#[derive(Clone, Default)]
pub(crate) struct WireObserver {
    pub server: String,
    pub redactor: Arc<Redactor>,
    pub tap: Option<Arc<dyn Tap>>,
}

impl WireObserver {
    /// Reports whether there is a tap.
    pub fn has_tap(&self) -> bool {
        self.tap.is_some()
    }

    pub fn observe(&self, direction: Direction, bytes: &[u8]) {
        let Self { server, redactor, tap } = self;
        if let Some(tap) = tap {
            tap.message(&TappedMessage { server, direction, at: SystemTime::now(), bytes, redactor });
        }
    }
}
