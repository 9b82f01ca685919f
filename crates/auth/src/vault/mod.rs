//! Storage of logins: a private file or the system keyring.

mod file;
mod file_content;
mod in_memory;
mod keyring;
mod record;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;
use wharf_spec::{Secret, UntrustedText, mask_url_secrets};

pub use file::FileVault;
pub use in_memory::MemoryVault;
pub use keyring::KeyringVault;

use crate::client::OAuthClient;
use crate::token::TokenSet;

/// Key of an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountKey {
    /// Name of the server in the configuration, or its URL if it is not configured.
    pub server: String,
    /// Name of the account. Empty for the default account.
    pub account: String,
}

impl AccountKey {
    /// Returns the server for display. A URL is shown without secrets.
    pub(crate) fn display_name(&self) -> String {
        let address = Url::parse(&self.server).ok().filter(Url::has_host);
        let shown = address.map_or_else(|| self.server.clone(), |address| mask_url_secrets(&address));
        UntrustedText::new(shown).truncate(200).to_string()
    }
}

/// A stored login. An account has one per issuer, of which one is current.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredLogin {
    /// Issuer identifier. Empty if unknown (the flat form of older files).
    pub issuer: String,
    /// URL of the server. The tokens are sent to no other origin.
    pub url: String,
    /// Resource identifier for token requests.
    pub resource: Option<String>,
    /// The tokens. `None` if only the client is known, or if they were rejected.
    pub tokens: Option<TokenSet>,
    /// The client that the tokens were issued to.
    pub client: OAuthClient,
    /// URL at which the tokens are renewed.
    pub token_endpoint: String,
    /// URL at which the tokens are revoked.
    pub revocation_endpoint: Option<String>,
    /// Requested scope, which a step-up extends.
    pub asked: Option<String>,
    /// Private DPoP key that the tokens are bound to: PKCS #8 in Base64.
    pub dpop_key: Option<Secret>,
    /// Time of the login or last renewal, in Unix milliseconds.
    pub renewed_at: u64,
    /// Error of the last renewal, escaped.
    pub last_error: Option<String>,
}

/// A store of logins. All methods block.
pub trait Vault: Send + Sync {
    /// Returns the current login of an account.
    fn load(&self, key: &AccountKey) -> Result<Option<StoredLogin>, VaultError>;
    /// Returns the login of an account at one issuer, current or not. It may hold a client registered there earlier.
    fn load_for_issuer(&self, key: &AccountKey, issuer: &str) -> Result<Option<StoredLogin>, VaultError>;
    /// Returns all logins of an account, at every issuer.
    fn load_all(&self, key: &AccountKey) -> Result<Vec<StoredLogin>, VaultError> {
        Ok(self.load(key)?.into_iter().collect())
    }
    /// Stores a login and makes it the current one. It is durable when this returns, if the vault is persistent.
    fn save(&self, key: &AccountKey, kept: &StoredLogin) -> Result<(), VaultError>;
    /// Removes an account with all its logins. Returns whether it existed.
    fn remove(&self, key: &AccountKey) -> Result<bool, VaultError>;
    /// Returns the keys of all accounts.
    fn keys(&self) -> Result<Vec<AccountKey>, VaultError>;
    /// Excludes other renewals of an account, in this and other processes, until the guard is dropped.
    fn lock(&self, key: &AccountKey, max_wait: Duration) -> Result<Box<dyn Send>, VaultError>;
    /// Describes the storage location, for display.
    fn location(&self) -> String;
}

/// An error of reading or writing stored logins.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The stored data are not in the expected format. They were moved aside, or are left in place.
    #[error("{what}")]
    Damaged {
        /// Description of the damage and its location.
        what: String,
    },
    /// The storage cannot be read or written.
    #[error("{what}")]
    Unusable {
        /// The reason.
        what: String,
        /// The remedy, if known.
        fix: Option<String>,
    },
    /// The login is in another storage than the one in use.
    #[error("{what}")]
    Elsewhere {
        /// Description of the location.
        what: String,
        /// The remedy.
        fix: String,
    },
    /// Another process held the lock until the timeout.
    #[error("timeout while waiting for another process to renew this login: {0}")]
    Locked(String),
}

/// The system keyring, implemented by the embedding program. All methods block.
pub trait Keyring: Send + Sync {
    /// Looks up a value.
    fn lookup(&self, name: &str) -> Result<Option<Secret>, KeyringError>;
    /// Stores a value.
    fn set(&self, name: &str, value: &Secret) -> Result<(), KeyringError>;
    /// Removes a value. Returns whether it existed.
    fn remove(&self, name: &str) -> Result<bool, KeyringError>;
}

/// An error of the keyring.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the keyring cannot be used: {0}")]
pub struct KeyringError(pub String);

/// Configured storage of logins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VaultChoice {
    /// The keyring if it works, else the file.
    #[default]
    Auto,
    /// The file.
    File,
    /// The keyring only.
    Keyring,
}

/// Opens the configured storage. `path` is the private file. Blocks while it tests the keyring.
///
/// # Errors
/// Fails if the keyring was requested explicitly and is not usable. It never falls back to a file in that case.
pub fn open_vault(
    choice: VaultChoice,
    path: impl Into<PathBuf>,
    keyring: Option<Arc<dyn Keyring>>,
) -> Result<Arc<dyn Vault>, VaultError> {
    let path = path.into();
    match (choice, keyring) {
        (VaultChoice::Keyring, None) => Err(KeyringError("no keyring is available".to_owned()).into()),
        (VaultChoice::Keyring, Some(keyring)) => {
            keyring::test_keyring(&*keyring)?;
            Ok(Arc::new(KeyringVault::new(keyring, path)))
        }
        (VaultChoice::Auto, Some(keyring)) => match keyring::test_keyring(&*keyring) {
            Ok(()) => Ok(Arc::new(KeyringVault::new(keyring, path))),
            Err(error) => {
                tracing::info!(%error, "the keyring is not usable, logins are stored in a file");
                Ok(Arc::new(FileVault::new(path)))
            }
        },
        (VaultChoice::Auto, None) | (VaultChoice::File, _) => Ok(Arc::new(FileVault::new(path))),
    }
}

impl VaultError {
    /// Returns the remedy, if known.
    pub fn fix(&self) -> Option<&str> {
        match self {
            Self::Unusable { fix, .. } => fix.as_deref(),
            Self::Elsewhere { fix, .. } => Some(fix),
            Self::Damaged { .. } | Self::Locked(_) => None,
        }
    }
}

impl From<KeyringError> for VaultError {
    fn from(error: KeyringError) -> Self {
        let fix = "unlock the keyring, or set `tokenStore` to `file` to store logins in a private file";
        Self::Unusable { what: error.to_string(), fix: Some(fix.to_owned()) }
    }
}
