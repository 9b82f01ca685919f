//! Errors of connecting and calling. Messages are fragments; the caller that displays them adds context.

mod disconnect;
mod redact;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_guard::ProcessExit;
use wharf_net::{AuthRecovery, NotAuthorized};
use wharf_spec::{LaunchRefusal, UntrustedText};
use wharf_wire::{JsonDecodeError, JsonLimitExceeded, Revision, RpcError, code};

use crate::budget::BudgetExceeded;
use crate::trace::ConnectTrace;

pub use disconnect::{DisconnectCause, DisconnectReport};

/// The reason a call has no result. A tool that reports failure has returned a result and is not an error here.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server returned an error, with a code and optional data.
    #[error("server returned an error: {} (code {})", UntrustedText::new(.0.message.as_str()).truncate(500), .0.code)]
    ErrorResponse(RpcError),
    /// The response violates the protocol.
    #[error("server response violates the protocol: {0}")]
    Protocol(String),
    /// The response did not arrive in time. The call has been cancelled.
    #[error("no response within {}{}", SecondsText(*.after), HintSuffix(.hint))]
    TimedOut {
        /// Time waited.
        after: Duration,
        /// The timeout that expired.
        limit: TimeoutKind,
        /// Possible explanation: output that was not a message, or an error without an id.
        hint: Option<String>,
    },
    /// The response is larger than the limit.
    #[error("response is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The response was discarded on arrival because a memory budget is exhausted. The call may have been executed.
    #[error("response was discarded (the call may have executed): {0}")]
    Discarded(BudgetExceeded),
    /// The response has more structure than the limits allow to decode.
    #[error("response is too complex: {0}")]
    TooComplex(JsonLimitExceeded),
    /// The call was lost before a response, and repeating it is safe: it was not delivered, or it only reads. The
    /// connection may still be open.
    #[error("connection lost: {0}")]
    RetryableDisconnect(Arc<DisconnectReport>),
    /// The server was lost while the call was in flight. The call may or may not have been executed.
    #[error("connection lost before the response, the call may or may not have executed: {0}")]
    OutcomeUnknown(Arc<DisconnectReport>),
    /// The server requires authentication (401) or denies access (403).
    #[error("{}{}", AuthFailureText(*.status, .why.as_deref()), DetailSuffix(.said))]
    Unauthorized {
        /// 401 or 403. Also 401 if the request was not sent because no credentials are available.
        status: u16,
        /// The server's challenge, escaped.
        challenge: Option<String>,
        /// Detail from the server, escaped.
        said: String,
        /// The reason the authorizer could not resolve it, if there is an authorizer.
        why: Option<Box<NotAuthorized>>,
    },
    /// The server rejected the request with an HTTP status. The call was not executed.
    #[error("server rejected the request (HTTP {status}){}{}", DetailSuffix(.detail), RetryAfterSuffix(.retry_after))]
    Status {
        /// HTTP status.
        status: u16,
        /// Detail from the server, escaped.
        detail: String,
        /// Delay the server requests before a retry.
        retry_after: Option<Duration>,
    },
    /// The server has not declared this capability. The call was not sent.
    #[error("server does not support {0}")]
    Unsupported(&'static str),
    /// The write queue is full or too many calls are in flight. The call was not sent.
    #[error("too many pending requests to this server, the call was not sent")]
    Busy,
    /// The caller's input cannot be sent.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// The server ended the request without a result, as it may end a subscription.
    #[error("server ended the request")]
    Ended,
    /// Input that the server required was declined.
    #[error("server requested {0}, which was declined")]
    Declined(&'static str),
    /// The server keeps requesting input without returning a result.
    #[error("server requested input {0} times without returning a result")]
    TooManyRounds(usize),
    /// The task failed, was cancelled, or is no longer known.
    #[error("task did not complete: {0}")]
    Task(String),
    /// In-process tools call each other too deeply.
    #[error("nested calls are {0} deep, the call was not made")]
    TooDeep(usize),
    /// A list cannot be read to its end.
    #[error("cannot list all {what} of the server: {problem}")]
    Listing {
        /// Kind of the listed items.
        what: &'static str,
        /// Description of the problem.
        problem: String,
    },
}

impl CallError {
    /// Reports whether the call can be retried without the risk of executing a write twice.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::RetryableDisconnect(_) | Self::Busy)
    }

    /// Reports whether the server returned an error.
    pub fn is_error_response(&self) -> bool {
        matches!(self, Self::ErrorResponse(_))
    }

    /// Reports whether a login would help.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::Unauthorized { status, why, .. } if login_would_help(*status, why.as_deref()))
    }

    /// Returns the scope the user would have to grant, if known. Escaped.
    pub fn needs_scope(&self) -> Option<&str> {
        match &self.not_authorized()?.remedy {
            AuthRecovery::Scope(scope) => Some(scope),
            _ => None,
        }
    }

    /// Returns the reason the authorizer could not resolve an authorization failure, if there is one.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match self {
            Self::Unauthorized { why, .. } => why.as_deref(),
            _ => None,
        }
    }

    /// Returns how the server was lost, if it was.
    pub fn disconnect_report(&self) -> Option<&DisconnectReport> {
        match self {
            Self::RetryableDisconnect(gone) | Self::OutcomeUnknown(gone) => Some(gone),
            _ => None,
        }
    }
}

impl From<JsonDecodeError> for CallError {
    fn from(error: JsonDecodeError) -> Self {
        match error {
            JsonDecodeError::TooComplex(bound) => Self::TooComplex(bound),
            JsonDecodeError::Shape(error) => {
                Self::Protocol(UntrustedText::new(error.to_string()).truncate(300).to_string())
            }
        }
    }
}

/// The timeout of a call that expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// The timeout that progress restarts.
    Idle,
    /// The total timeout, which is never restarted.
    Total,
}

/// A failed connection attempt, with its diagnostics.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct ConnectError {
    /// The failure that ended the attempt.
    #[source]
    pub cause: ConnectCause,
    /// The steps up to the failure.
    pub trace: ConnectTrace,
    /// The last lines the server wrote to stderr. Untrusted.
    pub stderr: Vec<String>,
}

/// The failure that ended a connection attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectCause {
    /// The program is not in `PATH`.
    #[error("command `{}` not found in PATH", .program.display())]
    CommandNotFound {
        /// Program that was searched for.
        program: PathBuf,
        /// Directories that were searched.
        searched: Vec<PathBuf>,
    },
    /// The program cannot be executed.
    #[error("command `{}` cannot be executed", .program.display())]
    NotExecutable {
        /// Path of the program.
        program: PathBuf,
        /// Error from the system.
        #[source]
        error: io::Error,
    },
    /// The working directory does not exist or cannot be used.
    #[error("working directory `{}` cannot be used", .cwd.display())]
    NoSuchDirectory {
        /// The directory.
        cwd: PathBuf,
        /// Error from the system.
        #[source]
        error: io::Error,
    },
    /// The user has not approved the command or address.
    #[error("server not started: {0}")]
    NotApproved(LaunchRefusal),
    /// The system failed to start the process.
    #[error("failed to start the server")]
    Spawn(#[source] io::Error),
    /// The address is not a valid HTTP or HTTPS URL.
    #[error("invalid server URL `{0}`: must start with http:// or https://")]
    BadAddress(String),
    /// A header cannot be sent; the reason.
    #[error("invalid header: {0}")]
    BadHeader(String),
    /// The HTTP client cannot be set up.
    #[error("failed to set up the HTTP client")]
    Net(#[source] wharf_net::NetOpenError),
    /// The server requires authentication (401) or denies access (403).
    #[error("{}", AuthFailureText(*.status, .why.as_deref()))]
    Unauthorized {
        /// 401 or 403. Also 401 if the request was not sent because no credentials are available.
        status: u16,
        /// The server's challenge, escaped.
        challenge: Option<String>,
        /// The reason the authorizer could not resolve it, if there is an authorizer.
        why: Option<Box<NotAuthorized>>,
    },
    /// The server rejected the request with an HTTP status.
    #[error("server rejected the request (HTTP {status}){}", DetailSuffix(.detail))]
    Status {
        /// HTTP status.
        status: u16,
        /// Detail from the server, escaped.
        detail: String,
    },
    /// The event stream announces an endpoint that is not allowed.
    #[error("server announced the endpoint `{endpoint}`, which has a different origin than its stream ({stream})")]
    BadEndpoint {
        /// The announced endpoint, escaped.
        endpoint: String,
        /// Address of the stream.
        stream: String,
    },
    /// The server was lost during startup.
    #[error("startup failed: {0}")]
    Gone(Arc<DisconnectReport>),
    /// The server was not ready in time.
    #[error("server not ready within {}{}", SecondsText(*.after), HintSuffix(.hint))]
    TimedOut {
        /// Time waited.
        after: Duration,
        /// Possible explanation.
        hint: Option<String>,
    },
    /// The server rejected the handshake.
    #[error("server rejected the handshake: {} (code {})", UntrustedText::new(.0.message.as_str()).truncate(500), .0.code)]
    ErrorResponse(RpcError),
    /// The server and the client have no revision in common; the revisions the server supports.
    #[error("no common protocol revision: server supports {}, Wharf supports {} to {}", RevisionNames(.0), Revision::ALL[0], Revision::LATEST_STATELESS)]
    NoCommonRevision(Vec<String>),
    /// The server's handshake response violates the protocol.
    #[error("server handshake violates the protocol: {0}")]
    Protocol(String),
}

/// Start of the hint about a line that is not a message, and part of the error about a body that is none.
pub(crate) const NOT_A_MESSAGE: &str = "server wrote a line to stdout that is not a message";
pub(crate) const BODY_WITHOUT_MESSAGE: &str = "without a response message: ";

impl ConnectCause {
    /// Reports whether the peer does not seem to be an MCP server: it wrote a banner, log text or a page instead of a
    /// message. A process that failed with an exit code has another problem.
    pub fn is_not_mcp(&self) -> bool {
        let is_text = |hint: &Option<String>| hint.as_ref().is_some_and(|hint| hint.starts_with(NOT_A_MESSAGE));
        match self {
            Self::Gone(gone) => match (&gone.cause, gone.exit) {
                (DisconnectCause::NotMcp(_) | DisconnectCause::EndlessLine, _) => true,
                (_, Some(ProcessExit::Code(0)) | None) => is_text(&gone.hint),
                _ => false,
            },
            Self::TimedOut { hint, .. } => is_text(hint),
            Self::Protocol(what) => what.contains(BODY_WITHOUT_MESSAGE),
            _ => false,
        }
    }

    /// Reports whether a retry may succeed. A missing command or a rejected handshake is permanent.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Spawn(error) => {
                // The error of a guard that does not respond has this kind and no number.
                error.kind() == io::ErrorKind::WouldBlock
                    || matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
            }
            Self::Gone(gone) => match &gone.cause {
                DisconnectCause::Unreachable { passing, .. } => *passing,
                DisconnectCause::NotAuthorized(why) => why.is_transient(),
                _ => true,
            },
            Self::TimedOut { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429) || *status >= 500,
            _ => false,
        }
    }

    /// Reports whether a login would help.
    pub fn needs_login(&self) -> bool {
        match self {
            Self::Unauthorized { status, why, .. } => login_would_help(*status, why.as_deref()),
            Self::Gone(gone) => gone.needs_login(),
            _ => false,
        }
    }

    /// Returns the reason the authorizer could not resolve an authorization failure, if there is one.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match self {
            Self::Unauthorized { why, .. } => why.as_deref(),
            Self::Gone(gone) => gone.not_authorized(),
            _ => None,
        }
    }
}

impl ConnectError {
    /// Converts the error of a failed handshake call.
    pub(crate) fn cause_from_call(error: CallError) -> ConnectCause {
        match error {
            CallError::ErrorResponse(error) if error.code == code::UNSUPPORTED_REVISION => {
                ConnectCause::NoCommonRevision(crate::era::supported_revisions(&error))
            }
            CallError::ErrorResponse(error) => ConnectCause::ErrorResponse(error),
            CallError::TimedOut { after, hint, .. } => ConnectCause::TimedOut { after, hint },
            CallError::RetryableDisconnect(gone) | CallError::OutcomeUnknown(gone) => ConnectCause::Gone(gone),
            CallError::Protocol(what) => ConnectCause::Protocol(what),
            CallError::Unauthorized { status, challenge, why, .. } => {
                ConnectCause::Unauthorized { status, challenge, why }
            }
            CallError::Status { status, detail, .. } => ConnectCause::Status { status, detail },
            other => ConnectCause::Protocol(other.to_string()),
        }
    }
}

/// Reports whether a login would help. The authorizer's reason takes precedence over the status.
fn login_would_help(status: u16, why: Option<&NotAuthorized>) -> bool {
    match why.map(|why| &why.remedy) {
        Some(AuthRecovery::Login) => true,
        Some(AuthRecovery::Scope(_) | AuthRecovery::Waiting) => false,
        _ => status == 401,
    }
}

/// Start of a reason that only says that a login is needed.
const LOGIN_NEEDED_PREFIX: &str = "a login is needed";

/// Displays an authorization failure and the reason it could not be resolved.
struct AuthFailureText<'a>(u16, Option<&'a NotAuthorized>);

impl fmt::Display for AuthFailureText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status, why) = self;
        match (status, why) {
            (401, None) => f.write_str("server requires a login (HTTP 401)"),
            (_, None) => write!(f, "server denied access (HTTP {status})"),
            (_, Some(why @ NotAuthorized { remedy: AuthRecovery::Scope(scope), .. })) => {
                write!(f, "server requires a login with scope `{scope}` (HTTP {status}){}", ReasonSuffix(why))
            }
            (401, Some(why)) => write!(f, "server requires a login (HTTP 401){}", ReasonSuffix(why)),
            (_, Some(why)) => write!(f, "server denied access (HTTP {status}){}", ReasonSuffix(why)),
        }
    }
}

/// Displays the reason, unless it only says that a login is needed.
struct ReasonSuffix<'a>(&'a NotAuthorized);

impl fmt::Display for ReasonSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_said = self.0.needs_user() && self.0.reason.starts_with(LOGIN_NEEDED_PREFIX);
        if is_said { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// Displays the server's detail, if there is any.
struct DetailSuffix<'a>(&'a String);

impl fmt::Display for DetailSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

struct RetryAfterSuffix<'a>(&'a Option<Duration>);

impl fmt::Display for RetryAfterSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |wait| write!(f, ", retry after {}", SecondsText(wait)))
    }
}

struct SecondsText(Duration);

impl fmt::Display for SecondsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) { write!(f, "{} s", millis / 1000) } else { write!(f, "{millis} ms") }
    }
}

struct HintSuffix<'a>(&'a Option<String>);

impl fmt::Display for HintSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

struct RevisionNames<'a>(&'a [String]);

impl fmt::Display for RevisionNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no named revision");
        }
        let names: Vec<String> =
            self.0.iter().take(8).map(|name| UntrustedText::new(name.as_str()).truncate(40).to_string()).collect();
        f.write_str(&names.join(", "))
    }
}
