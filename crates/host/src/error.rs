//! Errors of operations on the host.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wharf_auth::LoginError;
use wharf_client::{AuthRecovery, CallError};
use wharf_spec::{ServerName, UntrustedText};
use wharf_tools::{CallRefusal, RefusalReason};

use crate::server_error::ServerError;
use crate::supervise::ServerState;

/// Error of an operation on the host.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The server does not exist.
    #[error("no server named `{}`{}", UntrustedText::new(.name.as_str()).truncate(100), SuggestionSuffix(.nearest))]
    UnknownServer {
        /// The requested name.
        name: String,
        /// A similar name.
        nearest: Option<String>,
    },
    /// The server does not have this tool, or it is filtered out.
    #[error("server `{server}` has no tool `{}`{}{}", UntrustedText::new(.tool.as_str()).truncate(200), SuggestionSuffix(.nearest), ParenthesizedReason(.because))]
    UnknownTool {
        /// The server.
        server: ServerName,
        /// The requested name.
        tool: String,
        /// A similar name.
        nearest: Option<String>,
        /// A possible explanation.
        because: Option<String>,
    },
    /// The name matches no tool or more than one.
    #[error("{0}")]
    Unresolved(String),
    /// The call is not permitted.
    #[error("{0}")]
    Denied(CallRefusal),
    /// The server is not available.
    #[error("server `{server}` {}{}", .state.predicate(), CauseSuffix(.last_error))]
    Unavailable {
        /// The server.
        server: ServerName,
        /// Its state.
        state: ServerState,
        /// Time of the last state change.
        since: SystemTime,
        /// The error that made it unavailable.
        last_error: Option<Arc<ServerError>>,
    },
    /// Before the deadline the server did not become ready, or stayed at its limit of concurrent calls.
    #[error("server `{server}` was still {what} after {}{}", DurationText(*.after), CauseSuffix(.last_error))]
    NotInTime {
        /// The server.
        server: ServerName,
        /// Its state or activity during the wait.
        what: &'static str,
        /// Duration of the wait.
        after: Duration,
        /// The error that made it unavailable.
        last_error: Option<Arc<ServerError>>,
    },
    /// The request failed on the connection.
    #[error("server `{server}`: {error}")]
    Call {
        /// The server.
        server: ServerName,
        /// The error of the request.
        error: CallError,
    },
    /// The server has no account.
    #[error("server `{server}` has no login account{}", ParenthesizedReason(.because))]
    NoAccount {
        /// The server.
        server: ServerName,
        /// The reason, if it is known.
        because: Option<String>,
    },
    /// A login or logout failed.
    #[error("server `{server}`: {error}")]
    Login {
        /// The server.
        server: ServerName,
        /// The error.
        error: LoginError,
    },
    /// A person's decision could not be saved. It holds until the host is closed.
    #[error("saving the decision failed: {0}")]
    NotSaved(String),
    /// The call was not sent, because its audit entry could not be written and the audit log is required.
    #[error("server `{server}`: the call was not sent, because the audit log cannot be written: {reason}")]
    NotAudited {
        /// The server.
        server: ServerName,
        /// The reason.
        reason: String,
    },
    /// The host has been closed.
    #[error("the host is closed")]
    Closed,
}

impl HostError {
    /// Reports whether the same call may be retried without the risk of executing it twice.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Call { error, .. } => error.is_retryable(),
            Self::NotInTime { .. } | Self::NotAudited { .. } => true,
            Self::Unavailable { state, .. } => *state == ServerState::Failed,
            _ => false,
        }
    }

    /// Reports whether a login may help.
    pub fn needs_login(&self) -> bool {
        match self {
            Self::Unavailable { state, .. } => *state == ServerState::AuthRequired,
            Self::Call { error, .. } => error.needs_login(),
            Self::Login { error, .. } => error.needs_user(),
            _ => false,
        }
    }

    /// Returns the scope that a person has to grant first, if that is the cause; escaped.
    pub fn needs_scope(&self) -> Option<&str> {
        match self {
            Self::Call { error, .. } => error.needs_scope(),
            _ => None,
        }
    }

    /// Returns a suggestion for the next step, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unavailable { server, state, last_error, .. } => match state {
                ServerState::Disabled => Some(format!("enable `{server}`")),
                ServerState::Unapproved => Some(format!("review the command of `{server}` and approve it")),
                ServerState::Disconnected | ServerState::Failed => Some(format!("connect `{server}`")),
                ServerState::AuthRequired => Some(login_hint(server, last_error.as_deref())),
                _ => None,
            },
            Self::Denied(refusal) => refusal.hint.clone().or_else(|| refusal_hint(&refusal.reason)),
            Self::Call { error, .. } => call_hint(error).map(str::to_owned),
            Self::NotInTime { .. } => Some("the call was not sent; call it again later".to_owned()),
            Self::NotAudited { .. } => Some("make the audit log writable, then call it again".to_owned()),
            _ => None,
        }
    }
}

/// Returns the next step after a refusal whose gate gave none.
fn refusal_hint(reason: &RefusalReason) -> Option<String> {
    Some(match reason {
        RefusalReason::NobodyToAsk { rule } => {
            format!("add the rule {}, or set an asker", UntrustedText::new(rule.as_str()).truncate(500))
        }
        RefusalReason::Denied { .. } => "remove or narrow the rule that denies the call".to_owned(),
        RefusalReason::SaidNo { .. } => "ask the person before calling the tool again".to_owned(),
        RefusalReason::DefinitionChanged => "review the change and approve it at a prompt".to_owned(),
        RefusalReason::PermissionStale => "call the tool again".to_owned(),
        RefusalReason::NotApproved => "approve the provider of the tool".to_owned(),
        _ => return None,
    })
}

/// Returns the next step after a call that failed on the connection.
fn call_hint(error: &CallError) -> Option<&'static str> {
    match error {
        CallError::RetryableDisconnect(_) | CallError::Busy => Some("the call had no effect; it may be called again"),
        CallError::OutcomeUnknown(_) => Some("check whether the action took effect before calling it again"),
        CallError::TimedOut { .. } => {
            Some("the call was cancelled; check whether the action took effect before calling it again")
        }
        CallError::TooLarge { .. } | CallError::Discarded(_) => Some("ask for less at once"),
        _ => None,
    }
}

/// Returns the hint for a server that requires a login. If the host cannot log in, only a manually configured token
/// helps.
fn login_hint(server: &ServerName, last_error: Option<&ServerError>) -> String {
    match last_error.and_then(ServerError::not_authorized).map(|why| &why.remedy) {
        Some(AuthRecovery::Reading) => format!("configure a token for `{server}` in `headers.Authorization`"),
        _ => format!("log in to `{server}`"),
    }
}

/// Formats a similar name as a suggestion.
struct SuggestionSuffix<'a>(&'a Option<String>);

impl std::fmt::Display for SuggestionSuffix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, "; did you mean `{}`?", UntrustedText::new(nearest.as_str()).truncate(200)),
            None => Ok(()),
        }
    }
}

struct ParenthesizedReason<'a>(&'a Option<String>);

impl std::fmt::Display for ParenthesizedReason<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |because| write!(f, " ({because})"))
    }
}

/// A duration in seconds, or in milliseconds below one second.
struct DurationText(Duration);

impl std::fmt::Display for DurationText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_secs() {
            0 => write!(f, "{} ms", self.0.as_millis()),
            seconds => write!(f, "{seconds} s"),
        }
    }
}

struct CauseSuffix<'a>(&'a Option<Arc<ServerError>>);

impl std::fmt::Display for CauseSuffix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |last_error| write!(f, ": {last_error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_denial_has_a_hint() {
        let rule = || r#"{"tool":"mcp__demo__\u001b","action":"allow"}"#.to_owned();
        for (reason, expected) in [
            (RefusalReason::NobodyToAsk { rule: rule() }, "add the rule"),
            (RefusalReason::Denied { rule: rule() }, "remove or narrow the rule"),
            (RefusalReason::SaidNo { because: None }, "ask the person"),
            (RefusalReason::DefinitionChanged, "review the change"),
            (RefusalReason::PermissionStale, "call the tool again"),
            (RefusalReason::NotApproved, "approve the provider"),
        ] {
            let hint = HostError::Denied(CallRefusal::new(reason)).hint().unwrap();
            assert!(hint.starts_with(expected), "{hint}");
        }
        let own = CallRefusal::new(RefusalReason::DefinitionChanged).with_hint("wait");
        assert_eq!(HostError::Denied(own).hint().as_deref(), Some("wait"));
    }
}
