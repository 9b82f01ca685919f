//! How connecting and calling can fail. Messages are fragments; whoever shows them adds the rest.

mod masked;

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
    /// The server wants to know who asks (401), or that one may not (403).
    #[error("the server answered HTTP {status}: {}{}", login(*.status), Said(.said))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// What it wants, as it says; escaped.
        challenge: Option<String>,
        /// What else it says; escaped.
        said: String,
    },
    /// The server refused the request by an HTTP status; it was not carried out.
    #[error("the server refused the request: HTTP {status}{}{}", Said(.detail), After(.retry_after))]
    Status {
        /// The status.
        status: u16,
        /// What it says; escaped.
        detail: String,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
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

impl Gone {
    /// An account with nothing but its cause.
    pub(crate) fn because(cause: GoneCause) -> Self {
        Self { cause, exit: None, stderr: Vec::new(), hint: None }
    }

    /// Whether meeting the server again the same way is out of the question.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.cause, GoneCause::Changed | GoneCause::NotMcp(_))
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
    /// The address is none that can be dialled.
    #[error("`{0}` is no address of a server: it must begin with http:// or https://")]
    BadAddress(String),
    /// A header that cannot be sent; why.
    #[error("a header cannot be sent: {0}")]
    BadHeader(String),
    /// There is no way out.
    #[error("the way to the server cannot be made")]
    Net(#[source] wharf_net::OpenError),
    /// The server wants to know who asks (401), or that one may not (403).
    #[error("the server answered HTTP {status}: {}", login(*.status))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// What it wants, as it says; escaped.
        challenge: Option<String>,
    },
    /// The server refused by an HTTP status.
    #[error("the server refused: HTTP {status}{}", Said(.detail))]
    Status {
        /// The status.
        status: u16,
        /// What it says; escaped.
        detail: String,
    },
    /// The stream names an address to post to that it may not name.
    #[error("the server wants messages posted to `{endpoint}`, which is not where its stream comes from ({stream})")]
    BadEndpoint {
        /// Where to; escaped.
        endpoint: String,
        /// Where the stream is.
        stream: String,
    },
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
            Self::Gone(gone) => !matches!(gone.cause, GoneCause::Unreachable { passing: false, .. }),
            Self::TimedOut { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429) || *status >= 500,
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
            CallError::Unauthorized { status, challenge, .. } => ConnectCause::Unauthorized { status, challenge },
            CallError::Status { status, detail, .. } => ConnectCause::Status { status, detail },
            other => ConnectCause::Protocol(other.to_string()),
        }
    }
}

fn login(status: u16) -> &'static str {
    if status == 401 { "it wants a login" } else { "it does not allow this" }
}

/// What a server said, where it said anything.
struct Said<'a>(&'a String);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

struct After<'a>(&'a Option<Duration>);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |wait| write!(f, "; it asks to be left alone for {}", Seconds(wait)))
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
