//! Handling of rejected requests.

use std::sync::Arc;

use tokio::time::{Instant, timeout};
use wharf_net::{AuthFuture, AuthRecovery, AuthRejection, NotAuthorized};
use wharf_spec::UntrustedText;

use super::credential_headers::is_confidential;
use super::inner::AccountInner;
use super::login_logout::LoginParameters;
use super::renewal::PATIENCE;
use super::single_flight::AbandonPolicy;
use super::state::rejects_every_token;
use crate::challenge::AuthChallenge;
use crate::discovery::{DiscoveryResult, EndpointSource};
use crate::error::{LoginError, TokenError};
use crate::scope;
use crate::vault::{StoredLogin, VaultError};

/// Maximum length of a displayed scope in characters.
const MAX_DISPLAYED_SCOPE_CHARS: usize = 300;

impl AccountInner {
    /// Makes a retry of the request possible, or returns the way to recover.
    ///
    /// # Cancel safety
    /// If this is dropped, a login without other waiting callers is cancelled. A renewal continues.
    pub(super) async fn handle_rejection(self: Arc<Self>, refusal: AuthRejection) -> Result<(), NotAuthorized> {
        let challenges = AuthChallenge::from_headers(&refusal.headers);
        let wants_more = challenges.iter().find(|challenge| has_error(challenge, "insufficient_scope"));
        let mended = match (refusal.status, wants_more) {
            _ if !is_confidential(&self.url) => Err(LoginError::Unsafe("tokens are sent over https only".to_owned())),
            (403, Some(challenge)) => self.step_up(refusal.serial, challenge.clone()).await,
            (403, None) => return Err(forbidden_error()),
            _ if self.retries_with_nonce(&refusal, &challenges) => Ok(()),
            _ => self.handle_unauthorized(refusal.serial, AuthChallenge::most_specific(challenges)).await,
        };
        mended.map_err(to_not_authorized)
    }

    /// Reports whether the server only demands another DPoP nonce and has sent it. The nonce was stored with the
    /// response.
    fn retries_with_nonce(&self, refusal: &AuthRejection, challenges: &[AuthChallenge]) -> bool {
        if !challenges.iter().any(|challenge| has_error(challenge, "use_dpop_nonce")) {
            return false;
        }
        let has_nonce = self.nonces.nonce_for(self.url.as_str()).is_some();
        let mut memory = self.state();
        memory.is_stale(refusal.serial) || (has_nonce && memory.retry_with_nonce())
    }

    async fn handle_unauthorized(
        self: &Arc<Self>,
        serial: Option<u64>,
        challenge: Option<AuthChallenge>,
    ) -> Result<(), LoginError> {
        if self.state().is_stale(serial) {
            return Ok(());
        }
        if challenge.is_some() {
            self.state().challenge.clone_from(&challenge);
        }
        let inner = self.clone();
        let waiting = self.repairs.join(AbandonPolicy::Attended, || {
            Box::pin(async move { inner.recover(serial, challenge).await }) as AuthFuture<_>
        });
        waiting
            .outcome()
            .await
            .unwrap_or_else(|| Err(LoginError::Unreachable("internal error: the login task was cancelled".to_owned())))
    }

    /// Tries, in this order: tokens stored by another process, a renewal, a login.
    async fn recover(
        self: &Arc<Self>,
        serial: Option<u64>,
        challenge: Option<AuthChallenge>,
    ) -> Result<(), LoginError> {
        let damage = match self.adopt_stored(serial).await {
            Ok(true) => return Ok(()),
            Ok(false) => None,
            Err(LoginError::Vault(error @ (VaultError::Damaged { .. } | VaultError::Elsewhere { .. }))) => Some(error),
            Err(error) => return Err(error),
        };
        let strikes = self.state().record_rejection();
        if rejects_every_token(strikes) && self.can_log_in() {
            return Err(LoginError::NotTaken);
        }
        let deadline = Instant::now() + PATIENCE;
        let known = self.known_issuer(challenge.as_ref()).await?;
        if strikes == 0
            && let Some(serial) = known.renewable
        {
            match self.renew_by(serial, deadline).await {
                Err(error) if !error.is_transient() && self.can_log_in() => {
                    tracing::debug!(%error, "a new login is needed");
                }
                outcome => return outcome,
            }
        }
        if !self.can_log_in() {
            return Err(damage.map_or(LoginError::Needed { scope: None }, LoginError::Vault));
        }
        let asked = known.before.as_ref().and_then(|before| before.asked.as_deref());
        let wanted = challenge.as_ref().and_then(|challenge| challenge.scope.as_deref());
        let scope = asked.and_then(|asked| scope::union(Some(asked), wanted));
        self.log_in_again(LoginParameters { visitor: self.visitor.clone(), challenge, before: known.before, scope })
            .await
    }

    async fn log_in_again(self: &Arc<Self>, entry: LoginParameters) -> Result<(), LoginError> {
        if self.is_unattended { self.log_in_unattended(entry).await } else { self.log_in(entry).await.map(drop) }
    }

    /// Adopts a login that another process has stored. Returns whether there was a newer one.
    async fn adopt_stored(&self, serial: Option<u64>) -> Result<bool, LoginError> {
        if self.state().is_stale(serial) {
            return Ok(true);
        }
        let over = self.state().active_login().map(|held| held.serial);
        let stored = self.load().await?;
        Ok(self.state().adopt(over, stored.as_ref(), (self.now)()))
    }

    /// Returns the login that is usable at the issuer the server names now. If the issuer has changed, the old
    /// credentials are neither sent to the new issuer nor renewed at the old one.
    async fn known_issuer(&self, challenge: Option<&AuthChallenge>) -> Result<KnownIssuer, LoginError> {
        let Some(held) = self.state().active_login() else { return Ok(KnownIssuer::default()) };
        let refresh = held.kept.tokens.as_ref().and_then(|tokens| tokens.refresh.as_ref());
        let renewable = refresh.map(|_| held.serial);
        if renewable.is_none() && !self.can_log_in() {
            return Ok(KnownIssuer::default());
        }
        let issuer = match self.discover_issuer(challenge).await {
            // The current issuer is still listed.
            Ok(found) if found.issuers.contains(&held.kept.issuer) => held.kept.issuer.clone(),
            // Without metadata there is no evidence of a new issuer.
            Ok(found) if found.server.named == EndpointSource::Presumed => held.kept.issuer.clone(),
            Ok(found) => found.server.issuer,
            Err(error @ (LoginError::WrongResource { .. } | LoginError::Unsafe(_))) => return Err(error),
            // A refresh token may always be sent to its own issuer.
            Err(_) if renewable.is_some() => held.kept.issuer.clone(),
            Err(error) => return Err(error),
        };
        if held.kept.issuer.is_empty() || held.kept.issuer == issuer {
            return Ok(KnownIssuer { renewable, before: Some(held.kept.clone()) });
        }
        let before = self.with_vault(move |vault, key| vault.load_for_issuer(key, &issuer)).await?;
        Ok(KnownIssuer { renewable: None, before })
    }

    /// Discovers the issuer that the server names now. The timeout leaves time for a renewal.
    async fn discover_issuer(&self, challenge: Option<&AuthChallenge>) -> Result<DiscoveryResult, LoginError> {
        let found = timeout(PATIENCE / 2, self.flows.discover(challenge.cloned())).await;
        found.unwrap_or_else(|_| {
            Err(LoginError::Unreachable("timeout while fetching the server's OAuth metadata".to_owned()))
        })
    }

    /// Requests the previous scopes and the missing ones.
    async fn step_up(self: &Arc<Self>, serial: Option<u64>, challenge: AuthChallenge) -> Result<(), LoginError> {
        if self.state().is_stale(serial) {
            return Ok(());
        }
        self.state().demand_scope(challenge.scope.as_deref());
        let inner = self.clone();
        let waiting = self.step_ups.join(AbandonPolicy::Attended, || {
            Box::pin(async move { inner.request_more_scope(serial, challenge).await }) as AuthFuture<_>
        });
        waiting
            .outcome()
            .await
            .unwrap_or_else(|| Err(LoginError::Unreachable("internal error: the login task was cancelled".to_owned())))
    }

    async fn request_more_scope(
        self: &Arc<Self>,
        serial: Option<u64>,
        challenge: AuthChallenge,
    ) -> Result<(), LoginError> {
        if self.adopt_stored(serial).await? {
            return Ok(());
        }
        let scope = self.scope_to_request();
        let shown =
            UntrustedText::new(scope.as_deref().unwrap_or("more")).truncate(MAX_DISPLAYED_SCOPE_CHARS).to_string();
        if !self.can_log_in() {
            return Err(LoginError::Needed { scope: Some(shown) });
        }
        let counted = self.state().record_step_up(Instant::now());
        counted
            .map_err(|times| LoginError::StepUps { times: u32::try_from(times).unwrap_or(u32::MAX), scope: shown })?;
        let visitor = self.visitor.clone();
        self.log_in_again(LoginParameters { visitor, challenge: Some(challenge), before: None, scope }).await
    }

    /// Returns the previously requested scopes and those demanded since.
    fn scope_to_request(&self) -> Option<String> {
        let memory = self.state();
        memory.scope_to_request().or_else(|| memory.requested_scope())
    }
}

/// Stored facts about the issuer that the server names.
#[derive(Default)]
struct KnownIssuer {
    /// Serial of the login that can be renewed there.
    renewable: Option<u64>,
    /// The last login there.
    before: Option<StoredLogin>,
}

fn has_error(challenge: &AuthChallenge, error: &str) -> bool {
    challenge.error.as_deref() == Some(error)
}

fn forbidden_error() -> NotAuthorized {
    let reason =
        "access denied by the server (HTTP 403 without an OAuth error; logging in again does not help)".to_owned();
    NotAuthorized { remedy: AuthRecovery::Reading, reason }
}

/// Converts a login error, and determines the way to recover.
pub(super) fn to_not_authorized(error: LoginError) -> NotAuthorized {
    let remedy = match &error {
        LoginError::Needed { scope: Some(scope) } => AuthRecovery::Scope(scope.clone()),
        LoginError::Needed { scope: None }
        | LoginError::Denied(_)
        | LoginError::Visit(_)
        | LoginError::Token(TokenError::Refused { .. })
        | LoginError::Vault(VaultError::Damaged { .. } | VaultError::Elsewhere { .. }) => AuthRecovery::Login,
        error if error.is_transient() => AuthRecovery::Waiting,
        _ => AuthRecovery::Reading,
    };
    NotAuthorized { remedy, reason: error.to_string() }
}
