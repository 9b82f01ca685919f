//! Details of a lost server.

use std::fmt;
use std::io;
use std::time::Duration;

use wharf_net::NotAuthorized;

use super::{HintSuffix, SecondsText, login_would_help};
use wharf_guard::ProcessExit;

/// Details of a lost server: its cause and the available evidence.
#[derive(Debug, Clone)]
pub struct DisconnectReport {
    /// The observed cause.
    pub cause: DisconnectCause,
    /// Exit status of the process, if it ended.
    pub exit: Option<ProcessExit>,
    /// The last lines the server wrote to stderr. Untrusted.
    pub stderr: Vec<String>,
    /// Further evidence, such as output that was not a message. Escaped.
    pub hint: Option<String>,
}

impl DisconnectReport {
    /// Creates a value with only a cause.
    pub(crate) fn from_cause(cause: DisconnectCause) -> Self {
        Self { cause, exit: None, stderr: Vec::new(), hint: None }
    }

    /// Reports whether a reconnect with the same negotiation result cannot succeed.
    pub(crate) fn is_final(&self) -> bool {
        match &self.cause {
            DisconnectCause::Changed | DisconnectCause::NotMcp(_) => true,
            DisconnectCause::NotAuthorized(why) => !why.is_transient(),
            _ => false,
        }
    }

    /// Returns the authorization failure, if that is the cause.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match &self.cause {
            DisconnectCause::NotAuthorized(why) => Some(why),
            _ => None,
        }
    }

    /// Reports whether a login would help.
    pub fn needs_login(&self) -> bool {
        matches!(&self.cause, DisconnectCause::NotAuthorized(why) if login_would_help(401, Some(why)))
    }
}

/// The observed cause of losing a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisconnectCause {
    /// The process ended.
    Exited,
    /// The server closed its output.
    ClosedOutput,
    /// The server closed its input.
    ClosedInput,
    /// The server did not read its input for this long.
    StoppedReading(Duration),
    /// The server wrote a line without end.
    EndlessLine,
    /// The server does not speak MCP; a description of its output.
    NotMcp(&'static str),
    /// Reading the server's output failed.
    Unreadable(io::ErrorKind),
    /// The server cannot be reached. The request was not sent.
    Unreachable {
        /// Description of the failure.
        what: String,
        /// True if the failure may be transient.
        passing: bool,
    },
    /// The response or the stream carrying it was interrupted; a description.
    Cut(String),
    /// The server returned this HTTP status, which leaves the outcome of the call unknown.
    Status(u16),
    /// The server no longer knows the session of the call.
    SessionExpired,
    /// The server rejects the credentials, or the authorizer cannot provide any.
    NotAuthorized(NotAuthorized),
    /// The server no longer speaks the negotiated revision.
    Changed,
    /// The server stopped serving.
    Stopped,
    /// The client closed the connection.
    Closed,
}

impl fmt::Display for DisconnectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, self.exit) {
            (DisconnectCause::Closed, _) => f.write_str("connection closed by the client"),
            (DisconnectCause::NotMcp(what), _) => write!(f, "not an MCP server: {what}"),
            (DisconnectCause::EndlessLine, _) => f.write_str("server wrote an unterminated line"),
            (DisconnectCause::StoppedReading(time), _) => {
                write!(f, "server did not read its input for {}", SecondsText(*time))
            }
            (DisconnectCause::Stopped, _) => f.write_str("server stopped serving"),
            (DisconnectCause::Unreachable { what, .. }, _) => write!(f, "server unreachable: {what}"),
            (DisconnectCause::Cut(what), _) => f.write_str(what),
            (DisconnectCause::Status(status), _) => write!(f, "server returned HTTP {status}"),
            (DisconnectCause::SessionExpired, _) => f.write_str("session expired"),
            (DisconnectCause::NotAuthorized(why), _) => write!(f, "not authenticated: {why}"),
            (DisconnectCause::Changed, _) => f.write_str("server no longer speaks the negotiated revision"),
            (_, Some(exit)) => write!(f, "server {exit}"),
            (DisconnectCause::Exited, None) => f.write_str("server exited"),
            (DisconnectCause::ClosedOutput, None) => f.write_str("server closed its output"),
            (DisconnectCause::ClosedInput, None) => f.write_str("server closed its input"),
            (DisconnectCause::Unreadable(kind), None) => write!(f, "failed to read the server's output: {kind}"),
        }?;
        HintSuffix(&self.hint).fmt(f)
    }
}
