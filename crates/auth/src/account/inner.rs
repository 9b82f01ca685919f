//! State shared by the clones of an account.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::flows::AuthorizationFlows;
use super::single_flight::{SingleFlight, TaskCounter};
use super::state::{AccountState, LoginSource};
use crate::browser::LoginBrowser;
use crate::discovery::is_valid_resource;
use crate::dpop::DpopNonces;
use crate::error::LoginError;
use crate::login::LoginOutcome;
use crate::vault::{AccountKey, StoredLogin, Vault, VaultError};

/// Timeout for a renewal of the same login in another process.
const VAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest uninterrupted wait for the lock on a blocking thread. Bounds the delay at program exit.
const LOCK_ATTEMPT_TIMEOUT: Duration = Duration::from_millis(200);

/// State shared by the clones of an account.
pub(super) struct AccountInner {
    pub(super) key: AccountKey,
    pub(super) url: Url,
    pub(super) vault: Arc<dyn Vault>,
    pub(super) flows: Arc<dyn AuthorizationFlows>,
    pub(super) visitor: Option<Arc<dyn LoginBrowser>>,
    /// Tokens are requested without a user.
    pub(super) is_unattended: bool,
    /// A stored login that does not record its URL may be used for this server.
    pub(super) takes_flat: bool,
    pub(super) now: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub(super) memory: Mutex<AccountState>,
    /// DPoP nonces of the server.
    pub(super) nonces: DpopNonces,
    pub(super) renewals: SingleFlight<Result<(), LoginError>>,
    pub(super) repairs: SingleFlight<Result<(), LoginError>>,
    pub(super) step_ups: SingleFlight<Result<(), LoginError>>,
    pub(super) logins: SingleFlight<Result<LoginOutcome, LoginError>>,
    /// Logins being stored or deleted, independent of waiting callers.
    pub(super) keeping: TaskCounter,
}

impl AccountInner {
    /// Locks the in-memory state. Must not be held across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, AccountState> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether tokens can be requested when the server demands them.
    pub(super) fn can_log_in(&self) -> bool {
        self.is_unattended || self.visitor.is_some()
    }

    /// Loads the stored login for the first time. Read errors are reported when the server demands a login.
    pub(super) async fn load_initial(&self) {
        let epoch = self.state().epoch;
        let loaded = self.load().await;
        let mut memory = self.state();
        if !memory.is_not_loaded() || memory.epoch != epoch {
            return;
        }
        match loaded {
            Ok(Some(kept)) => memory.set_login(kept, LoginSource::Vault),
            Ok(None) => memory.set_absent(),
            Err(LoginError::Vault(VaultError::Damaged { .. } | VaultError::Elsewhere { .. })) => memory.set_absent(),
            Err(error) => tracing::warn!(%error, "stored logins cannot be read"),
        }
    }

    /// Returns the stored login, or `None` if it belongs to another URL.
    pub(super) async fn load(&self) -> Result<Option<StoredLogin>, LoginError> {
        let kept = self.with_vault(|vault, key| vault.load(key)).await?;
        Ok(kept.filter(|kept| self.is_for_this_server(kept)))
    }

    fn is_for_this_server(&self, kept: &StoredLogin) -> bool {
        if kept.url.is_empty() {
            return self.takes_flat;
        }
        let is_of_us = kept.resource.as_ref().map(|resource| is_valid_resource(resource, &self.url));
        Url::parse(&kept.url).is_ok_and(|url| {
            // Without a resource identifier, another path may belong to another server.
            url.origin() == self.url.origin() && is_of_us.unwrap_or(url.path() == self.url.path())
        })
    }

    pub(super) async fn save(&self, kept: StoredLogin) -> Result<(), LoginError> {
        self.with_vault(move |vault, key| vault.save(key, &kept)).await
    }

    /// Excludes other renewals, in this and other processes, until the returned guard is dropped.
    pub(super) async fn lock(&self) -> Result<Box<dyn Send>, LoginError> {
        self.lock_within(VAULT_LOCK_TIMEOUT).await
    }

    pub(super) async fn lock_within(&self, max_wait: Duration) -> Result<Box<dyn Send>, LoginError> {
        let deadline = Instant::now() + max_wait;
        loop {
            match self.with_vault(|vault, key| vault.lock(key, LOCK_ATTEMPT_TIMEOUT)).await {
                Err(LoginError::Vault(VaultError::Locked(_))) if Instant::now() < deadline => {}
                outcome => return outcome,
            }
        }
    }

    /// Runs an operation of the vault on a blocking thread.
    pub(super) async fn with_vault<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Vault, &AccountKey) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, LoginError> {
        let (vault, key) = (self.vault.clone(), self.key.clone());
        match wharf_threads::run_blocking(move || work(&*vault, &key)).await {
            Ok(done) => Ok(done?),
            Err(error) => Err(VaultError::Unusable { what: error.to_string(), fix: None }.into()),
        }
    }
}
