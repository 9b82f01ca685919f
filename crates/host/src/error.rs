//! How a call through the host can end without an answer.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wharf_client::CallError;
use wharf_spec::{ServerName, Untrusted};
use wharf_tools::Refusal;

use crate::supervise::State;
use crate::trouble::Trouble;

/// Why something asked of the host came to nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// There is no such server.
    #[error("no server `{}`{}", Untrusted::new(.name.as_str()).shortened(100), Nearest(.nearest))]
    UnknownServer {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// The server has no such tool, or it is filtered out.
    #[error("server `{server}` has no tool `{}`{}{}", Untrusted::new(.tool.as_str()).shortened(200), Nearest(.nearest), Because(.because))]
    UnknownTool {
        /// Which server.
        server: ServerName,
        /// What was asked for.
        tool: String,
        /// What may have been meant.
        nearest: Option<String>,
        /// What else may explain it.
        because: Option<String>,
    },
    /// The name means nothing here, or more than one thing.
    #[error("{0}")]
    Unresolved(String),
    /// It may not be called.
    #[error("{0}")]
    Refused(Refusal),
    /// The server is not there.
    #[error("server `{server}` is {state}{}", Cause(.trouble))]
    Unavailable {
        /// Which server.
        server: ServerName,
        /// Where it stands.
        state: State,
        /// Since when.
        since: SystemTime,
        /// What is wrong with it.
        trouble: Option<Arc<Trouble>>,
    },
    /// The server did not get ready, or had no room, in the time there was.
    #[error("server `{server}` was {what} for {} s{}", .after.as_secs(), Cause(.trouble))]
    NotInTime {
        /// Which server.
        server: ServerName,
        /// What it was all the while.
        what: &'static str,
        /// How long it was waited for.
        after: Duration,
        /// What is wrong with it.
        trouble: Option<Arc<Trouble>>,
    },
    /// The server was asked, and there is no answer.
    #[error("server `{server}`: {error}")]
    Call {
        /// Which server.
        server: ServerName,
        /// What became of the call.
        error: CallError,
    },
    /// The host has been closed.
    #[error("the host is closed")]
    Closed,
}

impl HostError {
    /// Whether the same call may be made again without the risk of doing it twice.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Call { error, .. } => error.is_retryable(),
            Self::NotInTime { .. } => true,
            Self::Unavailable { state, .. } => *state == State::Failed,
            _ => false,
        }
    }

    /// Whether a login would help.
    pub fn needs_login(&self) -> bool {
        match self {
            Self::Unavailable { state, .. } => *state == State::AuthRequired,
            Self::Call { error, .. } => matches!(error, CallError::Unauthorized { status: 401, .. }),
            _ => false,
        }
    }

    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unavailable { server, state, .. } => match state {
                State::Disabled => Some(format!("enable `{server}`")),
                State::Unapproved => Some(format!("look at what `{server}` would run, and approve it")),
                State::Disconnected | State::Failed => Some(format!("connect `{server}`")),
                State::AuthRequired => Some(format!("log in to `{server}`")),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What may have been meant.
struct Nearest<'a>(&'a Option<String>);

impl std::fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, "; did you mean `{}`?", Untrusted::new(nearest.as_str()).shortened(200)),
            None => Ok(()),
        }
    }
}

struct Because<'a>(&'a Option<String>);

impl std::fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |because| write!(f, " ({because})"))
    }
}

struct Cause<'a>(&'a Option<Arc<Trouble>>);

impl std::fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |trouble| write!(f, ": {trouble}"))
    }
}
