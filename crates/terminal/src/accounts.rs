//! The accounts a person has at servers: who this program is to a server that wants to know, and where that is kept.

mod browser;
mod vault;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use wharf_auth::{Account, AccountKey, AccountOptions};
use wharf_config::Layer;
use wharf_net::NetOptions;
use wharf_spec::HttpSpec;

pub use browser::{Showing, visitor, visitors};
pub use vault::{LazyVault, Place};

use crate::configured::Configuration;

/// The accounts of a command. Nothing is read before a server is dialled, and then only where there is a login at all.
pub struct Accounts {
    /// What `--account` says.
    named: Option<String>,
    /// None where there is no place to keep anything.
    vault: Option<Arc<LazyVault>>,
    configuration: Arc<Configuration>,
    /// Those that were handed out, which may be renewing when the command ends.
    handed: Mutex<Vec<Account>>,
}

impl Accounts {
    pub fn new(configuration: Arc<Configuration>, named: Option<String>) -> Self {
        let vault = file(&configuration).map(|path| Arc::new(LazyVault::new(path, configuration.clone())));
        Self { named, vault, configuration, handed: Mutex::default() }
    }

    /// The account at a server. None where its own headers or its address say who asks.
    pub fn of(&self, name: &str, spec: &HttpSpec) -> Option<Account> {
        if has_own(spec) {
            return None;
        }
        self.open(self.key(name, spec), spec)
    }

    /// The account of this key, whatever `--account` says.
    pub fn open(&self, key: AccountKey, spec: &HttpSpec) -> Option<Account> {
        let mut net = NetOptions::default();
        net.proxy.clone_from(&spec.proxy);
        net.extra_ca.clone_from(&spec.extra_ca);
        net.client_certificate.clone_from(&spec.client_certificate);
        let takes_flat = self.is_own(&key, spec);
        let mut options = AccountOptions::new(key, spec.url.clone(), self.vault.clone()?);
        options.settings = (*spec.login).clone();
        options.net = net;
        options.takes_flat = takes_flat;
        let account = Account::new(options);
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).push(account.clone());
        Some(account)
    }

    /// Waits until no account is being renewed, but not for long.
    pub async fn finish(&self) {
        let handed = std::mem::take(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner));
        let mut finishing: JoinSet<()> =
            handed.into_iter().map(|account| async move { account.finish().await }).collect();
        while finishing.join_next().await.is_some() {}
    }

    /// Whether somebody named the address, or it is in the user's own files: what is in a project's is not.
    fn is_own(&self, key: &AccountKey, spec: &HttpSpec) -> bool {
        let is_users = |layer: Layer| matches!(layer, Layer::Home | Layer::User);
        let entry = || self.configuration.config().ok().and_then(|config| config.server(&key.server));
        spec.login_key.is_some() || entry().is_some_and(|entry| is_users(entry.layer))
    }

    /// Whose login it is: `--account` goes before what the entry says.
    pub fn key(&self, name: &str, spec: &HttpSpec) -> AccountKey {
        AccountKey {
            server: spec.login_key.clone().unwrap_or_else(|| name.to_owned()),
            account: self.named.clone().or_else(|| spec.account.clone()).unwrap_or_default(),
        }
    }

    /// Where logins are kept.
    pub fn vault(&self) -> Option<&Arc<LazyVault>> {
        self.vault.as_ref()
    }
}

/// Whether a server is told who asks by its own entry, so that no login is shown to it.
pub fn has_own(spec: &HttpSpec) -> bool {
    let is_named = spec.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    is_named || !spec.url.username().is_empty() || spec.url.password().is_some()
}

/// The private file: beside the user's own configuration.
fn file(configuration: &Configuration) -> Option<PathBuf> {
    let user = &configuration.places.user;
    (!user.as_os_str().is_empty()).then(|| user.with_file_name("mcp-auth.json"))
}

/// Unix milliseconds, now.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
