//! The server interface that request handlers use, independent of the transport.

use std::time::Duration;

use serde_json::Value;

use super::options::FaultOptions;

/// The server behind a request. Over HTTP every request has its own.
pub trait RequestServer {
    fn options(&self) -> &FaultOptions;

    /// Reports whether the request belongs to the stateless era.
    fn is_stateless(&self) -> bool;

    /// Sends a notification that belongs to the request.
    fn notify(&self, line: String);

    /// Waits up to `time`. Returns true as soon as the request is cancelled.
    fn cancelled_within(&self, id: &Value, time: Duration) -> bool;

    /// Appends a line to the ledger.
    fn record(&self, entry: &str) {
        self.options().record(entry);
    }
}
