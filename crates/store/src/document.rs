//! A single file that is read and replaced as a whole.
//!
//! Replacement is atomic: after a crash at any point the file holds either the old or the new content.

mod error;
mod location;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::{DocumentLoadError, DocumentReplaceError, DocumentSaveError, DocumentUpdateError};

use crate::digest::ContentDigest;
use location::{DocumentLocation, FoundContent};

/// Default maximum size of a document, in bytes.
const DEFAULT_MAX_BYTES: u64 = 16 << 20;
/// Default timeout for taking the lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum attempts of one edit when a process that takes no lock keeps changing the file.
const MAX_EDIT_ATTEMPTS: usize = 8;

/// A file that is read and replaced as a whole. Creating the value does no I/O.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    privacy: DocumentPrivacy,
    is_made_private: bool,
    limit: u64,
    max_wait: Duration,
}

/// Access that other users have to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentPrivacy {
    /// Owner only: mode 0600, in a directory created with mode 0700. The document is neither read nor written if
    /// another user could have read or changed it. A symbolic link at its path is not followed.
    Private,
    /// As the umask allows. Symbolic links at the path are followed, but the file is not replaced if the owner of the
    /// link is neither root nor the owner of the file. An existing file keeps its owner and permissions. A file with
    /// several hard links is readable but not replaced, and so is a file that the user made read-only.
    Shared,
}

/// Content of a document at one point in time.
#[derive(Clone, PartialEq, Eq)]
pub struct LoadedDocument {
    /// The whole content.
    pub bytes: Vec<u8>,
    /// Identifies the content.
    pub stamp: ContentStamp,
}

/// Identifies a document's content by its hash: equal stamps mean equal content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentStamp(Option<ContentDigest>);

impl Document {
    /// Creates a document handle. The size limit is 16 MiB; see [`Document::with_limit`].
    pub fn new(path: impl Into<PathBuf>, privacy: DocumentPrivacy) -> Self {
        Self { path: path.into(), privacy, is_made_private: false, limit: DEFAULT_MAX_BYTES, max_wait: PATIENCE }
    }

    /// Creates a missing shared document, and its missing directories, with owner-only permissions.
    pub fn created_private(self) -> Self {
        Self { is_made_private: true, ..self }
    }

    /// Sets the maximum size for reads and writes, in bytes.
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Sets the timeout for taking the lock. The default is 10 s.
    pub fn with_lock_timeout(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// Returns the path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the content, or returns `None` if the file does not exist. Takes no lock: replacement is atomic.
    pub fn load(&self) -> Result<Option<LoadedDocument>, DocumentLoadError> {
        let Some(place) = DocumentLocation::resolve(&self.path, self.privacy)? else { return Ok(None) };
        let found = place.read(self.limit)?;
        Ok(found.map(|FoundContent { bytes, .. }| LoadedDocument { stamp: ContentStamp::from_content(&bytes), bytes }))
    }

    /// Replaces the content with the result of `edit`. If `edit` returns `None`, the content stays as it is.
    ///
    /// `edit` runs under the lock, so concurrent updates are not lost. It runs again if a process that takes no lock
    /// (an editor, for example) has changed the file in between. Unchanged content is not written. The new content is
    /// on disk when this returns.
    ///
    /// `edit` must not update the same document: it would wait for its own lock until the timeout.
    pub fn update<E>(
        &self,
        mut edit: impl FnMut(Option<&[u8]>) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<ContentStamp, DocumentUpdateError<E>> {
        let place = DocumentLocation::resolve_or_create(&self.path, self.privacy, self.is_made_private)?;
        place.check_kind().map_err(DocumentSaveError::Load)?;
        let _lock = place.lock(self.max_wait).map_err(DocumentSaveError::Locked)?;
        for _ in 0..MAX_EDIT_ATTEMPTS {
            let old = place.read(self.limit).map_err(DocumentSaveError::Load)?;
            let content = old.as_ref().map(|found| found.bytes.as_slice());
            let Some(new) = edit(content).map_err(DocumentUpdateError::Edit)? else {
                return Ok(ContentStamp::from_optional_content(content));
            };
            if content == Some(&new) || place.replace(old.as_ref(), &new, self.limit)? {
                return Ok(ContentStamp::from_content(&new));
            }
        }
        Err(DocumentSaveError::Disturbed { path: self.path.clone() }.into())
    }

    /// Replaces the content if it still matches `stamp`. For callers that edited a copy.
    pub fn replace(&self, stamp: ContentStamp, bytes: &[u8]) -> Result<ContentStamp, DocumentReplaceError> {
        let updated = self.update(|old| match ContentStamp::from_optional_content(old) {
            found if found == stamp => Ok(Some(bytes.to_vec())),
            found => Err(DocumentReplaceError::Conflict { path: self.path.clone(), found }),
        });
        updated.map_err(|error| match error {
            DocumentUpdateError::Edit(conflict) => conflict,
            DocumentUpdateError::Save(error) => DocumentReplaceError::Save(error),
        })
    }

    /// Removes the file if `is_removable` accepts its content. Returns whether it was removed. `is_removable` runs under
    /// the lock. A file behind a symbolic link stays.
    pub fn remove_if(&self, is_removable: impl FnOnce(&[u8]) -> bool) -> Result<bool, DocumentSaveError> {
        let failed = |source| DocumentSaveError::Io { path: self.path.clone(), source };
        if !self.path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok(false);
        }
        let place = DocumentLocation::resolve_or_create(&self.path, self.privacy, self.is_made_private)?;
        let _lock = place.lock(self.max_wait).map_err(DocumentSaveError::Locked)?;
        match place.read(self.limit)? {
            Some(found) if is_removable(&found.bytes) => place.remove().map_err(failed).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Replaces the content unconditionally.
    pub fn write(&self, bytes: &[u8]) -> Result<ContentStamp, DocumentSaveError> {
        self.update(|_| Ok::<_, Infallible>(Some(bytes.to_vec()))).map_err(|error| match error {
            DocumentUpdateError::Edit(never) => match never {},
            DocumentUpdateError::Save(error) => error,
        })
    }
}

impl ContentStamp {
    /// Stamp of a document that does not exist.
    pub const ABSENT: Self = Self(None);

    /// Computes the stamp of `content`.
    pub fn from_content(content: &[u8]) -> Self {
        Self(Some(ContentDigest::from_bytes(content)))
    }

    fn from_optional_content(content: Option<&[u8]>) -> Self {
        content.map_or(Self::ABSENT, Self::from_content)
    }
}

/// Omits the content, which may be secret.
impl fmt::Debug for LoadedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loaded({} bytes, {:?})", self.bytes.len(), self.stamp)
    }
}
