//! Errors that make a server unavailable.

use std::fmt;
use std::sync::Arc;

use wharf_client::{
    AuthRecovery, CallError, ConnectCause, ConnectError, ConnectTrace, DisconnectReport, NotAuthorized,
};

/// An error that makes a server unavailable, with its evidence.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerError {
    /// The server could not be started or dialled, or did not complete the handshake.
    NotConnected(Arc<ConnectError>),
    /// The connection was lost.
    Lost(Arc<DisconnectReport>),
    /// A health check failed. Holds the error.
    Silent(String),
    /// An in-process server could not be created, or the connection task failed. Holds the reason.
    NotMade(String),
    /// The server rejected a call for lack of a valid login.
    LoginRequired(CallError),
}

impl ServerError {
    /// Reports whether a retry may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotConnected(error) => error.cause.is_retryable(),
            Self::Lost(gone) => !gone.needs_login(),
            Self::Silent(_) => true,
            Self::NotMade(_) | Self::LoginRequired(_) => false,
        }
    }

    /// Reports whether a login may help.
    pub fn needs_login(&self) -> bool {
        let login = match self {
            Self::NotConnected(error) => error.cause.needs_login(),
            Self::Lost(gone) => gone.needs_login(),
            Self::LoginRequired(_) => true,
            Self::Silent(_) | Self::NotMade(_) => false,
        };
        login || self.not_authorized().is_some_and(NotAuthorized::needs_user)
    }

    /// Reports whether the user has to approve the command first.
    pub fn needs_approval(&self) -> bool {
        matches!(self, Self::NotConnected(error) if matches!(error.cause, ConnectCause::NotApproved(_)))
    }

    /// Returns the authorizer's error, if there was an authorizer.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match self {
            Self::NotConnected(error) => error.cause.not_authorized(),
            Self::Lost(gone) => gone.not_authorized(),
            Self::LoginRequired(error) => error.not_authorized(),
            Self::Silent(_) | Self::NotMade(_) => None,
        }
    }

    /// Reports whether only a login helps, so that no health check is needed.
    pub(crate) fn needs_only_login(&self) -> bool {
        self.not_authorized().is_some_and(|why| why.remedy == AuthRecovery::Login)
    }

    /// Returns the last lines of the server's stderr. Untrusted.
    pub fn stderr(&self) -> &[String] {
        match self {
            Self::NotConnected(error) => match &error.cause {
                ConnectCause::Gone(gone) if error.stderr.is_empty() => &gone.stderr,
                _ => &error.stderr,
            },
            Self::Lost(gone) => &gone.stderr,
            Self::Silent(_) | Self::NotMade(_) | Self::LoginRequired(_) => &[],
        }
    }

    /// Returns the trace of a failed connection attempt.
    pub fn trace(&self) -> Option<&ConnectTrace> {
        match self {
            Self::NotConnected(error) => Some(&error.trace),
            _ => None,
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected(error) => {
                write!(f, "{error}")?;
                let mut cause = std::error::Error::source(&error.cause);
                while let Some(inner) = cause {
                    write!(f, ": {inner}")?;
                    cause = inner.source();
                }
                Ok(())
            }
            Self::Lost(gone) => write!(f, "{gone}"),
            Self::Silent(what) => write!(f, "health check failed: {what}"),
            Self::NotMade(why) => write!(f, "the server could not be created: {why}"),
            Self::LoginRequired(error) => write!(f, "{error}"),
        }
    }
}
