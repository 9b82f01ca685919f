//! A look at every message that passes.

use std::time::SystemTime;

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From us to the server.
    Sent,
    /// From the server to us.
    Received,
}

/// Sees every message with direction and time: `--debug`, traces and recordings are taps.
///
/// Runs where the message passes: it must return at once. The bytes are the server's own or may hold secrets; a tap
/// that shows them escapes and masks.
pub trait Tap: Send + Sync {
    /// One message, without its line end.
    fn message(&self, direction: Direction, at: SystemTime, message: &[u8]);
}
