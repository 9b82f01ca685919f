//! How connecting and calling can fail. Messages are fragments; whoever shows them adds the rest.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_spec::Untrusted;
use wharf_wire::{DecodeError, Revision, RpcError, TooComplex, code};

use crate::guard::Exit;
use crate::trace::ConnectTrace;

/// Why a call has no answer. A tool that reports failure has answered: that is no error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server refused, with a code and perhaps data of its own.
    #[error("the server refused: {} (code {})", Untrusted::new(.0.message.as_str()).shortened(500), .0.code)]
    Refused(RpcError),
    /// The server's answer breaks the protocol.
    #[error("the server's answer breaks the protocol: {0}")]
    Protocol(String),
    /// No answer in time. The call has been withdrawn.
    #[error("no answer within {}{}", Seconds(*.after), Hint(.hint))]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
        /// Which clock ran out.
        limit: TimeLimit,
        /// What may explain it: output that was no message, an error without an id.
        hint: Option<String>,
    },
    /// The answer is larger than the limit.
    #[error("the answer is too large: more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The answer has more structure than the limits allow to decode.
    #[error("the answer is too complex: {0}")]
    TooComplex(TooComplex),
    /// The server is gone, and the call has not been carried out or can be made again.
    #[error("the server is gone: {0}")]
    ServerGone(Arc<Gone>),
    /// The server went while it may have been carrying the call out. Nobody knows whether it did.
    #[error("the server went before it answered, and nobody knows whether it carried the call out: {0}")]
    OutcomeUnknown(Arc<Gone>),
    /// The server has not declared this ability, so it was not asked.
    #[error("the server does not offer {0}")]
    Unsupported(&'static str),
    /// Too much waits to be written, or too many calls are in flight. Nothing was sent.
    #[error("too much is waiting for this server already; the call was not sent")]
    Busy,
    /// What the caller gave cannot be sent.
    #[error("cannot be sent: {0}")]
    Invalid(String),
    /// The server ended the request by itself, as it may end a subscription.
    #[error("the server ended it")]
    Ended,
    /// What the server needed first was declined.
    #[error("the server asked for {0}, which was declined")]
    Declined(&'static str),
    /// The server goes on asking without ever answering.
    #[error("the server asked {0} times for something more and still did not answer")]
    TooManyRounds(usize),
    /// A task that failed or was cancelled, or is not known any more.
    #[error("the task did not complete: {0}")]
    Task(String),
    /// In-process tools that call each other without end.
    #[error("calls within calls are {0} deep; the call was not made")]
    TooDeep(usize),
    /// A list that does not end, or ends nowhere.
    #[error("the server's list of {what} cannot be read to its end: {problem}")]
    Listing {
        /// What was listed.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl CallError {
    /// Whether the same call may be made again without the risk of doing it twice.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::ServerGone(_) | Self::Busy)
    }

    /// Whether the server was there and said no.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// The server's own account of its end, where there is one.
    pub fn gone(&self) -> Option<&Gone> {
        match self {
            Self::ServerGone(gone) | Self::OutcomeUnknown(gone) => Some(gone),
            _ => None,
        }
    }
}

impl From<DecodeError> for CallError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::TooComplex(bound) => Self::TooComplex(bound),
            DecodeError::Shape(error) => Self::Protocol(Untrusted::new(error.to_string()).shortened(300).to_string()),
        }
    }
}

/// Which clock of a call ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// The one that progress restarts.
    Idle,
    /// The one that nothing restarts.
    Total,
}

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
            (_, Some(exit)) => write!(f, "it {exit}"),
            (GoneCause::Exited, None) => f.write_str("it exited"),
            (GoneCause::ClosedOutput, None) => f.write_str("it closed its output"),
            (GoneCause::ClosedInput, None) => f.write_str("it closed its input"),
            (GoneCause::Unreadable(kind), None) => write!(f, "its output cannot be read: {kind}"),
        }?;
        Hint(&self.hint).fmt(f)
    }
}

/// Why there is no connection, with everything that was seen on the way.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct ConnectError {
    /// What ended the attempt.
    #[source]
    pub cause: ConnectCause,
    /// The steps up to there.
    pub trace: ConnectTrace,
    /// The last lines the server wrote to stderr: untrusted text.
    pub stderr: Vec<String>,
}

/// What ended an attempt to connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectCause {
    /// There is no such program in `PATH`.
    #[error("command `{}` not found in PATH", .program.display())]
    CommandNotFound {
        /// What was looked for.
        program: PathBuf,
        /// Where.
        searched: Vec<PathBuf>,
    },
    /// The program cannot be executed.
    #[error("command `{}` cannot be executed", .program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The working directory is none.
    #[error("working directory `{}` cannot be used", .cwd.display())]
    NoSuchDirectory {
        /// The directory.
        cwd: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The system did not start it.
    #[error("the server could not be started")]
    Spawn(#[source] io::Error),
    /// It was lost before it was ready.
    #[error("the server did not get ready: {0}")]
    Gone(Arc<Gone>),
    /// It did not get ready in time.
    #[error("the server did not get ready within {}{}", Seconds(*.after), Hint(.hint))]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
        /// What may explain it.
        hint: Option<String>,
    },
    /// It refused the handshake.
    #[error("the server refused the handshake: {} (code {})", Untrusted::new(.0.message.as_str()).shortened(500), .0.code)]
    Refused(RpcError),
    /// It speaks only revisions that are not spoken here.
    #[error("no revision in common: the server speaks {}, Wharf speaks {} to {}", Versions(.0), Revision::ALL[0], Revision::LATEST_STATELESS)]
    NoCommonRevision(Vec<String>),
    /// Its answer to the handshake breaks the protocol.
    #[error("the server's handshake breaks the protocol: {0}")]
    Protocol(String),
}

impl ConnectCause {
    /// Whether trying again may help. A missing command or a refused handshake stays what it is.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Spawn(error) => {
                matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EMFILE | libc::ENFILE | libc::ENOMEM))
            }
            Self::Gone(_) | Self::TimedOut { .. } => true,
            _ => false,
        }
    }
}

impl ConnectError {
    /// Turns a failed handshake call into what it means for connecting.
    pub(crate) fn cause_of(error: CallError) -> ConnectCause {
        match error {
            CallError::Refused(error) if error.code == code::UNSUPPORTED_REVISION => {
                ConnectCause::NoCommonRevision(crate::era::supported_by(&error))
            }
            CallError::Refused(error) => ConnectCause::Refused(error),
            CallError::TimedOut { after, hint, .. } => ConnectCause::TimedOut { after, hint },
            CallError::ServerGone(gone) | CallError::OutcomeUnknown(gone) => ConnectCause::Gone(gone),
            CallError::Protocol(what) => ConnectCause::Protocol(what),
            other => ConnectCause::Protocol(other.to_string()),
        }
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) { write!(f, "{} s", millis / 1000) } else { write!(f, "{millis} ms") }
    }
}

struct Hint<'a>(&'a Option<String>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

struct Versions<'a>(&'a [String]);

impl fmt::Display for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none it names");
        }
        let names: Vec<String> =
            self.0.iter().take(8).map(|name| Untrusted::new(name.as_str()).shortened(40).to_string()).collect();
        f.write_str(&names.join(", "))
    }
}
