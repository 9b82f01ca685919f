//! How logging in can fail. Messages are fragments without secrets; what others said in them is escaped.

use crate::fetch::FetchError;
use crate::vault::VaultError;
use crate::visitor::VisitError;

/// Why there is no login.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// Where to log in cannot be found out: what was tried, and what is wrong with it.
    #[error("it cannot be found out where to log in: {0}")]
    Discovery(String),
    /// The server's description is of another server.
    #[error("the server describes itself as `{found}`, which is not what was dialled ({dialled})")]
    WrongResource {
        /// What it says; escaped.
        found: String,
        /// What was dialled.
        dialled: String,
    },
    /// The authorization server cannot do what is safe.
    #[error("the authorization server cannot be used: {0}")]
    Unsafe(String),
    /// No client could be had there.
    #[error("no client could be registered: {0}")]
    Registration(String),
    /// This client has nothing to prove itself with: a key, a secret or a file that is missing or no good.
    #[error("this client cannot prove itself: {0}")]
    Proof(String),
    /// The person said no, at the page or before it was opened.
    #[error("the login was denied{}", .0.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Denied(Option<String>),
    /// The page could not be visited.
    #[error("{0}")]
    Visit(#[from] VisitError),
    /// What came back from the page is not the answer to what was asked.
    #[error("the answer of the login page is not accepted: {0}")]
    Mismatch(String),
    /// The token endpoint gave nothing.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// What is kept cannot be read or written.
    #[error("{0}")]
    Vault(#[from] VaultError),
    /// Nobody is there to log in.
    #[error("a login is needed{}", .scope.as_ref().map(|scope| format!(" for {scope}")).unwrap_or_default())]
    Needed {
        /// What it has to cover, where the server says so; escaped.
        scope: Option<String>,
    },
    /// The server asks for more again and again.
    #[error("the server asked for more than was granted {times} times in a row: {scope}")]
    StepUps {
        /// How often.
        times: u32,
        /// What it wanted the last time; escaped.
        scope: String,
    },
    /// The server refuses what the authorization server gives for it.
    #[error("the server refuses tokens right after they were got for it")]
    NotTaken,
    /// The way out cannot be made, or nobody answers there.
    #[error("{0}")]
    Unreachable(String),
}

/// Why a token endpoint gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It refused, with one of the codes of RFC 6749, 5.2.
    #[error("the authorization server refused: {code}{}", .description.as_ref().map(|said| format!(" ({said})")).unwrap_or_default())]
    Refused {
        /// The code; escaped.
        code: String,
        /// What it says besides; escaped.
        description: Option<String>,
        /// The HTTP status.
        status: u16,
    },
    /// Nobody knows: it was not reached, broke off, or answered nonsense. Tokens are kept, and it may be tried again.
    #[error("the authorization server gave no answer that counts: {0}")]
    Unclear(String),
}

impl TokenError {
    /// Whether what was shown to it will never be taken again.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant")
    }
}

impl LoginError {
    /// Whether a person logging in would help.
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::Needed { .. }) || matches!(self, Self::Token(error) if error.is_final())
    }

    /// Whether the same may work later by itself.
    pub fn is_passing(&self) -> bool {
        let is_locked = matches!(self, Self::Vault(VaultError::Locked(_)));
        is_locked || matches!(self, Self::Token(TokenError::Unclear(_)) | Self::Unreachable(_))
    }
}

impl From<FetchError> for LoginError {
    fn from(error: FetchError) -> Self {
        match error.may_pass {
            true => Self::Unreachable(error.to_string()),
            false => Self::Unsafe(error.to_string()),
        }
    }
}
