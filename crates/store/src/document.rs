//! One file that is read and replaced whole.
//!
//! Whatever happens, and whenever, the file holds either what was there before or what replaced it.

mod error;
mod place;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::{LoadError, ReplaceError, SaveError, UpdateError};

use crate::digest::Digest;
use place::{Found, Place};

/// The most a document may weigh unless said otherwise.
const LIMIT: u64 = 16 << 20;
/// How long others are waited for unless said otherwise.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often an edit is begun anew because somebody who takes no lock has changed the file meanwhile.
const ATTEMPTS: usize = 8;

/// A file that is read and replaced whole. Nothing is opened before something is asked of it.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    privacy: Privacy,
    is_made_private: bool,
    limit: u64,
    patience: Duration,
}

/// Who else may see a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// Nobody: mode 0600, in a directory made with 0700. It is neither read nor written where others could have
    /// touched it, and a symbolic link in its place is not followed.
    Private,
    /// Whoever the user's umask lets. A symbolic link leads to the file that is read and replaced, unless that is
    /// somebody else's; an existing file keeps its owner and permissions. One that has other names (hard links) is
    /// read and not replaced, and so is one that the user has made read-only.
    Shared,
}

/// A document's content at one moment.
#[derive(Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The whole content.
    pub bytes: Vec<u8>,
    /// What the content is recognised by.
    pub stamp: Stamp,
}

/// What a document's content is recognised by: equal stamps, equal content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(Option<Digest>);

impl Document {
    /// Names a document. Of up to 16 MiB, until [`Document::with_limit`] says otherwise.
    pub fn at(path: impl Into<PathBuf>, privacy: Privacy) -> Self {
        Self { path: path.into(), privacy, is_made_private: false, limit: LIMIT, patience: PATIENCE }
    }

    /// Makes a shared document that is not there yet, and directories that it needs, for nobody but the owner.
    pub fn made_private(self) -> Self {
        Self { is_made_private: true, ..self }
    }

    /// Bounds what is read and written, in bytes.
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Bounds the wait for others who are writing; ten seconds otherwise.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the content, or nothing if there is no such file. Takes no lock: what is there is always whole.
    pub fn load(&self) -> Result<Option<Loaded>, LoadError> {
        let Some(place) = Place::find(&self.path, self.privacy)? else { return Ok(None) };
        let found = place.read(self.limit)?;
        Ok(found.map(|Found { bytes, .. }| Loaded { stamp: Stamp::of(&bytes), bytes }))
    }

    /// Replaces the content by what the edit makes of it; the edit gives nothing to leave it as it is.
    ///
    /// The edit sees what is there while everybody else is locked out, so that of concurrent updates none is lost. It
    /// is called again if somebody who takes no lock, an editor perhaps, has changed the file meanwhile. Content that
    /// stays the same is not written. The disk has the new content when this returns. An edit that updates the same
    /// document waits for itself in vain.
    pub fn update<E>(
        &self,
        mut edit: impl FnMut(Option<&[u8]>) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Stamp, UpdateError<E>> {
        let place = Place::make(&self.path, self.privacy, self.is_made_private)?;
        place.check_kind().map_err(SaveError::Load)?;
        let _lock = place.lock(self.patience).map_err(SaveError::Locked)?;
        for _ in 0..ATTEMPTS {
            let old = place.read(self.limit).map_err(SaveError::Load)?;
            let content = old.as_ref().map(|found| found.bytes.as_slice());
            let Some(new) = edit(content).map_err(UpdateError::Edit)? else { return Ok(Stamp::of_found(content)) };
            if content == Some(&new) || place.replace(old.as_ref(), &new, self.limit)? {
                return Ok(Stamp::of(&new));
            }
        }
        Err(SaveError::Disturbed { path: self.path.clone() }.into())
    }

    /// Replaces the content if it is still what the stamp says, for whoever has worked on a copy.
    pub fn replace(&self, stamp: Stamp, bytes: &[u8]) -> Result<Stamp, ReplaceError> {
        let updated = self.update(|old| match Stamp::of_found(old) {
            found if found == stamp => Ok(Some(bytes.to_vec())),
            found => Err(ReplaceError::Conflict { path: self.path.clone(), found }),
        });
        updated.map_err(|error| match error {
            UpdateError::Edit(conflict) => conflict,
            UpdateError::Save(error) => ReplaceError::Save(error),
        })
    }

    /// Replaces the content, whatever it was.
    pub fn write(&self, bytes: &[u8]) -> Result<Stamp, SaveError> {
        self.update(|_| Ok::<_, Infallible>(Some(bytes.to_vec()))).map_err(|error| match error {
            UpdateError::Edit(never) => match never {},
            UpdateError::Save(error) => error,
        })
    }
}

impl Stamp {
    /// The stamp of a document that does not exist.
    pub const ABSENT: Self = Self(None);

    /// The stamp of this content.
    pub fn of(content: &[u8]) -> Self {
        Self(Some(Digest::of(content)))
    }

    fn of_found(content: Option<&[u8]>) -> Self {
        content.map_or(Self::ABSENT, Self::of)
    }
}

/// Without the content, which may be a secret.
impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loaded({} bytes, {:?})", self.bytes.len(), self.stamp)
    }
}
