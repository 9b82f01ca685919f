//! One account at one server: supplies the credentials of requests, and reacts to rejections.

mod credential_headers;
mod flows;
mod inner;
mod login_logout;
mod rejection;
mod renewal;
mod single_flight;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::timeout;
use url::Url;
use wharf_net::{
    AuthFuture, AuthRejection, Authorizer, CredentialHeaders, HeaderMap, Method, NetOptions, NotAuthorized,
    RequestCredentials, StatusCode,
};

use self::credential_headers::{credential_headers, is_confidential};
use self::flows::{AuthorizationFlows, NetworkFlows};
use self::inner::AccountInner;
use self::login_logout::LoginParameters;
use self::rejection::to_not_authorized;
use self::renewal::needs_login;
use self::single_flight::{SingleFlight, TaskCounter};
use self::state::{AccountState, ActiveLogin, CredentialState, has_expired};
use crate::browser::LoginBrowser;
use crate::dpop::DpopNonces;
use crate::error::LoginError;
use crate::login::{LoginOutcome, LogoutOutcome};
use crate::scope;
use crate::settings::{AuthSettings, TokenGrant};
use crate::vault::{AccountKey, StoredLogin, Vault};

/// Timeout of [`Account::finish`] for running work.
const FINISH_TIMEOUT: Duration = Duration::from_secs(12);

/// Options of an account.
#[non_exhaustive]
pub struct AccountOptions {
    /// Key of the account in the vault.
    pub key: AccountKey,
    /// URL of the server.
    pub url: Url,
    /// Login settings.
    pub settings: AuthSettings,
    /// Storage of the login.
    pub vault: Arc<dyn Vault>,
    /// Network options of the server: proxy, certificates.
    pub net: NetOptions,
    /// Opens the login page when the server requires a login during a request. Without a visitor such a request fails,
    /// and the user has to log in with [`Account::log_in`].
    pub visitor: Option<Arc<dyn LoginBrowser>>,
    /// Allows a stored login in the flat form, which does not record its server's URL, for this server. Set this only
    /// if the configuration entry is the user's own, not a project's entry with the same name.
    pub takes_flat: bool,
    /// Returns the current time in Unix milliseconds.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// One account at one server. Cheap to clone. Clones share their state, including renewals.
#[derive(Clone)]
pub struct Account {
    inner: Arc<AccountInner>,
}

/// Status of an account, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountStatus {
    /// The stored login, if any.
    pub kept: Option<StoredLogin>,
    /// Description of the storage.
    pub place: String,
}

impl AccountOptions {
    /// Creates the default options: discovered endpoints, no visitor, and the system clock.
    pub fn new(key: AccountKey, url: Url, vault: Arc<dyn Vault>) -> Self {
        let (settings, net) = (AuthSettings::default(), NetOptions::default());
        Self { key, url, settings, vault, net, visitor: None, takes_flat: false, now: Arc::new(unix_millis) }
    }
}

impl Account {
    /// Creates an account. Does no I/O.
    pub fn new(options: AccountOptions) -> Self {
        let flows = NetworkFlows::new(&options);
        Self::with_flows(options, Arc::new(flows))
    }

    fn with_flows(options: AccountOptions, flows: Arc<dyn AuthorizationFlows>) -> Self {
        let inner = AccountInner {
            key: options.key,
            url: options.url,
            vault: options.vault,
            flows,
            visitor: options.visitor,
            is_unattended: options.settings.grant != TokenGrant::Person,
            takes_flat: options.takes_flat,
            now: options.now,
            memory: Mutex::new(AccountState::default()),
            nonces: DpopNonces::default(),
            renewals: SingleFlight::new(),
            repairs: SingleFlight::new(),
            step_ups: SingleFlight::new(),
            logins: SingleFlight::new(),
            keeping: TaskCounter::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Logs in from the start, regardless of the stored login, with all scopes that the server has demanded since the
    /// last login. Concurrent calls share one login.
    ///
    /// # Cancel safety
    /// When all waiting callers are dropped, the login is cancelled. Tokens received by then are stored.
    pub async fn log_in(&self, visitor: Arc<dyn LoginBrowser>) -> Result<LoginOutcome, LoginError> {
        let wanted = self.inner.state().scope_to_request();
        self.log_in_with(visitor, wanted).await
    }

    /// Like [`Account::log_in`], with additional scopes, separated by spaces.
    pub async fn log_in_for(&self, more: &str, visitor: Arc<dyn LoginBrowser>) -> Result<LoginOutcome, LoginError> {
        let before = self.inner.load().await.ok().flatten().and_then(|kept| kept.asked);
        self.log_in_with(visitor, scope::union(before.as_deref(), Some(more))).await
    }

    async fn log_in_with(
        &self,
        visitor: Arc<dyn LoginBrowser>,
        scope: Option<String>,
    ) -> Result<LoginOutcome, LoginError> {
        let challenge = self.inner.state().challenge.clone();
        let login =
            self.inner.log_in(LoginParameters { visitor: Some(visitor), challenge, before: None, scope }).await?;
        self.inner.state().clear_failures();
        Ok(login)
    }

    /// Checks that a login could be stored. Call this before asking the user to log in.
    pub async fn check_storage(&self) -> Result<(), LoginError> {
        self.inner.lock().await.map(drop)
    }

    /// Revokes the tokens if the issuer supports it, and deletes the stored login. Takes precedence over a running
    /// renewal.
    pub async fn log_out(&self) -> Result<LogoutOutcome, LoginError> {
        self.inner.log_out().await
    }

    /// Waits, up to a timeout, until no login is being renewed, stored or deleted. Call this before the program exits:
    /// a refresh token already sent is spent, and its replacement may not be stored yet.
    pub async fn finish(&self) {
        let settled = async {
            self.inner.renewals.wait_until_idle().await;
            self.inner.keeping.wait_until_idle().await;
        };
        if timeout(FINISH_TIMEOUT, settled).await.is_err() {
            tracing::warn!(server = %self.inner.key.server, "exiting while a token renewal is still running");
        }
    }

    /// Returns the stored login and its location.
    pub async fn status(&self) -> Result<AccountStatus, LoginError> {
        let kept = self.inner.with_vault(|vault, key| vault.load(key)).await?;
        Ok(AccountStatus { kept, place: self.inner.vault.location() })
    }
}

impl Authorizer for Account {
    /// Returns [`RequestCredentials::None`] for a URL of another origin or without a confidential transport.
    fn credentials(&self, method: &Method, url: &Url) -> RequestCredentials {
        if url.origin() != self.inner.url.origin() || !is_confidential(url) {
            return RequestCredentials::None;
        }
        match self.inner.credential_state() {
            CredentialState::Nothing => RequestCredentials::None,
            CredentialState::Live(held) => match self.inner.headers(&held, method, url) {
                Some(carried) => RequestCredentials::Ready(carried),
                None => RequestCredentials::None,
            },
            CredentialState::Unread | CredentialState::Due(_) => {
                let (inner, method, url) = (self.inner.clone(), method.clone(), url.clone());
                RequestCredentials::Later(Box::pin(async move { inner.prepare_headers(&method, &url).await }))
            }
        }
    }

    /// Stores the nonce for the next proof, and records that the server accepted the credentials unless it responded
    /// otherwise.
    fn on_response(&self, status: StatusCode, headers: &HeaderMap) {
        self.inner.nonces.store_from_headers(self.inner.url.as_str(), headers);
        if status != StatusCode::UNAUTHORIZED && !status.is_server_error() {
            self.inner.state().record_acceptance();
        }
    }

    /// Renews the tokens, logs in, or requests additional scopes.
    fn on_rejection(&self, refusal: AuthRejection) -> AuthFuture<Result<(), NotAuthorized>> {
        Box::pin(self.inner.clone().handle_rejection(refusal))
    }
}

impl AccountInner {
    fn credential_state(&self) -> CredentialState {
        self.state().credential_state((self.now)(), self.is_unattended)
    }

    fn headers(&self, held: &ActiveLogin, method: &Method, url: &Url) -> Option<CredentialHeaders> {
        let nonce = if held.key.is_some() { self.nonces.nonce_for(url.as_str()) } else { None };
        credential_headers(held, method, url, nonce.as_deref(), (self.now)())
    }

    /// Loads and renews the tokens as needed, then returns the headers.
    async fn prepare_headers(
        self: Arc<Self>,
        method: &Method,
        url: &Url,
    ) -> Result<Option<CredentialHeaders>, NotAuthorized> {
        if matches!(self.credential_state(), CredentialState::Unread) {
            self.load_initial().await;
        }
        if let CredentialState::Due(held) = self.credential_state() {
            self.renew_before_expiry(&held).await.map_err(to_not_authorized)?;
        }
        let held = self.state().active_login();
        Ok(held.and_then(|held| self.headers(&held, method, url)))
    }

    /// Renews tokens that expire soon. While the tokens are valid, a failure is ignored unless it requires a login. If
    /// a login is possible when the server demands one, such a failure is ignored as well.
    async fn renew_before_expiry(self: &Arc<Self>, held: &ActiveLogin) -> Result<(), LoginError> {
        let Some(tokens) = &held.kept.tokens else { return Ok(()) };
        let can_renew = tokens.refresh.is_some();
        let renewed = match tokens.refresh {
            Some(_) => self.renew(held.serial).await,
            None => {
                let entry =
                    LoginParameters { visitor: None, challenge: None, before: None, scope: held.kept.asked.clone() };
                self.log_in_unattended(entry).await
            }
        };
        match renewed {
            Err(error) if has_expired(tokens, (self.now)()) && !can_renew => Err(error),
            Err(error) if can_renew && needs_login(&error) && self.can_log_in() => Ok(()),
            Err(error) if can_renew && (error.needs_user() || has_expired(tokens, (self.now)())) => Err(error),
            Err(error) => {
                tracing::debug!(%error, "renewal failed, using the current token until it expires");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
