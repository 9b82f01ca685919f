//! Why a server is not there.

use std::fmt;
use std::sync::Arc;

use wharf_client::{ConnectCause, ConnectError, ConnectTrace, Gone};

/// Why a server is not there, with the evidence.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Trouble {
    /// It could not be started or dialled, or did not get ready.
    NotConnected(Arc<ConnectError>),
    /// It was there and is gone.
    Lost(Arc<Gone>),
    /// It was asked whether it is there and did not say so; what came instead.
    Silent(String),
    /// It was made anew for an attempt and could not be; why.
    NotMade(String),
}

impl Trouble {
    /// Whether trying again may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::NotConnected(error) => error.cause.is_retryable(),
            Self::Lost(_) | Self::Silent(_) => true,
            Self::NotMade(_) => false,
        }
    }

    /// Whether a login would help.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::NotConnected(error) if matches!(error.cause, ConnectCause::Unauthorized { status: 401, .. }))
    }

    /// The last lines the server wrote to stderr: untrusted text.
    pub fn stderr(&self) -> &[String] {
        match self {
            Self::NotConnected(error) => match &error.cause {
                ConnectCause::Gone(gone) if error.stderr.is_empty() => &gone.stderr,
                _ => &error.stderr,
            },
            Self::Lost(gone) => &gone.stderr,
            Self::Silent(_) | Self::NotMade(_) => &[],
        }
    }

    /// How far connecting got, where it was tried.
    pub fn trace(&self) -> Option<&ConnectTrace> {
        match self {
            Self::NotConnected(error) => Some(&error.trace),
            _ => None,
        }
    }
}

impl fmt::Display for Trouble {
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
            Self::Silent(what) => write!(f, "it did not answer when asked whether it is there: {what}"),
            Self::NotMade(why) => write!(f, "it could not be made: {why}"),
        }
    }
}
