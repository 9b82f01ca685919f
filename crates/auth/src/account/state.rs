//! In-memory state of an account. Pure decisions: no clock, file or network access.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::credential_headers::has_usable_tokens;
use crate::challenge::AuthChallenge;
use crate::dpop::DpopKey;
use crate::error::LoginError;
use crate::scope;
use crate::token::TokenSet;
use crate::vault::StoredLogin;

/// Time before expiry at which tokens are renewed, in milliseconds. Short-lived tokens are renewed at half their
/// lifetime.
const RENEWAL_LEAD_MS: u64 = 30_000;
/// Number of new tokens in a row that the server may reject before no more are requested.
const MAX_REJECTED_TOKENS: u32 = 2;
/// Maximum number of consecutive nonce retries.
const MAX_NONCE_RETRIES: u32 = 3;
/// Maximum number of scope step-ups within the window.
const MAX_STEP_UPS: usize = 2;
const STEP_UP_WINDOW: Duration = Duration::from_secs(600);
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// In-memory state of an account.
#[derive(Default)]
pub(super) struct AccountState {
    knowledge: LoginCache,
    /// Number of the current credentials. Incremented on every change.
    serial: u64,
    /// Number of logouts. Results of operations started before a logout are discarded.
    pub(super) epoch: u64,
    /// The server has accepted the current credentials.
    is_proven: bool,
    strikes: u32,
    /// Serial of the last rejection counted.
    struck: Option<u64>,
    nonces: u32,
    pause: Option<RenewalBackoff>,
    step_ups: VecDeque<Instant>,
    /// Additional scopes that the server has demanded since the last login.
    wanted: Option<String>,
    /// The server's last challenge.
    pub(super) challenge: Option<AuthChallenge>,
}

#[derive(Default)]
enum LoginCache {
    #[default]
    Unread,
    Nothing,
    Held(Arc<ActiveLogin>),
}

/// A login in memory.
pub(super) struct ActiveLogin {
    pub(super) kept: StoredLogin,
    pub(super) serial: u64,
    /// Key that the tokens are bound to.
    pub(super) key: Option<Arc<DpopKey>>,
    source: LoginSource,
}

/// Source of a login in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LoginSource {
    /// Loaded from the vault, stored by this or another process.
    Vault,
    /// Just received from the authorization server, and stored.
    Issuer,
    /// Received from the authorization server but not stored. Holds the spent tokens that the vault still has.
    Unkept(Option<TokenSet>),
}

/// Backoff after a failed renewal.
struct RenewalBackoff {
    length: Duration,
    until: Instant,
    error: LoginError,
}

/// Credentials available to a request.
pub(super) enum CredentialState {
    Unread,
    Nothing,
    Live(Arc<ActiveLogin>),
    /// Expired or expiring soon, and renewable.
    Due(Arc<ActiveLogin>),
}

/// First step of a renewal under the lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RenewalStart {
    /// Another process has already renewed it.
    Adopt(StoredLogin),
    /// This login has to be renewed.
    Renew(StoredLogin),
    /// There is no login to renew.
    Nothing,
}

impl AccountState {
    pub(super) fn credential_state(&self, now: u64, is_unattended: bool) -> CredentialState {
        match &self.knowledge {
            LoginCache::Unread => CredentialState::Unread,
            LoginCache::Nothing => CredentialState::Nothing,
            LoginCache::Held(held) => match &held.kept.tokens {
                None => CredentialState::Nothing,
                Some(tokens) if expires_soon(&held.kept, now) && (is_unattended || tokens.refresh.is_some()) => {
                    CredentialState::Due(held.clone())
                }
                Some(_) if !has_usable_tokens(held) => CredentialState::Nothing,
                Some(_) => CredentialState::Live(held.clone()),
            },
        }
    }

    pub(super) fn active_login(&self) -> Option<Arc<ActiveLogin>> {
        if let LoginCache::Held(held) = &self.knowledge { Some(held.clone()) } else { None }
    }

    /// Returns the serial of the current credentials, if any.
    pub(super) fn current_serial(&self) -> Option<u64> {
        self.active_login().filter(|held| has_usable_tokens(held)).map(|held| held.serial)
    }

    pub(super) fn is_not_loaded(&self) -> bool {
        matches!(self.knowledge, LoginCache::Unread)
    }

    /// Reports whether a rejection is about outdated credentials.
    pub(super) fn is_stale(&self, serial: Option<u64>) -> bool {
        self.current_serial().is_some_and(|current| serial != Some(current))
    }

    pub(super) fn set_login(&mut self, kept: StoredLogin, source: LoginSource) {
        self.serial += 1;
        self.is_proven = false;
        let key = kept.dpop_key.as_ref().and_then(|key| DpopKey::load(key).ok()).map(Arc::new);
        self.knowledge = LoginCache::Held(Arc::new(ActiveLogin { kept, serial: self.serial, key, source }));
    }

    /// Records that no login is stored.
    pub(super) fn set_absent(&mut self) {
        self.knowledge = LoginCache::Nothing;
    }

    /// Clears the state for a logout. Returns the new epoch.
    pub(super) fn clear_for_logout(&mut self) -> u64 {
        self.epoch += 1;
        self.strikes = 0;
        self.pause = None;
        (self.wanted, self.challenge) = (None, None);
        self.set_absent();
        self.epoch
    }

    /// Records scopes that the next login has to include.
    pub(super) fn demand_scope(&mut self, more: Option<&str>) {
        self.wanted = scope::union(self.wanted.as_deref(), more);
    }

    /// Returns the previous scopes and those demanded since, or `None` if none were demanded.
    pub(super) fn scope_to_request(&self) -> Option<String> {
        let wanted = self.wanted.as_deref()?;
        scope::union(self.requested_scope().as_deref(), Some(wanted))
    }

    /// Returns the requested scope of the login, or the granted scope if that is unknown.
    pub(super) fn requested_scope(&self) -> Option<String> {
        let StoredLogin { asked, tokens, .. } = &self.active_login()?.kept;
        asked.clone().or_else(|| tokens.as_ref()?.scope.clone())
    }

    /// Removes demanded scopes that a login covers.
    pub(super) fn scope_granted(&mut self, asked: Option<&str>) {
        let is_covered = |word: &str| asked.is_some_and(|asked| asked.split_whitespace().any(|other| other == word));
        let wanted = self.wanted.take().unwrap_or_default();
        let left: Vec<_> = wanted.split_whitespace().filter(|word| !is_covered(word)).collect();
        self.wanted = (!left.is_empty()).then(|| left.join(" "));
        self.challenge = None;
    }

    /// Adopts a login that another process has stored, if it differs and the current login is still `over`. An expiring
    /// login is adopted only if it is renewable and the current one is not.
    pub(super) fn adopt(&mut self, over: Option<u64>, stored: Option<&StoredLogin>, now: u64) -> bool {
        let holds_renewable = self.active_login().is_some_and(|held| is_renewable(&held.kept));
        let is_of_use = |stored: &&StoredLogin| {
            stored.tokens.is_some() && (!expires_soon(stored, now) || (is_renewable(stored) && !holds_renewable))
        };
        let Some(stored) = stored.filter(is_of_use) else { return false };
        let is_news = match self.active_login() {
            held if held.as_ref().map(|held| held.serial) != over => false,
            Some(held) => held.kept.tokens != stored.tokens && !held.replaces_stored(stored),
            None => true,
        };
        if is_news {
            self.scope_granted(stored.asked.as_deref());
            self.set_login(stored.clone(), LoginSource::Vault);
            self.pause = None;
        }
        is_news
    }

    /// Records that the server accepted the credentials.
    pub(super) fn record_acceptance(&mut self) {
        (self.is_proven, self.strikes, self.nonces) = (true, 0, 0);
    }

    /// Counts a rejection of the current credentials, once per serial. Returns the number of new tokens rejected in a
    /// row.
    pub(super) fn record_rejection(&mut self) -> u32 {
        let is_fresh = |held: &Arc<ActiveLogin>| held.source != LoginSource::Vault && held.kept.tokens.is_some();
        let fresh = self.active_login().filter(is_fresh).map(|held| held.serial);
        if fresh.is_some() && fresh != self.struck && !self.is_proven {
            self.strikes += 1;
            self.struck = fresh;
        }
        self.strikes
    }

    /// Resets the failure counts after a login by the user.
    pub(super) fn clear_failures(&mut self) {
        (self.strikes, self.pause) = (0, None);
    }

    /// Switches to another nonce under a new serial. Returns `false` if there is no key or the nonce limit is reached.
    pub(super) fn retry_with_nonce(&mut self) -> bool {
        let LoginCache::Held(held) = &self.knowledge else { return false };
        if held.key.is_none() || self.nonces >= MAX_NONCE_RETRIES {
            return false;
        }
        self.nonces += 1;
        self.serial += 1;
        self.struck = self.struck.map(|struck| if struck == held.serial { self.serial } else { struck });
        let ActiveLogin { kept, key, source, .. } = &**held;
        let (kept, key, source) = (kept.clone(), key.clone(), source.clone());
        self.knowledge = LoginCache::Held(Arc::new(ActiveLogin { kept, serial: self.serial, key, source }));
        true
    }

    /// Counts a scope step-up. Returns the number of recent ones as an error if the limit is reached.
    pub(super) fn record_step_up(&mut self, now: Instant) -> Result<(), usize> {
        self.step_ups.retain(|asked| now.duration_since(*asked) < STEP_UP_WINDOW);
        if self.step_ups.len() >= MAX_STEP_UPS {
            return Err(self.step_ups.len());
        }
        self.step_ups.push_back(now);
        Ok(())
    }

    /// Returns the last error during the backoff.
    pub(super) fn backoff_error(&self, now: Instant) -> Option<LoginError> {
        self.pause.as_ref().filter(|pause| now < pause.until).map(|pause| pause.error.clone())
    }

    /// Starts the backoff after a failed renewal. Its length doubles each time.
    pub(super) fn start_backoff(&mut self, error: LoginError, now: Instant) {
        let doubled = self.pause.as_ref().map(|pause| (pause.length * 2).min(MAX_BACKOFF));
        let length = doubled.unwrap_or(MIN_BACKOFF);
        self.pause = Some(RenewalBackoff { length, until: now + length, error });
    }

    pub(super) fn clear_backoff(&mut self) {
        self.pause = None;
    }
}

impl ActiveLogin {
    /// Returns the first step of a renewal, given the content of the vault under the lock.
    pub(super) fn renewal_start(&self, stored: Option<StoredLogin>, now: u64) -> RenewalStart {
        match stored {
            Some(stored) if self.replaces_stored(&stored) => RenewalStart::Renew(self.kept.clone()),
            Some(stored) => match &stored.tokens {
                None => RenewalStart::Nothing,
                tokens if *tokens == self.kept.tokens => RenewalStart::Renew(stored),
                Some(_) if !expires_soon(&stored, now) => RenewalStart::Adopt(stored),
                Some(_) => RenewalStart::Renew(stored),
            },
            None if self.is_missing_in_vault() => RenewalStart::Renew(self.kept.clone()),
            None => RenewalStart::Nothing,
        }
    }

    /// Reports whether the vault is empty because this login could not be stored.
    pub(super) fn is_missing_in_vault(&self) -> bool {
        self.source == LoginSource::Unkept(None)
    }

    /// Reports whether the vault still holds the tokens that this unsaved login replaces.
    pub(super) fn replaces_stored(&self, stored: &StoredLogin) -> bool {
        matches!(&self.source, LoginSource::Unkept(spent) if *spent == stored.tokens)
    }
}

/// Reports whether tokens have expired or expire soon. Tokens without a known expiry are used until rejected (O17).
fn expires_soon(kept: &StoredLogin, now: u64) -> bool {
    let end = kept.tokens.as_ref().and_then(|tokens| tokens.expires_at);
    end.is_some_and(|end| {
        let ahead = (end.saturating_sub(kept.renewed_at) / 2).min(RENEWAL_LEAD_MS);
        now.saturating_add(ahead) >= end
    })
}

fn is_renewable(kept: &StoredLogin) -> bool {
    kept.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some())
}

/// Reports whether tokens have expired.
pub(super) fn has_expired(tokens: &TokenSet, now: u64) -> bool {
    tokens.expires_at.is_some_and(|end| now >= end)
}

/// Reports whether the server has rejected too many new tokens.
pub(super) fn rejects_every_token(strikes: u32) -> bool {
    strikes >= MAX_REJECTED_TOKENS
}
