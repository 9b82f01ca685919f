//! Token renewal: one at a time within and across processes, without losing a rotated token.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use wharf_net::AuthFuture;

use super::inner::AccountInner;
use super::login_logout::login_source;
use super::single_flight::AbandonPolicy;
use super::state::{AccountState, ActiveLogin, LoginSource, RenewalStart};
use crate::discovery::EndpointSource;
use crate::error::{LoginError, TokenError};
use crate::token::TokenSet;
use crate::vault::StoredLogin;

/// Timeout of a request for a renewal.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl AccountInner {
    /// Renews the login with this serial. Concurrent calls share one renewal.
    ///
    /// # Cancel safety
    /// The renewal continues if this future is dropped. The new tokens are always stored.
    pub(super) async fn renew(self: &Arc<Self>, serial: u64) -> Result<(), LoginError> {
        self.renew_by(serial, Instant::now() + PATIENCE).await
    }

    pub(super) async fn renew_by(self: &Arc<Self>, serial: u64, deadline: Instant) -> Result<(), LoginError> {
        if let Some(error) = self.state().backoff_error(Instant::now()) {
            return Err(error);
        }
        let inner = self.clone();
        let waiting =
            self.renewals.join(AbandonPolicy::Detached, || Box::pin(inner.renew_with_backoff(serial)) as AuthFuture<_>);
        match timeout_at(deadline, waiting.outcome()).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(unclear_error("internal error: the renewal task was cancelled")),
            Err(_) => Err(unclear_error("token renewal timed out after 30 s")),
        }
    }

    async fn renew_with_backoff(self: Arc<Self>, serial: u64) -> Result<(), LoginError> {
        let outcome = self.renew_locked(serial).await;
        match &outcome {
            Ok(()) => self.state().clear_backoff(),
            Err(error) if error.needs_user() => self.state().clear_backoff(),
            Err(error) => self.state().start_backoff(error.clone(), Instant::now()),
        }
        outcome
    }

    async fn renew_locked(&self, serial: u64) -> Result<(), LoginError> {
        let epoch = self.state().epoch;
        let _lock = self.lock().await?;
        let held = self.state().active_login();
        // The previous renewal has already replaced this serial.
        let Some(held) = held.filter(|held| held.serial == serial) else { return Ok(()) };
        match held.renewal_start(self.load().await?, (self.now)()) {
            RenewalStart::Nothing => self.login_gone(epoch),
            RenewalStart::Adopt(kept) => {
                self.update_unless_logged_out(epoch, |memory| memory.set_login(kept, LoginSource::Vault))
            }
            RenewalStart::Renew(kept) => {
                let kept = self.with_token_endpoint(kept).await?;
                match self.flows.renew(kept.clone()).await {
                    Ok(tokens) if self.is_logged_out(&held, epoch).await => {
                        self.revoke_renewed(kept, tokens, epoch).await
                    }
                    Ok(tokens) => self.store_renewed(kept, tokens, epoch).await,
                    Err(error) => self.renewal_failed(kept, as_transient(error), epoch).await,
                }
            }
        }
    }

    /// Discovers the token endpoint of a login in the flat form, which does not record it. The tokens are sent only to
    /// an issuer with metadata, and only to the recorded issuer if there is one.
    async fn with_token_endpoint(&self, kept: StoredLogin) -> Result<StoredLogin, LoginError> {
        if !kept.token_endpoint.is_empty() {
            return Ok(kept);
        }
        let found = self.flows.discover(None).await?;
        let is_other = !kept.issuer.is_empty() && kept.issuer != found.server.issuer;
        if is_other || found.server.named == EndpointSource::Presumed {
            return Err(LoginError::Needed { scope: None });
        }
        Ok(StoredLogin {
            issuer: found.server.issuer,
            url: if kept.url.is_empty() { self.url.as_str().to_owned() } else { kept.url },
            resource: kept.resource.or(found.resource),
            token_endpoint: found.server.token_endpoint.unwrap_or_default(),
            revocation_endpoint: found.server.revocation_endpoint,
            ..kept
        })
    }

    /// Revokes tokens that were renewed during a logout.
    async fn revoke_renewed(&self, before: StoredLogin, tokens: TokenSet, epoch: u64) -> Result<(), LoginError> {
        self.flows.revoke(StoredLogin { tokens: Some(tokens), ..before }).await;
        self.login_gone(epoch)
    }

    /// Stores renewed tokens before using them. Revokes them if the user has logged out in between.
    async fn store_renewed(&self, before: StoredLogin, tokens: TokenSet, epoch: u64) -> Result<(), LoginError> {
        let spent = before.tokens.clone();
        let kept = StoredLogin { tokens: Some(tokens), renewed_at: (self.now)(), last_error: None, ..before };
        let source = login_source(self.save(kept.clone()).await, spent);
        if self.state().epoch != epoch {
            return self.undo_store(kept).await;
        }
        self.update_unless_logged_out(epoch, |memory| memory.set_login(kept, source))
    }

    /// Handles a failed renewal. The tokens are retained unless they were rejected permanently. Tokens that another
    /// process has stored in between are never removed. A failure to record the error does not replace the original
    /// error.
    async fn renewal_failed(&self, before: StoredLogin, error: LoginError, epoch: u64) -> Result<(), LoginError> {
        let stored = self.load().await.unwrap_or_else(|trouble| {
            tracing::debug!(error = %trouble, "the stored login cannot be read");
            None
        });
        let is_unchanged = stored.as_ref().is_some_and(|stored| stored.tokens == before.tokens);
        let is_final = matches!(&error, LoginError::Token(error) if error.is_final());
        if is_final && let Some(stored) = stored.as_ref().filter(|stored| self.is_newer_login(stored, &before)) {
            return self.update_unless_logged_out(epoch, |memory| memory.set_login(stored.clone(), LoginSource::Vault));
        }
        let spent = before.tokens.clone();
        let tokens = if is_final { None } else { before.tokens.clone() };
        let kept = StoredLogin { tokens, last_error: Some(error.to_string()), ..before };
        let mut source = LoginSource::Vault;
        if is_unchanged
            && self.state().epoch == epoch
            && stored.as_ref() != Some(&kept)
            && let Err(trouble) = self.save(kept.clone()).await
        {
            tracing::warn!(error = %trouble, "the renewal error could not be saved");
            source = LoginSource::Unkept(spent);
        }
        if is_final {
            self.update_unless_logged_out(epoch, |memory| memory.set_login(kept, source))?;
        }
        Err(error)
    }

    fn is_newer_login(&self, stored: &StoredLogin, refused: &StoredLogin) -> bool {
        let is_older = self.state().active_login().is_some_and(|held| held.replaces_stored(stored));
        stored.tokens.is_some() && stored.tokens != refused.tokens && !is_older
    }

    /// Reports whether the user has logged out since, in this or another process.
    async fn is_logged_out(&self, held: &ActiveLogin, epoch: u64) -> bool {
        self.state().epoch != epoch || (!held.is_missing_in_vault() && matches!(self.load().await, Ok(None)))
    }

    /// Deletes and revokes a login that was stored during a logout.
    pub(super) async fn undo_store(&self, kept: StoredLogin) -> Result<(), LoginError> {
        self.with_vault(|vault, key| vault.remove(key)).await?;
        self.flows.revoke(kept).await;
        Err(LoginError::Needed { scope: None })
    }

    fn login_gone(&self, epoch: u64) -> Result<(), LoginError> {
        self.update_unless_logged_out(epoch, AccountState::set_absent)?;
        Err(LoginError::Needed { scope: None })
    }

    /// Applies a change unless the user has logged out since.
    pub(super) fn update_unless_logged_out(
        &self,
        epoch: u64,
        change: impl FnOnce(&mut AccountState),
    ) -> Result<(), LoginError> {
        let mut memory = self.state();
        if memory.epoch != epoch {
            return Err(LoginError::Needed { scope: None });
        }
        change(&mut memory);
        Ok(())
    }
}

/// Converts a rejected renewal into a transient error, unless the code is about the token or the client (O03).
fn as_transient(error: LoginError) -> LoginError {
    match error {
        LoginError::Token(TokenError::Refused { code, description, status }) if !requires_login(&code) => {
            let said = description.map(|said| format!(" ({said})")).unwrap_or_default();
            unclear_error(&format!("renewal rejected with {code}{said}, HTTP {status}"))
        }
        error => error,
    }
}

/// Reports whether an error code requires a new login: the token or the client is no longer valid (O11).
fn requires_login(code: &str) -> bool {
    matches!(code, "invalid_grant" | "invalid_client" | "unauthorized_client")
}

/// Reports whether renewing again is pointless without a login.
pub(super) fn needs_login(error: &LoginError) -> bool {
    let is_refused = matches!(error, LoginError::Token(TokenError::Refused { code, .. }) if requires_login(code));
    is_refused || error.needs_user()
}

fn unclear_error(what: &str) -> LoginError {
    LoginError::Token(TokenError::Unclear(what.to_owned()))
}
