//! Where logins are kept: opened when somebody needs it, so that a server without a login costs nothing.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wharf_auth::{
    AccountKey, FileVault, Kept, Keyring, KeyringError, KeyringVault, TokenStore, Vault, VaultError, open_vault,
};
use wharf_config::SecretError;
use wharf_spec::{Secret, Surroundings};

use crate::configured::Configuration;

/// The keyring in words for people.
const KEYRING: &str = "the system's keyring";

/// The place that `tokenStore` says. The keyring is tried out before anything is kept in it; reading needs no trial,
/// since the private file knows what is in the keyring.
pub struct LazyVault {
    path: PathBuf,
    configuration: Arc<Configuration>,
    reading: OnceLock<Arc<dyn Vault>>,
    opened: OnceLock<Result<Arc<dyn Vault>, VaultError>>,
}

/// Where one login is.
pub struct Place {
    /// In a word.
    pub word: &'static str,
    /// In words for people.
    pub told: String,
}

impl LazyVault {
    pub fn new(path: PathBuf, configuration: Arc<Configuration>) -> Self {
        Self { path, configuration, reading: OnceLock::new(), opened: OnceLock::new() }
    }

    /// Whether anything was ever kept. A link that leads nowhere counts: it is for the vault to refuse.
    pub fn is_there(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Opens it for good, trying the keyring out where one is to be used. Blocks.
    pub fn open(&self) -> Result<&Arc<dyn Vault>, VaultError> {
        let open = || open_vault(self.choice(), &self.path, self.keyring());
        self.opened.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// Why nothing could be kept where `tokenStore` says, as far as that is known without a trial.
    pub fn trouble(&self) -> Option<VaultError> {
        let is_missing = self.choice() == TokenStore::Keyring && self.keyring().is_none();
        is_missing.then(|| KeyringError("there is none".to_owned()).into())
    }

    /// Where an account's login is; nothing where there is none. Blocks.
    pub fn place_of(&self, key: &AccountKey) -> Option<Place> {
        let file = FileVault::new(&self.path);
        if !self.is_there() || !file.keys().ok()?.contains(key) {
            return None;
        }
        match file.load(key) {
            // The file can be read, and says that it is elsewhere.
            Err(VaultError::Elsewhere { .. }) => Some(Place { word: "keyring", told: KEYRING.to_owned() }),
            _ => Some(Place { word: "file", told: file.place() }),
        }
    }

    fn reading(&self) -> &Arc<dyn Vault> {
        if let Some(Ok(opened)) = self.opened.get() {
            return opened;
        }
        self.reading.get_or_init(|| match (self.choice(), self.keyring()) {
            (TokenStore::File, _) | (_, None) => Arc::new(FileVault::new(&self.path)),
            (_, Some(keyring)) => Arc::new(KeyringVault::new(keyring, &self.path)),
        })
    }

    /// What `tokenStore` says. A configuration that cannot be read says nothing.
    fn choice(&self) -> TokenStore {
        let config = self.configuration.config().ok();
        match config.and_then(|config| config.settings.token_store.as_deref()) {
            Some("file") => TokenStore::File,
            Some("keyring") => TokenStore::Keyring,
            _ => TokenStore::Auto,
        }
    }

    fn keyring(&self) -> Option<Arc<dyn Keyring>> {
        let around = self.configuration.around.clone();
        let keyring = wharf_config::Keyring::find(&around)?;
        Some(Arc::new(System { keyring, around }))
    }
}

impl Vault for LazyVault {
    fn load(&self, key: &AccountKey) -> Result<Option<Kept>, VaultError> {
        if self.is_there() { self.reading().load(key) } else { Ok(None) }
    }

    fn load_all(&self, key: &AccountKey) -> Result<Vec<Kept>, VaultError> {
        if self.is_there() { self.reading().load_all(key) } else { Ok(Vec::new()) }
    }

    fn load_at(&self, key: &AccountKey, issuer: &str) -> Result<Option<Kept>, VaultError> {
        if self.is_there() { self.reading().load_at(key, issuer) } else { Ok(None) }
    }

    fn save(&self, key: &AccountKey, kept: &Kept) -> Result<(), VaultError> {
        self.open()?.save(key, kept)
    }

    fn remove(&self, key: &AccountKey) -> Result<bool, VaultError> {
        if self.is_there() { self.open()?.remove(key) } else { Ok(false) }
    }

    fn keys(&self) -> Result<Vec<AccountKey>, VaultError> {
        if self.is_there() { self.reading().keys() } else { Ok(Vec::new()) }
    }

    fn lock(&self, key: &AccountKey, patience: Duration) -> Result<Box<dyn Send>, VaultError> {
        self.open()?.lock(key, patience)
    }

    fn place(&self) -> String {
        if self.trouble().is_some() { KEYRING.to_owned() } else { self.reading().place() }
    }
}

/// The system's keyring.
struct System {
    keyring: wharf_config::Keyring,
    around: Surroundings,
}

impl Keyring for System {
    fn lookup(&self, name: &str) -> Result<Option<Secret>, KeyringError> {
        self.keyring.find_value(&filed(name), &self.around).map_err(failed)
    }

    fn set(&self, name: &str, value: &Secret) -> Result<(), KeyringError> {
        self.keyring.set(&filed(name), value, &self.around).map_err(failed)
    }

    fn remove(&self, name: &str) -> Result<bool, KeyringError> {
        self.keyring.remove(&filed(name), &self.around).map_err(failed)
    }
}

/// A name in characters that mean nothing to any program.
fn filed(name: &str) -> String {
    let spell = |byte: u8| match byte {
        b'_' | b'.' | b':' | b'-' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(spell).collect()
}

fn failed(error: SecretError) -> KeyringError {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    KeyringError(format!("{error}{cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_keyring_are_plain_and_differ() {
        for (name, expected) in [
            ("mcp-auth:git:", "mcp-auth:git:"),
            ("mcp-auth:https://h/mcp:me", "mcp-auth:https:%2F%2Fh%2Fmcp:me"),
            ("a b\" -x\n%2F", "a%20b%22%20-x%0A%252F"),
            ("\u{fc}", "%C3%BC"),
        ] {
            assert_eq!(filed(name), expected);
        }
    }
}
