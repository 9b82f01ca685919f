//! Storage of logins, opened on first use, so that a server without a login costs nothing.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wharf_auth::{
    AccountKey, FileVault, Keyring, KeyringError, KeyringVault, StoredLogin, Vault, VaultChoice, VaultError, open_vault,
};
use wharf_config::SecretError;
use wharf_spec::{Environment, Secret};

use crate::config_context::ConfigContext;

/// Display name of the keyring.
const KEYRING_LABEL: &str = "the system keyring";

/// The store selected by `tokenStore`. The keyring is tested before the first write. Reads need no test, since the
/// private file records which logins are in the keyring.
pub struct LazyVault {
    path: PathBuf,
    configuration: Arc<ConfigContext>,
    reading: OnceLock<Arc<dyn Vault>>,
    opened: OnceLock<Result<Arc<dyn Vault>, VaultError>>,
}

/// Storage location of one login.
pub struct LoginLocation {
    /// Machine-readable name.
    pub word: &'static str,
    /// Display name.
    pub label: String,
}

impl LazyVault {
    pub fn new(path: PathBuf, configuration: Arc<ConfigContext>) -> Self {
        Self { path, configuration, reading: OnceLock::new(), opened: OnceLock::new() }
    }

    /// Reports whether the private file exists. A dangling symlink is reported as existing: the vault rejects it.
    pub fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Opens the vault for writing, after a test of the keyring if one is used. Blocks.
    pub fn open(&self) -> Result<&Arc<dyn Vault>, VaultError> {
        let open = || open_vault(self.token_store(), &self.path, self.keyring());
        self.opened.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// Returns the reason why logins cannot be stored where `tokenStore` says, if that is known without testing the
    /// keyring.
    pub fn storage_error(&self) -> Option<VaultError> {
        let is_missing = self.token_store() == VaultChoice::Keyring && self.keyring().is_none();
        is_missing.then(|| KeyringError("no system keyring found".to_owned()).into())
    }

    /// Returns the storage location of an account's login, or `None` without a login. Blocks.
    pub fn location_of(&self, key: &AccountKey) -> Option<LoginLocation> {
        let file = FileVault::new(&self.path);
        if !self.exists() || !file.keys().ok()?.contains(key) {
            return None;
        }
        match file.load(key) {
            // The file is readable and refers to the keyring.
            Err(VaultError::Elsewhere { .. }) => {
                Some(LoginLocation { word: "keyring", label: KEYRING_LABEL.to_owned() })
            }
            _ => Some(LoginLocation { word: "file", label: file.location() }),
        }
    }

    fn read_vault(&self) -> &Arc<dyn Vault> {
        if let Some(Ok(opened)) = self.opened.get() {
            return opened;
        }
        self.reading.get_or_init(|| match (self.token_store(), self.keyring()) {
            (VaultChoice::File, _) | (_, None) => Arc::new(FileVault::new(&self.path)),
            (_, Some(keyring)) => Arc::new(KeyringVault::new(keyring, &self.path)),
        })
    }

    /// Returns the `tokenStore` setting. An unreadable configuration means `auto`.
    fn token_store(&self) -> VaultChoice {
        let config = self.configuration.config().ok();
        match config.and_then(|config| config.settings.token_store.as_deref()) {
            Some("file") => VaultChoice::File,
            Some("keyring") => VaultChoice::Keyring,
            _ => VaultChoice::Auto,
        }
    }

    fn keyring(&self) -> Option<Arc<dyn Keyring>> {
        let environment = self.configuration.environment.clone();
        let keyring = wharf_config::Keyring::detect(&environment)?;
        Some(Arc::new(SystemKeyring { keyring, environment }))
    }
}

impl Vault for LazyVault {
    fn load(&self, key: &AccountKey) -> Result<Option<StoredLogin>, VaultError> {
        if self.exists() { self.read_vault().load(key) } else { Ok(None) }
    }

    fn load_all(&self, key: &AccountKey) -> Result<Vec<StoredLogin>, VaultError> {
        if self.exists() { self.read_vault().load_all(key) } else { Ok(Vec::new()) }
    }

    fn load_for_issuer(&self, key: &AccountKey, issuer: &str) -> Result<Option<StoredLogin>, VaultError> {
        if self.exists() { self.read_vault().load_for_issuer(key, issuer) } else { Ok(None) }
    }

    fn save(&self, key: &AccountKey, login: &StoredLogin) -> Result<(), VaultError> {
        self.open()?.save(key, login)
    }

    fn remove(&self, key: &AccountKey) -> Result<bool, VaultError> {
        if self.exists() { self.open()?.remove(key) } else { Ok(false) }
    }

    fn keys(&self) -> Result<Vec<AccountKey>, VaultError> {
        if self.exists() { self.read_vault().keys() } else { Ok(Vec::new()) }
    }

    fn lock(&self, key: &AccountKey, max_wait: Duration) -> Result<Box<dyn Send>, VaultError> {
        self.open()?.lock(key, max_wait)
    }

    fn location(&self) -> String {
        if self.storage_error().is_some() { KEYRING_LABEL.to_owned() } else { self.read_vault().location() }
    }
}

/// The system keyring.
struct SystemKeyring {
    keyring: wharf_config::Keyring,
    environment: Environment,
}

impl Keyring for SystemKeyring {
    fn lookup(&self, name: &str) -> Result<Option<Secret>, KeyringError> {
        self.keyring.lookup_optional(&encode_keyring_name(name), &self.environment).map_err(keyring_error)
    }

    fn set(&self, name: &str, value: &Secret) -> Result<(), KeyringError> {
        self.keyring.set(&encode_keyring_name(name), value, &self.environment).map_err(keyring_error)
    }

    fn remove(&self, name: &str) -> Result<bool, KeyringError> {
        self.keyring.remove(&encode_keyring_name(name), &self.environment).map_err(keyring_error)
    }
}

/// Percent-encodes a name so that no character is special to any program.
fn encode_keyring_name(name: &str) -> String {
    let spell = |byte: u8| match byte {
        b'_' | b'.' | b':' | b'-' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(spell).collect()
}

fn keyring_error(error: SecretError) -> KeyringError {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    KeyringError(format!("{error}{cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyring_names_are_plain_and_distinct() {
        for (name, expected) in [
            ("mcp-auth:git:", "mcp-auth:git:"),
            ("mcp-auth:https://h/mcp:me", "mcp-auth:https:%2F%2Fh%2Fmcp:me"),
            ("a b\" -x\n%2F", "a%20b%22%20-x%0A%252F"),
            ("\u{fc}", "%C3%BC"),
        ] {
            assert_eq!(encode_keyring_name(name), expected);
        }
    }
}
