//! One account at one server: what a request carries, and what is done when the server is not content with it.

mod carrying;
mod entry;
mod flight;
mod flows;
mod inner;
mod memory;
mod refusal;
mod renewal;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::timeout;
use url::Url;
use wharf_net::{
    Authorizer, Carried, Credentials, HeaderMap, Method, NetOptions, NotAuthorized, Pending, Refusal, StatusCode,
};

use self::carrying::{carried, is_confidential};
use self::entry::Entry;
use self::flight::{Flights, Work};
use self::flows::{Flows, Online};
use self::inner::Inner;
use self::memory::{Held, Look, Memory, has_ended};
use self::refusal::not_authorized;
use self::renewal::wants_login;
use crate::dpop::Nonces;
use crate::error::LoginError;
use crate::login::{Login, Logout};
use crate::scope;
use crate::settings::{AuthSettings, Grant};
use crate::vault::{AccountKey, Kept, Vault};
use crate::visitor::Visitor;

/// How long the end of a program waits for what is under way.
const FINISH: Duration = Duration::from_secs(12);

/// What an account is made of.
#[non_exhaustive]
pub struct AccountOptions {
    /// Whose it is.
    pub key: AccountKey,
    /// Where the server is.
    pub url: Url,
    /// How to log in.
    pub settings: AuthSettings,
    /// Where it is kept.
    pub vault: Arc<dyn Vault>,
    /// The way out, as the server has it: proxy, certificates.
    pub net: NetOptions,
    /// Takes a person to the login page when the server asks for one in the middle of things; without it, that is an
    /// error, and [`Account::log_in`] is how it is mended.
    pub visitor: Option<Arc<dyn Visitor>>,
    /// Whether a login of the flat form, which does not say which address it is for, may be shown to this server: only
    /// where its entry is the user's own, and no project's that happens to have the same name.
    pub takes_flat: bool,
    /// Unix milliseconds, now.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// One account at one server. Cheap to clone; whoever shares it shares its renewals.
#[derive(Clone)]
pub struct Account {
    inner: Arc<Inner>,
}

/// Where an account stands, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// What is kept, if anything.
    pub kept: Option<Kept>,
    /// Where.
    pub place: String,
}

impl AccountOptions {
    /// The usual: everything is discovered, nobody is taken anywhere unasked, and the clock is the system's.
    pub fn new(key: AccountKey, url: Url, vault: Arc<dyn Vault>) -> Self {
        let (settings, net) = (AuthSettings::default(), NetOptions::default());
        Self { key, url, settings, vault, net, visitor: None, takes_flat: false, now: Arc::new(system_time) }
    }
}

impl Account {
    /// Makes an account. Reads and dials nothing.
    pub fn new(options: AccountOptions) -> Self {
        let flows = Online::new(&options);
        Self::with(options, Arc::new(flows))
    }

    fn with(options: AccountOptions, flows: Arc<dyn Flows>) -> Self {
        let inner = Inner {
            key: options.key,
            url: options.url,
            vault: options.vault,
            flows,
            visitor: options.visitor,
            is_unattended: options.settings.grant != Grant::Person,
            takes_flat: options.takes_flat,
            now: options.now,
            memory: Mutex::new(Memory::default()),
            nonces: Nonces::default(),
            renewals: Flights::new(),
            repairs: Flights::new(),
            step_ups: Flights::new(),
            logins: Flights::new(),
            keeping: Work::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Logs in from the beginning, whatever is kept, and for whatever the server missed the last time. Of several at once,
    /// all but the first wait for that one.
    ///
    /// Dropped by all who wait, the login is given up; what was got by then is kept.
    pub async fn log_in(&self, visitor: Arc<dyn Visitor>) -> Result<Login, LoginError> {
        let wanted = self.inner.memory().wanted();
        self.enter(visitor, wanted).await
    }

    /// The same, for more than was asked for before: these scopes besides, words separated by blanks.
    pub async fn log_in_for(&self, more: &str, visitor: Arc<dyn Visitor>) -> Result<Login, LoginError> {
        let before = self.inner.load().await.ok().flatten().and_then(|kept| kept.asked);
        self.enter(visitor, scope::union(before.as_deref(), Some(more))).await
    }

    async fn enter(&self, visitor: Arc<dyn Visitor>, scope: Option<String>) -> Result<Login, LoginError> {
        let challenge = self.inner.memory().challenge.clone();
        let login = self.inner.log_in(Entry { visitor: Some(visitor), challenge, before: None, scope }).await?;
        self.inner.memory().forgive();
        Ok(login)
    }

    /// Whether a login could be kept: to be asked before a person is.
    pub async fn can_keep(&self) -> Result<(), LoginError> {
        self.inner.lock().await.map(drop)
    }

    /// Gives the tokens back where the issuer takes them, and forgets everything. Wins over a renewal under way.
    pub async fn log_out(&self) -> Result<Logout, LoginError> {
        self.inner.log_out().await
    }

    /// Waits until nothing is being renewed, kept or forgotten any more, but not for long. To be called before the program
    /// ends: a refresh token that was shown to the authorization server is spent, and what it gave for it is not yet kept.
    pub async fn finish(&self) {
        let settled = async {
            self.inner.renewals.settled().await;
            self.inner.keeping.settled().await;
        };
        if timeout(FINISH, settled).await.is_err() {
            tracing::warn!(server = %self.inner.key.server, "a login was still being renewed at the end");
        }
    }

    /// What is kept, and where.
    pub async fn standing(&self) -> Result<Standing, LoginError> {
        let kept = self.inner.in_vault(|vault, key| vault.load(key)).await?;
        Ok(Standing { kept, place: self.inner.vault.place() })
    }
}

impl Authorizer for Account {
    /// Nothing where the address is not of the server's own origin.
    fn credentials(&self, method: &Method, url: &Url) -> Credentials {
        if url.origin() != self.inner.url.origin() || !is_confidential(url) {
            return Credentials::None;
        }
        match self.inner.look() {
            Look::Nothing => Credentials::None,
            Look::Live(held) => match self.inner.carried(&held, method, url) {
                Some(carried) => Credentials::Ready(carried),
                None => Credentials::None,
            },
            Look::Unread | Look::Due(_) => {
                let (inner, method, url) = (self.inner.clone(), method.clone(), url.clone());
                Credentials::Later(Box::pin(async move { inner.made_ready(&method, &url).await }))
            }
        }
    }

    /// Notes a nonce for the next proof, and that the server was content where it does not say otherwise.
    fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        self.inner.nonces.note(self.inner.url.as_str(), headers);
        if status != StatusCode::UNAUTHORIZED && !status.is_server_error() {
            self.inner.memory().prove();
        }
    }

    /// Renews, logs in or asks for more.
    fn refused(&self, refusal: Refusal) -> Pending<Result<(), NotAuthorized>> {
        Box::pin(self.inner.clone().refused(refusal))
    }
}

impl Inner {
    fn look(&self) -> Look {
        self.memory().look((self.now)(), self.is_unattended)
    }

    fn carried(&self, held: &Held, method: &Method, url: &Url) -> Option<Carried> {
        let nonce = if held.key.is_some() { self.nonces.of(url.as_str()) } else { None };
        carried(held, method, url, nonce.as_deref(), (self.now)())
    }

    /// Reads and renews as needed, then says what is carried.
    async fn made_ready(self: Arc<Self>, method: &Method, url: &Url) -> Result<Option<Carried>, NotAuthorized> {
        if matches!(self.look(), Look::Unread) {
            self.read().await;
        }
        if let Look::Due(held) = self.look() {
            self.renew_ahead(&held).await.map_err(not_authorized)?;
        }
        let held = self.memory().held();
        Ok(held.and_then(|held| self.carried(&held, method, url)))
    }

    /// Renews what ends soon. As long as it has not ended, failing to is no trouble; and where somebody can log in when
    /// the server asks for it, being refused for good is none either.
    async fn renew_ahead(self: &Arc<Self>, held: &Held) -> Result<(), LoginError> {
        let Some(tokens) = &held.kept.tokens else { return Ok(()) };
        let can_renew = tokens.refresh.is_some();
        let renewed = match tokens.refresh {
            Some(_) => self.renew(held.serial).await,
            None => {
                let entry = Entry { visitor: None, challenge: None, before: None, scope: held.kept.asked.clone() };
                self.get_alone(entry).await
            }
        };
        match renewed {
            Err(error) if has_ended(tokens, (self.now)()) && !can_renew => Err(error),
            Err(error) if can_renew && wants_login(&error) && self.can_log_in() => Ok(()),
            Err(error) if can_renew && (error.needs_person() || has_ended(tokens, (self.now)())) => Err(error),
            Err(error) => {
                tracing::debug!(%error, "tokens that end soon are used for now");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

fn system_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
