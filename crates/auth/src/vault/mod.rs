//! Where logins are kept: one file, or the system's keyring.

mod file;
mod keyring;
mod memory;
mod record;
mod shelves;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;
use wharf_spec::{Secret, Untrusted, shown_url};

pub use file::FileVault;
pub use keyring::KeyringVault;
pub use memory::MemoryVault;

use crate::client::Client;
use crate::token::Tokens;

/// Whose login.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountKey {
    /// The server, as it is called in the configuration, or its address where it is not in any.
    pub server: String,
    /// Which of several accounts there; empty for the usual one.
    pub account: String,
}

impl AccountKey {
    /// The server as it may be shown: an address without what is secret in it.
    pub(crate) fn shown(&self) -> String {
        let address = Url::parse(&self.server).ok().filter(Url::has_host);
        let shown = address.map_or_else(|| self.server.clone(), |address| shown_url(&address));
        Untrusted::new(shown).shortened(200).to_string()
    }
}

/// What is kept of one account: one login per issuer, of which one is current.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Who issued it, as it calls itself; empty where that is not known (the flat form of older files).
    pub issuer: String,
    /// The address of the server it was got for: it is shown to no other origin.
    pub url: String,
    /// What tokens are asked for.
    pub resource: Option<String>,
    /// The tokens; none where only the client is known, or they were refused.
    pub tokens: Option<Tokens>,
    /// The client they were issued to.
    pub client: Client,
    /// Where they are renewed.
    pub token_endpoint: String,
    /// Where they are given back.
    pub revocation_endpoint: Option<String>,
    /// What was asked for, which a step-up adds to.
    pub asked: Option<String>,
    /// The private key they are bound to: PKCS #8 in Base64.
    pub dpop_key: Option<Secret>,
    /// When it was last got or renewed, in Unix milliseconds.
    pub renewed_at: u64,
    /// Why it could not be renewed the last time; escaped.
    pub last_error: Option<String>,
}

/// Keeps logins. Everything here blocks.
pub trait Vault: Send + Sync {
    /// The current login of an account.
    fn load(&self, key: &AccountKey) -> Result<Option<Kept>, VaultError>;
    /// What is kept for an account at one issuer, current or not: a client registered there before.
    fn load_at(&self, key: &AccountKey, issuer: &str) -> Result<Option<Kept>, VaultError>;
    /// Everything that is kept for an account, at every issuer.
    fn load_all(&self, key: &AccountKey) -> Result<Vec<Kept>, VaultError> {
        Ok(self.load(key)?.into_iter().collect())
    }
    /// Keeps a login and makes it the current one. On disk when this returns.
    fn save(&self, key: &AccountKey, kept: &Kept) -> Result<(), VaultError>;
    /// Forgets an account, every issuer of it; says whether there was one.
    fn remove(&self, key: &AccountKey) -> Result<bool, VaultError>;
    /// Every account there is.
    fn keys(&self) -> Result<Vec<AccountKey>, VaultError>;
    /// Locks an account against everybody else's renewing, in this process and others, until the guard is dropped.
    fn lock(&self, key: &AccountKey, patience: Duration) -> Result<Box<dyn Send>, VaultError>;
    /// Where it is kept, in words for people.
    fn place(&self) -> String;
}

/// Why what is kept cannot be read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// What was found there is not what we write; it was put aside, or is left as it is.
    #[error("{what}")]
    Damaged {
        /// What is wrong, and where.
        what: String,
    },
    /// It cannot be read or written.
    #[error("{what}")]
    Unusable {
        /// Why.
        what: String,
        /// What to do about it.
        fix: Option<String>,
    },
    /// It is in another place than the one that is in use.
    #[error("{what}")]
    Elsewhere {
        /// Where.
        what: String,
        /// What to do about it.
        fix: String,
    },
    /// Somebody else is renewing and does not come to an end.
    #[error("another process is renewing this login and has not finished: {0}")]
    Locked(String),
}

/// The system's keyring, as whoever owns this program reaches it. Blocks.
pub trait Keyring: Send + Sync {
    /// Looks a value up.
    fn lookup(&self, name: &str) -> Result<Option<Secret>, KeyringError>;
    /// Keeps a value.
    fn set(&self, name: &str, value: &Secret) -> Result<(), KeyringError>;
    /// Forgets a value; says whether there was one.
    fn remove(&self, name: &str) -> Result<bool, KeyringError>;
}

/// Why a keyring did not do it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the keyring cannot be used: {0}")]
pub struct KeyringError(pub String);

/// Where logins are to be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TokenStore {
    /// In a keyring that works, and else in the file.
    #[default]
    Auto,
    /// In the file.
    File,
    /// In the keyring, or nowhere.
    Keyring,
}

/// Opens the place where logins are kept; `path` is the private file. Blocks while it tries the keyring out.
///
/// A keyring that was asked for and cannot be used is an error, never a reason to write secrets to a file.
pub fn open_vault(
    choice: TokenStore,
    path: impl Into<PathBuf>,
    keyring: Option<Arc<dyn Keyring>>,
) -> Result<Arc<dyn Vault>, VaultError> {
    let path = path.into();
    match (choice, keyring) {
        (TokenStore::Keyring, None) => Err(KeyringError("there is none".to_owned()).into()),
        (TokenStore::Keyring, Some(keyring)) => {
            keyring::try_out(&*keyring)?;
            Ok(Arc::new(KeyringVault::new(keyring, path)))
        }
        (TokenStore::Auto, Some(keyring)) => match keyring::try_out(&*keyring) {
            Ok(()) => Ok(Arc::new(KeyringVault::new(keyring, path))),
            Err(error) => {
                tracing::info!(%error, "logins are kept in a file");
                Ok(Arc::new(FileVault::new(path)))
            }
        },
        (TokenStore::Auto, None) | (TokenStore::File, _) => Ok(Arc::new(FileVault::new(path))),
    }
}

impl VaultError {
    /// What to do about it, where that is known.
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
        let fix = "unlock the keyring, or set `tokenStore` to `file` to keep logins in a private file";
        Self::Unusable { what: error.to_string(), fix: Some(fix.to_owned()) }
    }
}
