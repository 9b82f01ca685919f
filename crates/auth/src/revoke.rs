//! Token revocation (RFC 7009).

use wharf_spec::Secret;

use crate::auth_http::UrlSource;
use crate::error::LoginError;
use crate::login::AuthServerContext;
use crate::token::{TokenRequest, parse_error};
use crate::vault::StoredLogin;

/// Outcome of a revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RevocationOutcome {
    /// The issuer confirmed the revocation.
    All,
    /// There were no tokens.
    Nothing,
    /// The issuer does not support revocation. The tokens stay valid until they expire.
    NotTaken,
    /// Some tokens may still be valid. Holds the reason, escaped.
    Unsure(String),
}

impl RevocationOutcome {
    /// Returns the reason if tokens may still be valid.
    pub fn failure_reason(self) -> Option<String> {
        match self {
            Self::All | Self::Nothing => None,
            Self::NotTaken => Some("the authorization server does not support token revocation".to_owned()),
            Self::Unsure(why) => Some(why),
        }
    }
}

/// Revokes the refresh token, then the access token. The second is attempted even if the first fails.
pub(crate) async fn revoke(attempt: &AuthServerContext<'_>, kept: &StoredLogin) -> RevocationOutcome {
    let Some(tokens) = &kept.tokens else { return RevocationOutcome::Nothing };
    let Some(endpoint) = &kept.revocation_endpoint else { return RevocationOutcome::NotTaken };
    let refresh = tokens.refresh.as_ref().map(|token| ("refresh_token", token));
    let mut trouble = None;
    for (kind, token) in refresh.into_iter().chain([("access_token", &tokens.access)]) {
        let given_back = revoke_token(attempt, kept, endpoint, IssuedToken { kind, token }).await;
        trouble = trouble.or(given_back.err());
    }
    trouble.map_or(RevocationOutcome::All, |error| RevocationOutcome::Unsure(error.to_string()))
}

/// A token to revoke.
struct IssuedToken<'a> {
    /// Value of `token_type_hint` (RFC 7009, section 2.1).
    kind: &'a str,
    token: &'a Secret,
}

async fn revoke_token(
    attempt: &AuthServerContext<'_>,
    kept: &StoredLogin,
    endpoint: &str,
    IssuedToken { kind, token }: IssuedToken<'_>,
) -> Result<(), LoginError> {
    let request = TokenRequest {
        endpoint,
        named: UrlSource::from_settings(endpoint, attempt.settings),
        issuer: &kept.issuer,
        client: &kept.client,
        dpop: None,
        fields: vec![("token", token.reveal()), ("token_type_hint", kind)],
    };
    let answer = request.send(attempt).await?;
    if answer.status.is_success() {
        return Ok(());
    }
    Err(request.redact_error(parse_error(&answer), &answer).into())
}
