//! Login and logout.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use wharf_net::AuthFuture;

use super::inner::AccountInner;
use super::single_flight::AbandonPolicy;
use super::state::LoginSource;
use crate::browser::{LoginBrowser, VisitError};
use crate::challenge::AuthChallenge;
use crate::error::LoginError;
use crate::login::{LoginOutcome, LogoutOutcome};
use crate::token::TokenSet;
use crate::vault::{StoredLogin, VaultError};

/// Timeout of a logout for a renewal in another process. Longer than a renewal takes.
const LOGOUT_LOCK_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout for getting tokens without a user. A request waits slightly longer, so that they can be stored.
const UNATTENDED_TIMEOUT: Duration = Duration::from_secs(29);
const UNATTENDED_WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Parameters of a login.
pub(super) struct LoginParameters {
    pub(super) visitor: Option<Arc<dyn LoginBrowser>>,
    /// The server's challenge.
    pub(super) challenge: Option<AuthChallenge>,
    /// Login to reuse the client from, instead of the stored one.
    pub(super) before: Option<StoredLogin>,
    /// Scope to request, if already determined.
    pub(super) scope: Option<String>,
}

impl AccountInner {
    /// Logs in, or joins a running login. When no caller waits for it any more, the login is cancelled. Tokens received
    /// by then are stored.
    pub(super) async fn log_in(self: &Arc<Self>, entry: LoginParameters) -> Result<LoginOutcome, LoginError> {
        let (inner, epoch) = (self.clone(), self.state().epoch);
        let waiting =
            self.logins.join(AbandonPolicy::Attended, || Box::pin(inner.run_login(entry, epoch)) as AuthFuture<_>);
        waiting.outcome().await.unwrap_or_else(|| Err(cancelled_error()))
    }

    /// Gets tokens without a user. Fails immediately during the backoff after a failure.
    pub(super) async fn log_in_unattended(self: &Arc<Self>, entry: LoginParameters) -> Result<(), LoginError> {
        if let Some(error) = self.state().backoff_error(Instant::now()) {
            return Err(error);
        }
        let got = timeout(UNATTENDED_WAIT_TIMEOUT, self.log_in(entry)).await;
        got.unwrap_or_else(|_| Err(timeout_error())).map(drop)
    }

    async fn run_login(self: Arc<Self>, entry: LoginParameters, epoch: u64) -> Result<LoginOutcome, LoginError> {
        let stored = match self.load().await {
            // Saving the next login moves the damaged data aside, or leaves data stored elsewhere in place.
            Err(LoginError::Vault(VaultError::Damaged { .. } | VaultError::Elsewhere { .. })) => None,
            loaded => loaded?,
        };
        let spent = stored.as_ref().and_then(|stored| stored.tokens.clone());
        let kept = self.request_tokens(entry, stored).await?;
        let under_way = self.keeping.begin();
        let keeping = tokio::spawn(async move {
            let _under_way = under_way;
            self.store_login(kept, spent, epoch).await
        });
        keeping.await.unwrap_or_else(|_| Err(cancelled_error()))
    }

    async fn request_tokens(
        &self,
        entry: LoginParameters,
        stored: Option<StoredLogin>,
    ) -> Result<StoredLogin, LoginError> {
        let before = entry.before.or(stored);
        let obtaining = self.flows.log_in(entry.visitor, entry.challenge, before, entry.scope);
        if !self.is_unattended {
            return obtaining.await;
        }
        let obtained = timeout(UNATTENDED_TIMEOUT, obtaining).await.unwrap_or_else(|_| Err(timeout_error()));
        obtained.inspect_err(|error| self.state().start_backoff(error.clone(), Instant::now()))
    }

    /// Stores a login. If that fails, the login is used from memory, since it cost the user an interaction. `spent`
    /// holds the replaced tokens.
    async fn store_login(
        &self,
        kept: StoredLogin,
        spent: Option<TokenSet>,
        epoch: u64,
    ) -> Result<LoginOutcome, LoginError> {
        let lock = self.lock().await;
        if self.state().epoch != epoch {
            self.flows.revoke(kept).await;
            return Err(LoginError::Needed { scope: None });
        }
        let saved = match &lock {
            Ok(_) => self.save(kept.clone()).await,
            Err(error) => Err(error.clone()),
        };
        let source = login_source(saved, spent);
        if self.state().epoch != epoch {
            self.undo_store(kept).await?;
            return Err(LoginError::Needed { scope: None });
        }
        self.update_unless_logged_out(epoch, |memory| {
            memory.scope_granted(kept.asked.as_deref());
            memory.set_login(kept.clone(), source);
            memory.clear_backoff();
        })?;
        Ok(LoginOutcome { kept })
    }

    /// Deletes the login, then revokes its tokens. A running renewal is not awaited: it revokes its own result. Running
    /// operations cannot be joined any more.
    pub(super) async fn log_out(self: &Arc<Self>) -> Result<LogoutOutcome, LoginError> {
        let epoch = self.state().clear_for_logout();
        let is_renewing = self.renewals.is_running();
        self.logins.detach();
        self.renewals.detach();
        self.repairs.detach();
        self.step_ups.detach();
        let logout = self.remove_and_revoke().await?;
        let (inner, under_way) = (self.clone(), self.keeping.begin());
        let again = tokio::spawn(async move {
            let _under_way = under_way;
            inner.remove_after_race(epoch).await
        });
        if !is_renewing && let Ok(removed) = again.await {
            removed?;
        }
        Ok(logout)
    }

    /// Deletes again under the lock, since another process may have stored a login during the logout. Does nothing if
    /// the lock times out, as the other process checks by itself, or if the user has logged in again.
    async fn remove_after_race(&self, epoch: u64) -> Result<(), LoginError> {
        let Ok(_lock) = self.lock_within(LOGOUT_LOCK_TIMEOUT).await else { return Ok(()) };
        if self.is_still_logged_out(epoch) {
            self.remove_and_revoke().await?;
        }
        Ok(())
    }

    fn is_still_logged_out(&self, epoch: u64) -> bool {
        let memory = self.state();
        memory.epoch == epoch && memory.active_login().is_none()
    }

    async fn remove_and_revoke(&self) -> Result<LogoutOutcome, LoginError> {
        let kept = self.with_vault(|vault, key| vault.load_all(key)).await;
        let was_kept = self.with_vault(|vault, key| vault.remove(key)).await?;
        let mut still_good = None;
        for kept in kept.unwrap_or_default().into_iter().filter(|kept| kept.tokens.is_some()) {
            still_good = still_good.or(self.flows.revoke(kept).await.failure_reason());
        }
        Ok(LogoutOutcome { was_kept, still_good })
    }
}

/// Returns the source of a login depending on whether it could be stored.
pub(super) fn login_source(saved: Result<(), LoginError>, spent: Option<TokenSet>) -> LoginSource {
    match saved {
        Ok(()) => LoginSource::Issuer,
        Err(error) => {
            tracing::warn!(%error, "the login could not be saved and is valid only until this process exits");
            LoginSource::Unkept(spent)
        }
    }
}

fn timeout_error() -> LoginError {
    LoginError::Unreachable(format!("no tokens received within {} s", UNATTENDED_WAIT_TIMEOUT.as_secs()))
}

fn cancelled_error() -> LoginError {
    VisitError::NotPossible("the login was cancelled".to_owned()).into()
}
