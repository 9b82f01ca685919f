//! Storage of logins in the system keyring. A private file serves as index and for locking. It contains no secrets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use wharf_spec::Secret;

use super::file::{EditOutcome, LoginFile};
use super::file_content::AccountEntry;
use super::{AccountKey, Keyring, KeyringError, StoredLogin, Vault, VaultError};

/// Maximum size of one account in bytes.
const MAX_ENTRY_BYTES: usize = 1 << 20;

/// Stores logins in the keyring. A private file serves as index and for locking.
///
/// A login that is still in the file is read from there, and moves to the keyring on its next save.
pub struct KeyringVault {
    keyring: Arc<dyn Keyring>,
    index: LoginFile,
}

impl KeyringVault {
    /// Creates the vault. Does no I/O.
    pub fn new(keyring: Arc<dyn Keyring>, path: impl Into<PathBuf>) -> Self {
        Self { keyring, index: LoginFile::new(path.into()) }
    }

    fn account_entry(&self, key: &AccountKey) -> Result<Option<AccountEntry>, VaultError> {
        match self.index.account_entry(key)? {
            Some(account_entry) if account_entry.is_in_keyring() => self.keyring_entry(key),
            account_entry => Ok(account_entry),
        }
    }

    /// Returns the keyring entry name: a digest, because entry names are visible to all users of the machine and a URL
    /// may contain secrets. The path of the index file is included, so that separate configurations do not collide.
    fn entry_name(&self, key: &AccountKey) -> String {
        let path = std::path::absolute(&self.index.path).unwrap_or_else(|_| self.index.path.clone());
        let mut digest = Sha256::new();
        for part in [path.as_os_str().as_encoded_bytes(), key.server.as_bytes(), key.account.as_bytes()] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let digits: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("mcp-auth:{digits}")
    }

    fn keyring_entry(&self, key: &AccountKey) -> Result<Option<AccountEntry>, VaultError> {
        let Some(value) = self.keyring.lookup(&self.entry_name(key))? else { return Ok(None) };
        let account_entry =
            Some(value.reveal()).filter(|text| text.len() <= MAX_ENTRY_BYTES).and_then(AccountEntry::from_text);
        account_entry.map(Some).ok_or_else(|| damaged_entry_error(key))
    }
}

impl Vault for KeyringVault {
    fn load(&self, key: &AccountKey) -> Result<Option<StoredLogin>, VaultError> {
        let Some(account_entry) = self.account_entry(key)? else { return Ok(None) };
        account_entry.current_login(key).map_err(|_| damaged_entry_error(key))
    }

    fn load_for_issuer(&self, key: &AccountKey, issuer: &str) -> Result<Option<StoredLogin>, VaultError> {
        let Some(account_entry) = self.account_entry(key)? else { return Ok(None) };
        account_entry.login_at(key, issuer).map_err(|_| damaged_entry_error(key))
    }

    fn load_all(&self, key: &AccountKey) -> Result<Vec<StoredLogin>, VaultError> {
        Ok(self.account_entry(key)?.map(|account_entry| account_entry.all_logins()).unwrap_or_default())
    }

    fn save(&self, key: &AccountKey, kept: &StoredLogin) -> Result<(), VaultError> {
        let mut account_entry = match self.account_entry(key) {
            Ok(account_entry) => account_entry.unwrap_or_default(),
            Err(VaultError::Damaged { .. }) => AccountEntry::default(),
            Err(error) => return Err(error),
        };
        account_entry.set_current(kept);
        let text = account_entry.to_text();
        if text.len() > MAX_ENTRY_BYTES {
            return Err(KeyringError(format!("the entry would exceed {MAX_ENTRY_BYTES} bytes")).into());
        }
        self.keyring.set(&self.entry_name(key), &Secret::new(text))?;
        self.index.edit(|shelves| match shelves.account_entry(key) {
            Ok(Some(account_entry)) if account_entry.is_in_keyring() => Ok(EditOutcome::Not),
            _ => {
                let made_way = shelves
                    .insert(key, AccountEntry::keyring_placeholder())
                    .map_err(|error| error.into_vault_error(&self.index.path))?;
                Ok(if made_way { EditOutcome::OverDamage } else { EditOutcome::Cleanly })
            }
        })
    }

    fn remove(&self, key: &AccountKey) -> Result<bool, VaultError> {
        let was_in_keyring = self.keyring.remove(&self.entry_name(key))?;
        Ok(self.index.remove(key)? || was_in_keyring)
    }

    fn keys(&self) -> Result<Vec<AccountKey>, VaultError> {
        self.index.keys()
    }

    fn lock(&self, key: &AccountKey, max_wait: Duration) -> Result<Box<dyn Send>, VaultError> {
        self.index.lock(key, max_wait)
    }

    fn location(&self) -> String {
        "the system's keyring".to_owned()
    }
}

/// Tests the keyring with a set, a lookup and a removal of a random entry.
pub(super) fn test_keyring(keyring: &dyn Keyring) -> Result<(), KeyringError> {
    let number = getrandom::u64().map_err(|error| KeyringError(error.to_string()))?;
    let (name, value) = (format!("mcp-auth-trial:{number:016x}"), Secret::new("trial"));
    keyring.set(&name, &value)?;
    let found = keyring.lookup(&name);
    let removed = keyring.remove(&name);
    match (found?, removed?) {
        (Some(found), true) if found == value => Ok(()),
        _ => Err(KeyringError("stored values cannot be read back".to_owned())),
    }
}

fn damaged_entry_error(key: &AccountKey) -> VaultError {
    let what = format!("the keyring entry for {} is damaged", key.display_name());
    VaultError::Damaged { what }
}
