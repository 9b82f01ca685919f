//! How connecting and calling can fail. Messages are fragments; whoever shows them adds the rest.

mod gone;
mod masked;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_net::{NotAuthorized, Remedy};
use wharf_spec::{LaunchRefusal, Untrusted};
use wharf_wire::{DecodeError, Revision, RpcError, TooComplex, code};

use crate::budget::BudgetExceeded;
use crate::trace::ConnectTrace;

pub use gone::{Gone, GoneCause};

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
    /// The answer was discarded as it arrived, because too much is held already. The call may have been carried out.
    #[error("the answer was discarded: {0}")]
    Discarded(BudgetExceeded),
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
    #[error("{}{}", TurnedAway(*.status, .why.as_deref()), Said(.said))]
    Unauthorized {
        /// 401 or 403; 401 where it was not even asked, since there is no login to show.
        status: u16,
        /// What it wants, as it says; escaped.
        challenge: Option<String>,
        /// What else it says; escaped.
        said: String,
        /// Why nothing could be done about it, where somebody was there to do something.
        why: Option<Box<NotAuthorized>>,
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

    /// Whether a login would help.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::Unauthorized { status, why, .. } if wants_login(*status, why.as_deref()))
    }

    /// What a person would have to agree to first, where that is known; escaped.
    pub fn needs_scope(&self) -> Option<&str> {
        match &self.not_authorized()?.remedy {
            Remedy::Scope(scope) => Some(scope),
            _ => None,
        }
    }

    /// Why nothing could be done about being turned away, where somebody was there to do something.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match self {
            Self::Unauthorized { why, .. } => why.as_deref(),
            _ => None,
        }
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
    /// The user has not approved what would be started or dialled.
    #[error("the server was not started: {0}")]
    NotApproved(LaunchRefusal),
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
    #[error("{}", TurnedAway(*.status, .why.as_deref()))]
    Unauthorized {
        /// 401 or 403; 401 where it was not even asked, since there is no login to show.
        status: u16,
        /// What it wants, as it says; escaped.
        challenge: Option<String>,
        /// Why nothing could be done about it, where somebody was there to do something.
        why: Option<Box<NotAuthorized>>,
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
            Self::Gone(gone) => match &gone.cause {
                GoneCause::Unreachable { passing, .. } => *passing,
                GoneCause::NotAuthorized(why) => why.may_pass(),
                _ => true,
            },
            Self::TimedOut { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429) || *status >= 500,
            _ => false,
        }
    }

    /// Whether a login would help.
    pub fn needs_login(&self) -> bool {
        match self {
            Self::Unauthorized { status, why, .. } => wants_login(*status, why.as_deref()),
            Self::Gone(gone) => gone.needs_login(),
            _ => false,
        }
    }

    /// Why nothing could be done about being turned away, where somebody was there to do something.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match self {
            Self::Unauthorized { why, .. } => why.as_deref(),
            Self::Gone(gone) => gone.not_authorized(),
            _ => None,
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
            CallError::Unauthorized { status, challenge, why, .. } => {
                ConnectCause::Unauthorized { status, challenge, why }
            }
            CallError::Status { status, detail, .. } => ConnectCause::Status { status, detail },
            other => ConnectCause::Protocol(other.to_string()),
        }
    }
}

/// Whether a login would help somebody who was turned away: who knows why knows best.
fn wants_login(status: u16, why: Option<&NotAuthorized>) -> bool {
    match why.map(|why| &why.remedy) {
        Some(Remedy::Login) => true,
        Some(Remedy::Scope(_) | Remedy::Waiting) => false,
        _ => status == 401,
    }
}

/// How a reason begins that says no more than that somebody has to log in.
const NEEDED: &str = "a login is needed";

/// That a server wants to know who asks, or does not allow it; and why nothing could be done about that.
struct TurnedAway<'a>(u16, Option<&'a NotAuthorized>);

impl fmt::Display for TurnedAway<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status, why) = self;
        match (status, why) {
            (401, None) => f.write_str("the server answered HTTP 401: it wants a login"),
            (_, None) => write!(f, "the server answered HTTP {status}: it does not allow this"),
            (_, Some(why @ NotAuthorized { remedy: Remedy::Scope(scope), .. })) => {
                write!(f, "the server wants a login that covers `{scope}` (HTTP {status}){}", Because(why))
            }
            (401, Some(why)) => write!(f, "the server wants a login (HTTP 401){}", Because(why)),
            (_, Some(why)) => write!(f, "the server does not allow this (HTTP {status}){}", Because(why)),
        }
    }
}

/// Why nothing could be done about it, where that is more than that nobody has done anything yet.
struct Because<'a>(&'a NotAuthorized);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_said = self.0.needs_person() && self.0.reason.starts_with(NEEDED);
        if is_said { Ok(()) } else { write!(f, ": {}", self.0) }
    }
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
