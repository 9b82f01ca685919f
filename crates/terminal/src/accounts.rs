//! Login accounts of servers: the account each HTTP server is accessed with, and the vault that stores its tokens.

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

pub use browser::{LoginPageMode, login_visitor, login_visitor_factory};
pub use vault::{LazyVault, LoginLocation};

use crate::config_context::ConfigContext;

/// Login accounts of one command. The vault is read only when a server is dialled and a login exists.
pub struct ServerAccounts {
    /// Value of `--account`.
    named: Option<String>,
    /// `None` if no user configuration path is known.
    vault: Option<Arc<LazyVault>>,
    configuration: Arc<ConfigContext>,
    /// Accounts opened so far. A token refresh may still be running when the command ends.
    opened: Mutex<Vec<Account>>,
}

impl ServerAccounts {
    pub fn new(configuration: Arc<ConfigContext>, named: Option<String>) -> Self {
        let vault = vault_path(&configuration).map(|path| Arc::new(LazyVault::new(path, configuration.clone())));
        Self { named, vault, configuration, opened: Mutex::default() }
    }

    /// Returns the account for a server, or `None` if the server's own headers or URL carry credentials.
    pub fn for_server(&self, name: &str, spec: &HttpSpec) -> Option<Account> {
        if has_own_credentials(spec) {
            return None;
        }
        self.open(self.key(name, spec), spec)
    }

    /// Opens the account for a key, regardless of `--account`. Returns `None` without a vault.
    pub fn open(&self, key: AccountKey, spec: &HttpSpec) -> Option<Account> {
        let mut net = NetOptions::default();
        net.proxy.clone_from(&spec.proxy);
        net.extra_ca.clone_from(&spec.extra_ca);
        net.client_certificate.clone_from(&spec.client_certificate);
        let takes_flat = self.is_user_configured(&key, spec);
        let mut options = AccountOptions::new(key, spec.url.clone(), self.vault.clone()?);
        options.settings = (*spec.login).clone();
        options.net = net;
        options.takes_flat = takes_flat;
        let account = Account::new(options);
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(account.clone());
        Some(account)
    }

    /// Waits, for a bounded time, until no account is refreshing its tokens.
    pub async fn finish(&self) {
        let opened = std::mem::take(&mut *self.opened.lock().unwrap_or_else(PoisonError::into_inner));
        let mut finishing: JoinSet<()> =
            opened.into_iter().map(|account| async move { account.finish().await }).collect();
        while finishing.join_next().await.is_some() {}
    }

    /// Reports whether the URL has an explicit login key or comes from the user's own files, as opposed to a project's.
    fn is_user_configured(&self, key: &AccountKey, spec: &HttpSpec) -> bool {
        let is_users = |layer: Layer| matches!(layer, Layer::Home | Layer::User);
        let entry = || self.configuration.config().ok().and_then(|config| config.server(&key.server));
        spec.login_key.is_some() || entry().is_some_and(|entry| is_users(entry.layer))
    }

    /// Returns the vault key for a server. `--account` overrides the account named in the entry.
    pub fn key(&self, name: &str, spec: &HttpSpec) -> AccountKey {
        AccountKey {
            server: spec.login_key.clone().unwrap_or_else(|| name.to_owned()),
            account: self.named.clone().or_else(|| spec.account.clone()).unwrap_or_default(),
        }
    }

    /// Returns the vault that stores logins.
    pub fn vault(&self) -> Option<&Arc<LazyVault>> {
        self.vault.as_ref()
    }
}

/// Reports whether the server entry carries its own credentials: an `Authorization` header, a
/// command that makes headers, or userinfo in the URL. No
/// login is sent to such a server.
pub fn has_own_credentials(spec: &HttpSpec) -> bool {
    let is_named = spec.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    is_named || spec.headers_source.is_some() || !spec.url.username().is_empty() || spec.url.password().is_some()
}

/// Path of the private token file, next to the user's configuration file.
fn vault_path(configuration: &ConfigContext) -> Option<PathBuf> {
    let user = &configuration.places.user;
    (!user.as_os_str().is_empty()).then(|| user.with_file_name("mcp-auth.json"))
}

/// Returns the current Unix time in milliseconds.
pub fn unix_millis_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
