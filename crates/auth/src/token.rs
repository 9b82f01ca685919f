//! Asking a token endpoint, and what it answers.

mod answer;

use std::collections::{BTreeSet, HashSet};

use wharf_spec::Secret;

use crate::client::Client;
use crate::dpop::{DpopKey, PROOF, Proven};
use crate::error::{LoginError, TokenError};
use crate::fetch::{Fetched, Named};
use crate::login::Attempt;
use crate::proof::Occasion;
use crate::settings::Dpop;

pub(crate) use answer::{read, refusal, succeeded};

/// Fields that nobody may read who reads an error.
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

/// Bytes. What is shorter is found in ordinary words, and is no secret anyway.
const LEAST_SECRET: usize = 6;
/// Bytes in a row that tell too much of a longer secret.
const PIECE: usize = 12;

/// Tokens, as they are kept and used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Shown to the server.
    pub access: Secret,
    /// Exchanged for the next ones.
    pub refresh: Option<Secret>,
    /// When the access token ends, in Unix milliseconds; unknown is not never.
    pub expires_at: Option<u64>,
    /// `Bearer` or `DPoP`, as it came.
    pub token_type: String,
    /// What was granted, where the answer says so.
    pub scope: Option<String>,
}

impl Tokens {
    /// Whether the access token is shown with a proof that it is ours (RFC 9449).
    pub fn is_bound(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("DPoP")
    }
}

/// A request to a token endpoint, or to another one that wants the same proof of a client.
pub(crate) struct TokenRequest<'a> {
    /// Where to.
    pub endpoint: &'a str,
    /// Who gave that address.
    pub named: Named,
    /// Whose it is, as it calls itself.
    pub issuer: &'a str,
    /// Who asks.
    pub client: &'a Client,
    /// What the tokens are to be bound to.
    pub dpop: Option<&'a DpopKey>,
    /// What is asked, beside who asks.
    pub fields: Vec<(&'static str, &'a str)>,
}

impl TokenRequest<'_> {
    /// Gets tokens. Dropped while it waits, whatever was shown may have been used up.
    pub async fn tokens(&self, attempt: &Attempt<'_>) -> Result<Tokens, LoginError> {
        self.tokens_after(attempt, None).await
    }

    /// Gets tokens in place of those from before, of whom stays what the answer leaves out. Dropped while it waits,
    /// whatever was shown may have been used up.
    pub async fn tokens_after(&self, attempt: &Attempt<'_>, before: Option<&Tokens>) -> Result<Tokens, LoginError> {
        let asked_at = (attempt.now)();
        let answer = self.answer(attempt).await?;
        let tokens = read(&answer, asked_at, before).map_err(|error| self.without_secrets(error, &answer))?;
        let must_be_bound = attempt.settings.dpop == Dpop::Always || before.is_some_and(Tokens::is_bound);
        match (tokens.is_bound(), self.dpop) {
            (true, None) => Err(LoginError::Unsafe("it bound tokens to a key, and was shown none".to_owned())),
            (false, _) if must_be_bound => {
                Err(LoginError::Unsafe("it gave a token that is not bound to our key, as it has to be".to_owned()))
            }
            _ => Ok(tokens),
        }
    }

    /// What the endpoint answers, whatever that is. Where it wants another nonce in the proof than it got, it is asked
    /// once more with a new one (RFC 9449, 8).
    pub async fn answer(&self, attempt: &Attempt<'_>) -> Result<Fetched, LoginError> {
        let shown = attempt.nonces.of(self.endpoint);
        let answer = self.post(attempt, shown.as_deref()).await?;
        let wanted = attempt.nonces.of(self.endpoint);
        if self.dpop.is_none() || wanted == shown || !wants_nonce(&answer) {
            return Ok(answer);
        }
        self.post(attempt, wanted.as_deref()).await
    }

    async fn post(&self, attempt: &Attempt<'_>, nonce: Option<&str>) -> Result<Fetched, LoginError> {
        let now = (attempt.now)();
        let occasion = Occasion { issuer: self.issuer, grant: &attempt.settings.grant, now };
        let mut shown = self.client.shows(&occasion)?;
        if let Some(key) = self.dpop {
            let about = Proven { method: "POST", url: self.endpoint, nonce, token: None, now };
            shown.headers.insert(PROOF, key.proof(&about)?);
        }
        let of_client = shown.fields.iter().map(|(name, value)| (*name, value.as_str()));
        let fields: Vec<_> = self.fields.iter().copied().chain(of_client).collect();
        let answer = attempt.outside.post_form(self.endpoint, self.named, &fields, shown.headers).await;
        let answer = answer.map_err(|error| match error.may_pass {
            true => TokenError::Unclear(error.to_string()).into(),
            false => LoginError::from(error),
        })?;
        attempt.nonces.note(self.endpoint, &answer.headers);
        Ok(answer)
    }

    /// The same error, where the answer it is from does not repeat what was shown; else without what it says (T50).
    /// What is in the error is cut and escaped, so that a secret could not be found in it.
    pub fn without_secrets(&self, error: TokenError, answer: &Fetched) -> TokenError {
        let TokenError::Refused { code, description, status } = error else { return error };
        let ours = self.fields.iter().filter(|(name, _)| SECRET_FIELDS.contains(name)).map(|(_, value)| *value);
        let pieces = ours.chain(self.client.secret.as_ref().map(Secret::reveal)).flat_map(pieces).collect();
        let said = |name: &str| answer.json.as_ref().and_then(|said| said.get(name)?.as_str()).unwrap_or_default();
        if tells(said("error"), &pieces) {
            return TokenError::Unclear(format!("it answered {status} and what was shown to it"));
        }
        let description = description.filter(|_| !tells(said("error_description"), &pieces));
        TokenError::Refused { code, description, status }
    }
}

/// What must not be read of a secret: any piece of it, or all where it is short.
fn pieces(secret: &str) -> impl Iterator<Item = &[u8]> {
    let secret = if secret.len() < LEAST_SECRET { "" } else { secret };
    secret.as_bytes().windows(secret.len().clamp(1, PIECE))
}

/// Whether a text has one of these pieces in it.
fn tells(said: &str, pieces: &HashSet<&[u8]>) -> bool {
    let lengths: BTreeSet<usize> = pieces.iter().map(|piece| piece.len()).collect();
    lengths.into_iter().any(|length| said.as_bytes().windows(length).any(|piece| pieces.contains(piece)))
}

fn wants_nonce(answer: &Fetched) -> bool {
    let code = answer.json.as_ref().and_then(|said| said.get("error")?.as_str());
    matches!(answer.status.as_u16(), 400 | 401) && code == Some("use_dpop_nonce")
}

#[cfg(test)]
mod tests;
