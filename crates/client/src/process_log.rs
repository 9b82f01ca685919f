//! What becomes of a server's process and what it writes beside the protocol, for whoever keeps a log.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use wharf_guard::Exit;

/// Takes what a server writes to stderr, and when its process begins and ends.
///
/// Runs where the lines are read: it must return at once, by handing the text on.
pub trait ProcessLog: Send + Sync {
    /// One thing that happened.
    fn note(&self, server: &str, at: SystemTime, note: ProcessNote<'_>);
}

/// Something that happened to a server's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessNote<'a> {
    /// It was started; its number.
    Started(i32),
    /// It wrote a line: untrusted, without its line end and without the server's secrets.
    Wrote(&'a str),
    /// It ended.
    Ended(Exit),
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
pub(crate) struct Logging {
    pub log: Arc<dyn ProcessLog>,
    pub server: String,
}

impl Logging {
    pub fn note(&self, note: ProcessNote<'_>) {
        self.log.note(&self.server, SystemTime::now(), note);
    }
}
