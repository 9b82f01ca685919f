//! Login errors. Messages are fragments without secrets. Server-supplied text in them is escaped.

use crate::auth_http::FetchError;
use crate::browser::VisitError;
use crate::vault::VaultError;

/// An error of logging in.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The authorization server cannot be discovered. Holds the attempts and their problems.
    #[error("OAuth discovery failed: {0}")]
    Discovery(String),
    /// The metadata describe another server.
    #[error("the server's metadata are for `{found}`, not for {dialled}")]
    WrongResource {
        /// Resource identifier in the metadata, escaped.
        found: String,
        /// URL of the server.
        dialled: String,
    },
    /// The authorization server is not safe to use.
    #[error("the authorization server cannot be used: {0}")]
    Unsafe(String),
    /// No client is available at the authorization server.
    #[error("client registration failed: {0}")]
    Registration(String),
    /// The client cannot authenticate: its key, secret or assertion file is missing or invalid.
    #[error("client authentication failed: {0}")]
    Proof(String),
    /// The user declined, on the page or before it was opened.
    #[error("the login was denied{}", .0.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Denied(Option<String>),
    /// The page could not be visited.
    #[error("{0}")]
    Visit(#[from] VisitError),
    /// The callback does not match the request.
    #[error("invalid login callback: {0}")]
    Mismatch(String),
    /// The token endpoint returned no tokens.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// The stored logins cannot be read or written.
    #[error("{0}")]
    Vault(#[from] VaultError),
    /// A login is needed, but no user is available.
    #[error("a login is needed{}", .scope.as_ref().map(|scope| format!(" for {scope}")).unwrap_or_default())]
    Needed {
        /// Scope to request, if the server names one. Escaped.
        scope: Option<String>,
    },
    /// The server keeps demanding additional scopes.
    #[error("the server demanded additional scopes {times} times in a row: {scope}")]
    StepUps {
        /// Number of attempts.
        times: u32,
        /// Scope demanded last, escaped.
        scope: String,
    },
    /// The server rejects newly issued tokens.
    #[error("the server rejects newly issued tokens")]
    NotTaken,
    /// The network cannot be used, or the server does not respond.
    #[error("{0}")]
    Unreachable(String),
}

/// An error of a token endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// A rejection with an error code (RFC 6749, 5.2).
    #[error("rejected by the authorization server: {code}{}", .description.as_ref().map(|said| format!(" ({said})")).unwrap_or_default())]
    Refused {
        /// The error code, escaped.
        code: String,
        /// The error description, escaped.
        description: Option<String>,
        /// The HTTP status.
        status: u16,
    },
    /// The outcome is unknown: no connection, a broken connection, or an invalid response. Tokens are retained, and a
    /// retry is possible.
    #[error("no valid response from the authorization server: {0}")]
    Unclear(String),
}

impl TokenError {
    /// Reports whether the credentials are permanently rejected.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant")
    }
}

impl LoginError {
    /// Reports whether a login by the user would help.
    pub fn needs_user(&self) -> bool {
        matches!(self, Self::Needed { .. }) || matches!(self, Self::Token(error) if error.is_final())
    }

    /// Reports whether a retry may succeed later without user action.
    pub fn is_transient(&self) -> bool {
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
