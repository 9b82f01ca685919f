//! How a server was lost.

use std::fmt;
use std::io;
use std::time::Duration;

use wharf_net::NotAuthorized;

use super::{Hint, Seconds, wants_login};
use wharf_guard::Exit;

/// How a server was lost, with the evidence there is.
#[derive(Debug, Clone)]
pub struct Gone {
    /// What was noticed.
    pub cause: GoneCause,
    /// How its process ended, where it did.
    pub exit: Option<Exit>,
    /// The last lines it wrote to stderr: untrusted text.
    pub stderr: Vec<String>,
    /// What else may explain it, such as output that was no message; escaped.
    pub hint: Option<String>,
}

impl Gone {
    /// An account with nothing but its cause.
    pub(crate) fn because(cause: GoneCause) -> Self {
        Self { cause, exit: None, stderr: Vec::new(), hint: None }
    }

    /// Whether meeting the server again the same way is out of the question.
    pub(crate) fn is_final(&self) -> bool {
        match &self.cause {
            GoneCause::Changed | GoneCause::NotMcp(_) => true,
            GoneCause::NotAuthorized(why) => !why.may_pass(),
            _ => false,
        }
    }

    /// Why nobody knows us there, where that is how it was lost.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match &self.cause {
            GoneCause::NotAuthorized(why) => Some(why),
            _ => None,
        }
    }

    /// Whether a login would help.
    pub fn needs_login(&self) -> bool {
        matches!(&self.cause, GoneCause::NotAuthorized(why) if wants_login(401, Some(why)))
    }
}

/// What was noticed when a server was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GoneCause {
    /// Its process ended.
    Exited,
    /// It closed its output.
    ClosedOutput,
    /// It closed its input.
    ClosedInput,
    /// It left its input unread for this long.
    StoppedReading(Duration),
    /// It wrote one endless line.
    EndlessLine,
    /// It does not speak the protocol at all; what was seen instead.
    NotMcp(&'static str),
    /// Reading from it failed.
    Unreadable(io::ErrorKind),
    /// It cannot be reached; nothing was sent.
    Unreachable {
        /// What was noticed.
        what: String,
        /// Whether that may pass by itself.
        passing: bool,
    },
    /// The answer broke off, or the stream that was to bring it.
    Cut(String),
    /// It answered with this HTTP status, which says nothing about what became of the call.
    Status(u16),
    /// It has forgotten the session the call belonged to.
    SessionExpired,
    /// It does not take who we are any more, or nobody can tell at present who we are.
    NotAuthorized(NotAuthorized),
    /// It does not speak any more what was agreed on.
    Changed,
    /// It stopped serving.
    Stopped,
    /// We closed the connection.
    Closed,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, self.exit) {
            (GoneCause::Closed, _) => f.write_str("the connection was closed"),
            (GoneCause::NotMcp(what), _) => write!(f, "it does not speak MCP: {what}"),
            (GoneCause::EndlessLine, _) => f.write_str("it wrote a line without end"),
            (GoneCause::StoppedReading(time), _) => write!(f, "it left its input unread for {}", Seconds(*time)),
            (GoneCause::Stopped, _) => f.write_str("it stopped serving"),
            (GoneCause::Unreachable { what, .. }, _) => write!(f, "it cannot be reached: {what}"),
            (GoneCause::Cut(what), _) => f.write_str(what),
            (GoneCause::Status(status), _) => write!(f, "it answered HTTP {status}"),
            (GoneCause::SessionExpired, _) => f.write_str("it has forgotten the session"),
            (GoneCause::NotAuthorized(why), _) => write!(f, "it does not know who asks: {why}"),
            (GoneCause::Changed, _) => f.write_str("it no longer speaks the revision agreed on"),
            (_, Some(exit)) => write!(f, "it {exit}"),
            (GoneCause::Exited, None) => f.write_str("it exited"),
            (GoneCause::ClosedOutput, None) => f.write_str("it closed its output"),
            (GoneCause::ClosedInput, None) => f.write_str("it closed its input"),
            (GoneCause::Unreadable(kind), None) => write!(f, "its output cannot be read: {kind}"),
        }?;
        Hint(&self.hint).fmt(f)
    }
}
