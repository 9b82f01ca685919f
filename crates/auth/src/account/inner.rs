//! What the clones of an account share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::flight::{Flights, Work};
use super::flows::Flows;
use super::memory::{Memory, Source};
use crate::discovery::is_of;
use crate::dpop::Nonces;
use crate::error::LoginError;
use crate::login::Login;
use crate::vault::{AccountKey, Kept, Vault, VaultError};
use crate::visitor::Visitor;

/// How long others are waited for who renew the same login.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a thread waits for them at a stretch: whoever ends the program does not wait for more.
const STRETCH: Duration = Duration::from_millis(200);

/// What the clones of an account share.
pub(super) struct Inner {
    pub(super) key: AccountKey,
    pub(super) url: Url,
    pub(super) vault: Arc<dyn Vault>,
    pub(super) flows: Arc<dyn Flows>,
    pub(super) visitor: Option<Arc<dyn Visitor>>,
    /// Tokens are got without a person.
    pub(super) is_unattended: bool,
    /// A login that does not say which address it is for may be shown to this one.
    pub(super) takes_flat: bool,
    pub(super) now: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub(super) memory: Mutex<Memory>,
    /// What the server wants repeated in proofs.
    pub(super) nonces: Nonces,
    pub(super) renewals: Flights<Result<(), LoginError>>,
    pub(super) repairs: Flights<Result<(), LoginError>>,
    pub(super) step_ups: Flights<Result<(), LoginError>>,
    pub(super) logins: Flights<Result<Login, LoginError>>,
    /// Logins that are being kept, and forgotten, whoever waits for it.
    pub(super) keeping: Work,
}

impl Inner {
    /// What is known. Held for a few lines, and never while anything is awaited.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether tokens can be got when the server asks for them.
    pub(super) fn can_log_in(&self) -> bool {
        self.is_unattended || self.visitor.is_some()
    }

    /// Reads what is kept, the first time. What cannot be read is told when the server wants it.
    pub(super) async fn read(&self) {
        let epoch = self.memory().epoch;
        let loaded = self.load().await;
        let mut memory = self.memory();
        if !memory.is_unread() || memory.epoch != epoch {
            return;
        }
        match loaded {
            Ok(Some(kept)) => memory.hold(kept, Source::Vault),
            Ok(None) => memory.hold_nothing(),
            Err(LoginError::Vault(VaultError::Damaged { .. } | VaultError::Elsewhere { .. })) => memory.hold_nothing(),
            Err(error) => tracing::warn!(%error, "what is kept of logins cannot be read"),
        }
    }

    /// What is kept; nothing where it was got for another address than the server's.
    pub(super) async fn load(&self) -> Result<Option<Kept>, LoginError> {
        let kept = self.in_vault(|vault, key| vault.load(key)).await?;
        Ok(kept.filter(|kept| self.is_for_us(kept)))
    }

    fn is_for_us(&self, kept: &Kept) -> bool {
        if kept.url.is_empty() {
            return self.takes_flat;
        }
        let is_of_us = kept.resource.as_ref().map(|resource| is_of(resource, &self.url));
        Url::parse(&kept.url).is_ok_and(|url| {
            // Where nothing names what it was got for, another path may be somebody else's.
            url.origin() == self.url.origin() && is_of_us.unwrap_or(url.path() == self.url.path())
        })
    }

    pub(super) async fn save(&self, kept: Kept) -> Result<(), LoginError> {
        self.in_vault(move |vault, key| vault.save(key, &kept)).await
    }

    /// Keeps everybody else from renewing, in this process and others, for as long as what this gives is held.
    pub(super) async fn lock(&self) -> Result<Box<dyn Send>, LoginError> {
        self.lock_within(PATIENCE).await
    }

    pub(super) async fn lock_within(&self, patience: Duration) -> Result<Box<dyn Send>, LoginError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.in_vault(|vault, key| vault.lock(key, STRETCH)).await {
                Err(LoginError::Vault(VaultError::Locked(_))) if Instant::now() < deadline => {}
                outcome => return outcome,
            }
        }
    }

    /// Does something with the vault on a thread that may block.
    pub(super) async fn in_vault<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Vault, &AccountKey) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, LoginError> {
        let (vault, key) = (self.vault.clone(), self.key.clone());
        match tokio::task::spawn_blocking(move || work(&*vault, &key)).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(VaultError::Unusable { what: "the program is ending".to_owned(), fix: None }.into()),
        }
    }
}
