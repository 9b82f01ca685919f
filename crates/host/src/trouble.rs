//! Why a server is not there.

use std::fmt;
use std::sync::Arc;

use wharf_client::{CallError, ConnectCause, ConnectError, ConnectTrace, Gone, NotAuthorized, Remedy};

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
    /// It is there and wants a login for what it did without one, or with the one there was.
    TurnedAway(CallError),
}

impl Trouble {
    /// Whether trying again may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::NotConnected(error) => error.cause.is_retryable(),
            Self::Lost(gone) => !gone.needs_login(),
            Self::Silent(_) => true,
            Self::NotMade(_) | Self::TurnedAway(_) => false,
        }
    }

    /// Whether a login would help.
    pub fn needs_login(&self) -> bool {
        let login = match self {
            Self::NotConnected(error) => error.cause.needs_login(),
            Self::Lost(gone) => gone.needs_login(),
            Self::TurnedAway(_) => true,
            Self::Silent(_) | Self::NotMade(_) => false,
        };
        login || self.not_authorized().is_some_and(NotAuthorized::needs_person)
    }

    /// Whether the user has to approve what would be started first.
    pub fn needs_approval(&self) -> bool {
        matches!(self, Self::NotConnected(error) if matches!(error.cause, ConnectCause::NotApproved(_)))
    }

    /// Why whoever says who we are could not, where somebody was there to.
    pub fn not_authorized(&self) -> Option<&NotAuthorized> {
        match self {
            Self::NotConnected(error) => error.cause.not_authorized(),
            Self::Lost(gone) => gone.not_authorized(),
            Self::TurnedAway(error) => error.not_authorized(),
            Self::Silent(_) | Self::NotMade(_) => None,
        }
    }

    /// Whether nothing but a login will change it, so that the server need not be asked.
    pub(crate) fn is_logged_out(&self) -> bool {
        self.not_authorized().is_some_and(|why| why.remedy == Remedy::Login)
    }

    /// The last lines the server wrote to stderr: untrusted text.
    pub fn stderr(&self) -> &[String] {
        match self {
            Self::NotConnected(error) => match &error.cause {
                ConnectCause::Gone(gone) if error.stderr.is_empty() => &gone.stderr,
                _ => &error.stderr,
            },
            Self::Lost(gone) => &gone.stderr,
            Self::Silent(_) | Self::NotMade(_) | Self::TurnedAway(_) => &[],
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
            Self::TurnedAway(error) => write!(f, "{error}"),
        }
    }
}
