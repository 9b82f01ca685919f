//! How a call through the host can end without an answer.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wharf_auth::LoginError;
use wharf_client::{CallError, Remedy};
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
    /// Nobody has an account there that the host knows of.
    #[error("server `{server}` has no login of its own{}", Because(.because))]
    NoAccount {
        /// Which server.
        server: ServerName,
        /// Why, where that is known.
        because: Option<String>,
    },
    /// Nobody was logged in or out.
    #[error("server `{server}`: {error}")]
    Login {
        /// Which server.
        server: ServerName,
        /// What became of it.
        error: LoginError,
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
            Self::Call { error, .. } => error.needs_login(),
            Self::Login { error, .. } => error.needs_person(),
            _ => false,
        }
    }

    /// What a person would have to agree to first, where that is what is missing; escaped.
    pub fn needs_scope(&self) -> Option<&str> {
        match self {
            Self::Call { error, .. } => error.needs_scope(),
            _ => None,
        }
    }

    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unavailable { server, state, trouble, .. } => match state {
                State::Disabled => Some(format!("enable `{server}`")),
                State::Unapproved => Some(format!("look at what `{server}` would run, and approve it")),
                State::Disconnected | State::Failed => Some(format!("connect `{server}`")),
                State::AuthRequired => Some(login_hint(server, trouble.as_deref())),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What to do about a server that wants a login. Where nobody can be logged in, only a token of one's own helps.
fn login_hint(server: &ServerName, trouble: Option<&Trouble>) -> String {
    match trouble.and_then(Trouble::not_authorized).map(|why| &why.remedy) {
        Some(Remedy::Reading) => format!("give `{server}` a token of your own in `headers.Authorization`"),
        _ => format!("log in to `{server}`"),
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
