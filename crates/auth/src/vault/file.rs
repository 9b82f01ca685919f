//! Storage of logins in a private file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use wharf_spec::UntrustedText;
use wharf_store::{
    ContentStamp, Document, DocumentLoadError, DocumentPrivacy, DocumentReplaceError, DocumentSaveError,
    DocumentUpdateError, LockError, LockFile,
};

use super::file_content::{AccountEntry, ContentError, LoginFileContent};
use super::{AccountKey, StoredLogin, Vault, VaultError};

/// Maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of damaged files moved aside before an error is reported.
const MAX_DAMAGED_COPIES: u32 = 100;

/// Stores logins in a private file: mode 0600, replaced atomically, rejected if other users could access it.
pub struct FileVault {
    cabinet: LoginFile,
}

impl FileVault {
    /// Creates the vault. Does no I/O.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { cabinet: LoginFile::new(path.into()) }
    }

    fn account_entry(&self, key: &AccountKey) -> Result<Option<AccountEntry>, VaultError> {
        let account_entry = self.cabinet.account_entry(key)?;
        match account_entry {
            Some(account_entry) if account_entry.is_in_keyring() => Err(self.stored_elsewhere_error()),
            account_entry => Ok(account_entry),
        }
    }

    fn stored_elsewhere_error(&self) -> VaultError {
        let what = format!(
            "according to `{}` this login is stored in the keyring, which is not in use",
            self.cabinet.path.display()
        );
        let fix = "unlock the keyring, set `tokenStore` to `keyring`, or log in again to store the login in the file";
        VaultError::Elsewhere { what, fix: fix.to_owned() }
    }
}

impl Vault for FileVault {
    fn load(&self, key: &AccountKey) -> Result<Option<StoredLogin>, VaultError> {
        let Some(account_entry) = self.account_entry(key)? else { return Ok(None) };
        account_entry.current_login(key).map_err(|damage| damage.into_vault_error(&self.cabinet.path))
    }

    fn load_for_issuer(&self, key: &AccountKey, issuer: &str) -> Result<Option<StoredLogin>, VaultError> {
        let Some(account_entry) = self.account_entry(key)? else { return Ok(None) };
        account_entry.login_at(key, issuer).map_err(|damage| damage.into_vault_error(&self.cabinet.path))
    }

    fn load_all(&self, key: &AccountKey) -> Result<Vec<StoredLogin>, VaultError> {
        Ok(self.account_entry(key)?.map(|account_entry| account_entry.all_logins()).unwrap_or_default())
    }

    fn save(&self, key: &AccountKey, kept: &StoredLogin) -> Result<(), VaultError> {
        self.cabinet.edit(|shelves| {
            let mut account_entry = shelves.account_entry(key).ok().flatten().unwrap_or_default();
            let made_way = account_entry.set_current(kept);
            let put = shelves.insert(key, account_entry).map_err(|error| error.into_vault_error(&self.cabinet.path))?;
            Ok(if made_way || put { EditOutcome::OverDamage } else { EditOutcome::Cleanly })
        })
    }

    /// Removes only the index entry of a login stored in the keyring, which is not accessible from here.
    fn remove(&self, key: &AccountKey) -> Result<bool, VaultError> {
        let is_elsewhere = self
            .cabinet
            .account_entry(key)
            .is_ok_and(|account_entry| account_entry.is_some_and(|account_entry| account_entry.is_in_keyring()));
        let is_removed = self.cabinet.remove(key)?;
        if is_elsewhere {
            let server = UntrustedText::new(&*key.server);
            tracing::warn!(%server, "the login was removed from the file, but its tokens remain in the keyring");
        }
        Ok(is_removed)
    }

    fn keys(&self) -> Result<Vec<AccountKey>, VaultError> {
        self.cabinet.keys()
    }

    fn lock(&self, key: &AccountKey, max_wait: Duration) -> Result<Box<dyn Send>, VaultError> {
        self.cabinet.lock(key, max_wait)
    }

    fn location(&self) -> String {
        format!("the file `{}`", self.cabinet.path.display())
    }
}

/// The private file. Also the index of the keyring vault.
pub(super) struct LoginFile {
    pub(super) path: PathBuf,
    document: Document,
}

/// Outcome of an edit.
pub(super) enum EditOutcome {
    /// No change.
    Not,
    /// Changed without data loss.
    Cleanly,
    /// Replaced unreadable data. The old content must be moved aside.
    OverDamage,
}

impl LoginFile {
    pub(super) fn new(path: PathBuf) -> Self {
        let document = Document::new(&path, DocumentPrivacy::Private).with_limit(MAX_FILE_BYTES);
        Self { path, document }
    }

    pub(super) fn account_entry(&self, key: &AccountKey) -> Result<Option<AccountEntry>, VaultError> {
        let Some(shelves) = self.load()? else { return Ok(None) };
        shelves.account_entry(key).map_err(|damage| damage.into_vault_error(&self.path))
    }

    pub(super) fn keys(&self) -> Result<Vec<AccountKey>, VaultError> {
        Ok(self.load()?.map(|shelves| shelves.keys()).unwrap_or_default())
    }

    pub(super) fn remove(&self, key: &AccountKey) -> Result<bool, VaultError> {
        if self.load()?.is_none() {
            return Ok(false);
        }
        let mut is_removed = false;
        self.edit(|shelves| {
            is_removed = shelves.remove(key);
            Ok(if is_removed { EditOutcome::Cleanly } else { EditOutcome::Not })
        })?;
        Ok(is_removed)
    }

    /// Edits the file under its lock. Unreadable content is copied aside first.
    pub(super) fn edit(
        &self,
        mut edit: impl FnMut(&mut LoginFileContent) -> Result<EditOutcome, VaultError>,
    ) -> Result<(), VaultError> {
        let edited = self.document.update(|old| {
            let (mut shelves, is_damaged) = match old.map(LoginFileContent::parse) {
                None => (LoginFileContent::empty(), false),
                Some(Ok(shelves)) => (shelves, false),
                Some(Err(ContentError::Damaged(_))) => (LoginFileContent::empty(), true),
                Some(Err(ContentError::Newer)) => return Err(self.newer_version_error()),
            };
            match edit(&mut shelves)? {
                EditOutcome::Not => return Ok(None),
                EditOutcome::Cleanly if !is_damaged => {}
                EditOutcome::Cleanly | EditOutcome::OverDamage => self.copy_aside(old.unwrap_or_default())?,
            }
            Ok(Some(shelves.to_bytes()))
        });
        match edited {
            Ok(_) => Ok(()),
            Err(DocumentUpdateError::Edit(error)) => Err(error),
            Err(DocumentUpdateError::Save(error)) => Err(save_error(error)),
        }
    }

    pub(super) fn lock(&self, key: &AccountKey, max_wait: Duration) -> Result<Box<dyn Send>, VaultError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if !folder.is_dir() {
            self.edit(|_| Ok(EditOutcome::Not))?;
        }
        let lock = LockFile::acquire(&folder.join(self.lock_name(key)), max_wait).map_err(lock_error)?;
        Ok(Box::new(lock))
    }

    fn lock_name(&self, key: &AccountKey) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let digest = Sha256::digest(format!("{}\0{}", key.server, key.account));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{stem}.{name}.lock")
    }

    fn load(&self) -> Result<Option<LoginFileContent>, VaultError> {
        let Some(loaded) = self.document.load().map_err(load_error)? else { return Ok(None) };
        LoginFileContent::parse(&loaded.bytes).map(Some).map_err(|unreadable| match unreadable {
            ContentError::Damaged(what) => {
                let path = self.path.display();
                VaultError::Damaged { what: format!("`{path}` is damaged ({what}); log in again") }
            }
            ContentError::Newer => self.newer_version_error(),
        })
    }

    fn newer_version_error(&self) -> VaultError {
        let what = format!("`{}` was written by a later version of this program", self.path.display());
        VaultError::Unusable { what, fix: Some("use that version, or move the file aside".to_owned()) }
    }

    /// Copies the old content to a separate file before it is replaced.
    fn copy_aside(&self, bytes: &[u8]) -> Result<(), VaultError> {
        for number in 1..=MAX_DAMAGED_COPIES {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".damaged-{number}"));
            let aside = Document::new(self.path.with_file_name(name), DocumentPrivacy::Private);
            match aside.replace(ContentStamp::ABSENT, bytes) {
                Ok(_) => return Ok(()),
                // A repeated edit has already moved it aside.
                Err(DocumentReplaceError::Conflict { found, .. }) if found == ContentStamp::from_content(bytes) => {
                    return Ok(());
                }
                Err(DocumentReplaceError::Conflict { .. }) => {}
                Err(DocumentReplaceError::Save(error)) => return Err(save_error(error)),
            }
        }
        let what =
            format!("`{}` is damaged, and there are already {MAX_DAMAGED_COPIES} damaged copies", self.path.display());
        Err(VaultError::Unusable { what, fix: Some("check and remove the files named *.damaged-*".to_owned()) })
    }
}

fn load_error(error: DocumentLoadError) -> VaultError {
    let fix = if let DocumentLoadError::Unsafe(found) = &error { Some(found.fix()) } else { None };
    VaultError::Unusable { what: with_source(&error), fix }
}

fn save_error(error: DocumentSaveError) -> VaultError {
    match error {
        DocumentSaveError::Load(error) => load_error(error),
        DocumentSaveError::Locked(error) => lock_error(error),
        error => VaultError::Unusable { what: with_source(&error), fix: None },
    }
}

/// Locking failures are never ignored: two concurrent renewals would both lose the login.
fn lock_error(error: LockError) -> VaultError {
    match error {
        LockError::Held { .. } => VaultError::Locked(error.to_string()),
        LockError::Io { .. } => VaultError::Unusable { what: with_source(&error), fix: None },
    }
}

/// Formats an error with its source. The error enums here hold text.
fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
