//! Lifecycle and stderr of a server's process, for a log.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use wharf_guard::ProcessExit;

/// Receives stderr lines and the start and end of a server's process.
///
/// Called where the lines are read: it must return at once, by passing the text on.
pub trait ProcessLog: Send + Sync {
    /// Records one event.
    fn record(&self, server: &str, at: SystemTime, note: ProcessNote<'_>);
}

/// An event of a server's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessNote<'a> {
    /// The process was started; its pid.
    Started(i32),
    /// The process wrote a line: untrusted, without its line ending and without the server's secrets.
    Wrote(&'a str),
    /// The process ended.
    Ended(ProcessExit),
}

impl fmt::Display for ProcessNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => write!(f, "started pid {pid}"),
            Self::Wrote(line) => f.write_str(line),
            Self::Ended(exit) => exit.fmt(f),
        }
    }
}

/// The log of one server.
#[derive(Clone)]
pub(crate) struct ServerProcessLog {
    pub log: Arc<dyn ProcessLog>,
    pub server: String,
}

impl ServerProcessLog {
    pub fn record(&self, note: ProcessNote<'_>) {
        self.log.record(&self.server, SystemTime::now(), note);
    }
}
