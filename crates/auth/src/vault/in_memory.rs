//! Storage of logins in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{AccountKey, StoredLogin, Vault, VaultError};

/// Stores logins in memory: for short-lived programs and for tests.
#[derive(Default)]
pub struct MemoryVault(Arc<SharedLogins>);

#[derive(Default)]
struct SharedLogins {
    shelves: Mutex<LoginTable>,
    unlocked: Condvar,
}

#[derive(Default)]
struct LoginTable {
    /// Logins by account, the newest last.
    kept: BTreeMap<AccountKey, Vec<StoredLogin>>,
    locked: BTreeSet<AccountKey>,
}

impl SharedLogins {
    fn table(&self) -> MutexGuard<'_, LoginTable> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vault for MemoryVault {
    fn load(&self, key: &AccountKey) -> Result<Option<StoredLogin>, VaultError> {
        Ok(self.0.table().kept.get(key).and_then(|logins| logins.last().cloned()))
    }

    fn load_for_issuer(&self, key: &AccountKey, issuer: &str) -> Result<Option<StoredLogin>, VaultError> {
        let shelves = self.0.table();
        let mut logins = shelves.kept.get(key).into_iter().flatten();
        Ok(logins.find(|kept| kept.issuer == issuer).cloned())
    }

    fn load_all(&self, key: &AccountKey) -> Result<Vec<StoredLogin>, VaultError> {
        Ok(self.0.table().kept.get(key).cloned().unwrap_or_default())
    }

    fn save(&self, key: &AccountKey, kept: &StoredLogin) -> Result<(), VaultError> {
        let mut shelves = self.0.table();
        let logins = shelves.kept.entry(key.clone()).or_default();
        logins.retain(|other| other.issuer != kept.issuer);
        logins.push(kept.clone());
        Ok(())
    }

    fn remove(&self, key: &AccountKey) -> Result<bool, VaultError> {
        Ok(self.0.table().kept.remove(key).is_some())
    }

    fn keys(&self) -> Result<Vec<AccountKey>, VaultError> {
        Ok(self.0.table().kept.keys().cloned().collect())
    }

    fn lock(&self, key: &AccountKey, max_wait: Duration) -> Result<Box<dyn Send>, VaultError> {
        let is_locked = |shelves: &mut LoginTable| shelves.locked.contains(key);
        let waited = self.0.unlocked.wait_timeout_while(self.0.table(), max_wait, is_locked);
        let (mut shelves, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(VaultError::Locked("locked by this process".to_owned()));
        }
        shelves.locked.insert(key.clone());
        Ok(Box::new(AccountLockGuard { room: self.0.clone(), key: key.clone() }))
    }

    fn location(&self) -> String {
        "the memory of this program".to_owned()
    }
}

struct AccountLockGuard {
    room: Arc<SharedLogins>,
    key: AccountKey,
}

impl Drop for AccountLockGuard {
    fn drop(&mut self) {
        self.room.table().locked.remove(&self.key);
        self.room.unlocked.notify_all();
    }
}
