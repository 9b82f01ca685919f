//! What answering a request needs of the server, whatever it speaks over.

use std::time::Duration;

use serde_json::Value;

use super::options::Options;

/// The server behind a request. Over HTTP every request has one of its own.
pub trait Serving {
    fn options(&self) -> &Options;

    /// Whether the request belongs to the stateless era.
    fn is_stateless(&self) -> bool;

    /// Sends a notification that belongs to the request.
    fn notify(&self, line: String);

    /// Waits for `time`; true as soon as the client no longer wants the answer.
    fn withdrawn_within(&self, id: &Value, time: Duration) -> bool;

    /// Adds a line to the ledger.
    fn record(&self, entry: &str) {
        self.options().record(entry);
    }
}
