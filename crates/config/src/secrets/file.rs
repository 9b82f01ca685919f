//! The private file of secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wharf_spec::Secret;
use wharf_store::{Document, DocumentPrivacy, DocumentUpdateError};

use super::SecretError;

/// Schema version of the file.
const SCHEMA: u64 = 1;

/// A file of secrets that only the user can read. It also lists the names of the secrets in the keyring, because the
/// keyring cannot list names without revealing the values.
#[derive(Debug, Clone)]
pub(super) struct SecretFile {
    document: Document,
}

#[derive(Default, Serialize, Deserialize)]
struct SecretDocument {
    schema: u64,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    in_keyring: BTreeSet<String>,
}

impl SecretFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { document: Document::new(path, DocumentPrivacy::Private) }
    }

    pub(super) fn path(&self) -> &Path {
        self.document.path()
    }

    pub(super) fn lookup(&self, name: &str) -> Result<Option<Secret>, SecretError> {
        Ok(self.load()?.secrets.remove(name).map(Secret::new))
    }

    /// Reports whether a secret of this name was ever stored in the keyring.
    pub(super) fn is_in_keyring(&self, name: &str) -> Result<bool, SecretError> {
        Ok(self.load()?.in_keyring.contains(name))
    }

    pub(super) fn names(&self) -> Result<Vec<String>, SecretError> {
        let form = self.load()?;
        let names: BTreeSet<String> = form.secrets.into_keys().chain(form.in_keyring).collect();
        Ok(names.into_iter().collect())
    }

    pub(super) fn set(&self, name: &str, value: &Secret) -> Result<(), SecretError> {
        self.update(|form| {
            // The name stays listed: the keyring may still have an older value.
            form.secrets.insert(name.to_owned(), value.reveal().to_owned());
        })
    }

    /// Records that a secret is in the keyring, and removes it from the file.
    pub(super) fn record_in_keyring(&self, name: &str) -> Result<(), SecretError> {
        self.update(|form| {
            form.secrets.remove(name);
            form.in_keyring.insert(name.to_owned());
        })
    }

    pub(super) fn remove(&self, name: &str) -> Result<bool, SecretError> {
        let mut was_there = false;
        self.update(|form| was_there = form.secrets.remove(name).is_some() | form.in_keyring.remove(name))?;
        Ok(was_there)
    }

    fn load(&self) -> Result<SecretDocument, SecretError> {
        let loaded = self.document.load()?;
        self.parse(loaded.as_ref().map(|loaded| loaded.bytes.as_slice()))
    }

    fn update(&self, mut change: impl FnMut(&mut SecretDocument)) -> Result<(), SecretError> {
        let updated = self.document.update(|old| {
            let mut form = self.parse(old)?;
            change(&mut form);
            if old.is_none() && form.secrets.is_empty() && form.in_keyring.is_empty() {
                return Ok(None);
            }
            let mut bytes = serde_json::to_vec_pretty(&form).map_err(|_| self.damaged_error())?;
            bytes.push(b'\n');
            Ok(Some(bytes))
        });
        match updated {
            Ok(_) => Ok(()),
            Err(DocumentUpdateError::Edit(error)) => Err(error),
            Err(DocumentUpdateError::Save(error)) => Err(SecretError::Save(error)),
        }
    }

    /// Parses the file. Parser errors are discarded, since they may quote its content.
    fn parse(&self, bytes: Option<&[u8]>) -> Result<SecretDocument, SecretError> {
        /// The member that all schema versions share.
        #[derive(Deserialize)]
        struct SecretSchemaHeader {
            schema: u64,
        }
        let Some(bytes) = bytes else { return Ok(SecretDocument { schema: SCHEMA, ..SecretDocument::default() }) };
        let SecretSchemaHeader { schema: found } = serde_json::from_slice(bytes).map_err(|_| self.damaged_error())?;
        if found != SCHEMA {
            return Err(SecretError::Newer { path: self.path().to_owned(), found });
        }
        serde_json::from_slice(bytes).map_err(|_| self.damaged_error())
    }

    fn damaged_error(&self) -> SecretError {
        SecretError::Damaged { path: self.path().to_owned() }
    }
}
