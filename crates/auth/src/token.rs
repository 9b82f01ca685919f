//! Requests to a token endpoint and their responses.

mod response;

use std::collections::{BTreeSet, HashSet};

use wharf_spec::Secret;

use crate::auth_http::{FetchedResponse, UrlSource};
use crate::client::OAuthClient;
use crate::client_auth::ClientAuthContext;
use crate::dpop::{DPOP_HEADER, DpopKey, DpopProofInput};
use crate::error::{LoginError, TokenError};
use crate::login::AuthServerContext;
use crate::settings::DpopMode;

pub(crate) use response::{parse_error, parse_tokens, successful_members};

/// Form fields whose values must not appear in an error.
const SECRET_FIELDS: [&str; 9] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "device_code",
    "refresh_token",
    "subject_token",
    "token",
];

/// Minimum length of a secret in bytes. Shorter values occur in ordinary words and are not effective secrets.
const MIN_SECRET_BYTES: usize = 6;
/// Length of a fragment of a secret that must not be disclosed, in bytes.
const SECRET_FRAGMENT_BYTES: usize = 12;

/// An access token with its refresh token and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSet {
    /// The access token.
    pub access: Secret,
    /// The refresh token.
    pub refresh: Option<Secret>,
    /// Expiry of the access token in Unix milliseconds. `None` if unknown.
    pub expires_at: Option<u64>,
    /// `Bearer` or `DPoP`, as received.
    pub token_type: String,
    /// Granted scope, if the response contains it.
    pub scope: Option<String>,
}

impl TokenSet {
    /// Reports whether the access token is bound to a DPoP key (RFC 9449).
    pub fn is_bound(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("DPoP")
    }
}

/// A request to a token endpoint, or to another endpoint with the same client authentication.
pub(crate) struct TokenRequest<'a> {
    /// URL of the endpoint.
    pub endpoint: &'a str,
    /// Source of that URL.
    pub named: UrlSource,
    /// Issuer identifier of the authorization server.
    pub issuer: &'a str,
    /// The client.
    pub client: &'a OAuthClient,
    /// Key to bind the tokens to.
    pub dpop: Option<&'a DpopKey>,
    /// Form fields, without those of the client authentication.
    pub fields: Vec<(&'static str, &'a str)>,
}

impl TokenRequest<'_> {
    /// Requests tokens. Not cancel-safe: a code or refresh token may be spent without a result.
    pub async fn request_tokens(&self, attempt: &AuthServerContext<'_>) -> Result<TokenSet, LoginError> {
        self.request_replacement(attempt, None).await
    }

    /// Requests tokens that replace `before`. Members missing in the response keep their previous value. Not
    /// cancel-safe: a code or refresh token may be spent without a result.
    pub async fn request_replacement(
        &self,
        attempt: &AuthServerContext<'_>,
        before: Option<&TokenSet>,
    ) -> Result<TokenSet, LoginError> {
        let asked_at = (attempt.now)();
        let answer = self.send(attempt).await?;
        let tokens = parse_tokens(&answer, asked_at, before).map_err(|error| self.redact_error(error, &answer))?;
        let must_be_bound = attempt.settings.dpop == DpopMode::Always || before.is_some_and(TokenSet::is_bound);
        match (tokens.is_bound(), self.dpop) {
            (true, None) => {
                Err(LoginError::Unsafe("it returned a DPoP-bound token without a key in the request".to_owned()))
            }
            (false, _) if must_be_bound => {
                Err(LoginError::Unsafe("it returned a token that is not DPoP-bound as required".to_owned()))
            }
            _ => Ok(tokens),
        }
    }

    /// Sends the request and returns the response, regardless of its status. Retries once if the endpoint demands
    /// another DPoP nonce (RFC 9449, 8).
    pub async fn send(&self, attempt: &AuthServerContext<'_>) -> Result<FetchedResponse, LoginError> {
        let shown = attempt.nonces.nonce_for(self.endpoint);
        let answer = self.post(attempt, shown.as_deref()).await?;
        let wanted = attempt.nonces.nonce_for(self.endpoint);
        if self.dpop.is_none() || wanted == shown || !wants_nonce(&answer) {
            return Ok(answer);
        }
        self.post(attempt, wanted.as_deref()).await
    }

    async fn post(&self, attempt: &AuthServerContext<'_>, nonce: Option<&str>) -> Result<FetchedResponse, LoginError> {
        let now = (attempt.now)();
        let occasion = ClientAuthContext { issuer: self.issuer, grant: &attempt.settings.grant, now };
        let mut shown = self.client.authenticate(&occasion)?;
        if let Some(key) = self.dpop {
            let about = DpopProofInput { method: "POST", url: self.endpoint, nonce, token: None, now };
            shown.headers.insert(DPOP_HEADER, key.proof(&about)?);
        }
        let of_client = shown.fields.iter().map(|(name, value)| (*name, value.as_str()));
        let fields: Vec<_> = self.fields.iter().copied().chain(of_client).collect();
        let answer = attempt.outside.post_form(self.endpoint, self.named, &fields, shown.headers).await;
        let answer = answer.map_err(|error| match error.may_pass {
            true => TokenError::Unclear(error.to_string()).into(),
            false => LoginError::from(error),
        })?;
        attempt.nonces.store_from_headers(self.endpoint, &answer.headers);
        Ok(answer)
    }

    /// Removes server-supplied text from an error if the response repeats secrets of the request (T50). Checks the
    /// response itself, because the text in the error is shortened and escaped.
    pub fn redact_error(&self, error: TokenError, answer: &FetchedResponse) -> TokenError {
        let TokenError::Refused { code, description, status } = error else { return error };
        let ours = self.fields.iter().filter(|(name, _)| SECRET_FIELDS.contains(name)).map(|(_, value)| *value);
        let pieces = ours.chain(self.client.secret.as_ref().map(Secret::reveal)).flat_map(secret_fragments).collect();
        let said = |name: &str| answer.json.as_ref().and_then(|said| said.get(name)?.as_str()).unwrap_or_default();
        if contains_fragment(said("error"), &pieces) {
            return TokenError::Unclear(format!("HTTP {status}, and the error text repeats a secret (omitted)"));
        }
        let description = description.filter(|_| !contains_fragment(said("error_description"), &pieces));
        TokenError::Refused { code, description, status }
    }
}

/// Returns the fragments of a secret that must not be disclosed. A short secret is a single fragment.
fn secret_fragments(secret: &str) -> impl Iterator<Item = &[u8]> {
    let secret = if secret.len() < MIN_SECRET_BYTES { "" } else { secret };
    secret.as_bytes().windows(secret.len().clamp(1, SECRET_FRAGMENT_BYTES))
}

/// Reports whether a text contains one of these fragments.
fn contains_fragment(said: &str, pieces: &HashSet<&[u8]>) -> bool {
    let lengths: BTreeSet<usize> = pieces.iter().map(|piece| piece.len()).collect();
    lengths.into_iter().any(|length| said.as_bytes().windows(length).any(|piece| pieces.contains(piece)))
}

fn wants_nonce(answer: &FetchedResponse) -> bool {
    let code = answer.json.as_ref().and_then(|said| said.get("error")?.as_str());
    matches!(answer.status.as_u16(), 400 | 401) && code == Some("use_dpop_nonce")
}

#[cfg(test)]
mod tests;
