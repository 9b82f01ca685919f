//! Destinations of the audit log.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use wharf_store::Journal;

/// A destination of audit entries besides the file in the state directory, for example a collector.
pub trait AuditSink: Send + Sync {
    /// Writes one entry: a JSON object on one line, without a line ending. Called on the audit log's own thread, in
    /// order; it may block.
    ///
    /// # Errors
    ///
    /// A failure is reported as [`Event::AuditFailed`](crate::Event::AuditFailed). With [`AuditMode::Required`] a call
    /// whose `begin` entry fails is not made.
    fn write(&self, entry: &str) -> io::Result<()>;
}

/// Handling of a call whose audit entry cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditMode {
    /// The call is made, and the failure is reported as an event.
    #[default]
    BestEffort,
    /// The call is not made. An entry with the event `begin` is written before each tool call is sent. It survives the
    /// end of the process, but a system crash only after a later sync. A `begin` without a later entry of the call means
    /// that the outcome was not recorded. Entries of decisions and of other requests stay best effort.
    Required,
}

/// All destinations of one log.
pub(super) struct AuditDestinations {
    pub journal: Option<Journal>,
    pub sink: Option<Arc<dyn AuditSink>>,
}

impl AuditDestinations {
    /// Writes entries to every destination, also after one has failed.
    pub fn write(&self, entries: &[Box<RawValue>]) -> Result<(), String> {
        let journaled = self.journal.as_ref().map_or(Ok(()), |journal| journal.append_all(entries));
        let sent = self.sink.as_ref().map_or(Ok(()), |sink| {
            // One that fails does not hold back the others.
            entries.iter().map(|entry| sink.write(entry.get())).fold(Ok(()), Result::and)
        });
        journaled.map_err(|error| error.to_string()).and(sent.map_err(|error| error.to_string()))
    }

    pub fn sync(&self) -> Result<(), String> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.sync().map_err(|error| error.to_string()))
    }
}
