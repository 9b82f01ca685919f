//! Errors of reading and writing a document.

use std::io;
use std::path::PathBuf;

use super::ContentStamp;
use crate::lock::LockError;
use crate::path_safety::{PathCheckError, UnsafePath};

/// An error of reading a document.
#[derive(Debug, thiserror::Error)]
pub enum DocumentLoadError {
    /// Another user could have read or changed the file. [`UnsafePath::fix`] returns the remedy.
    #[error(transparent)]
    Unsafe(#[from] UnsafePath),
    /// The file exceeds the size limit.
    #[error("`{}` exceeds {limit} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The path is a directory, a pipe or a device.
    #[error("`{}` is not a regular file", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// An I/O error.
    #[error("cannot read `{}`", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// An error of writing a document. The old content is still in place, except where [`DocumentSaveError::Io`] says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum DocumentSaveError {
    /// The file cannot be read, or is unsafe.
    #[error(transparent)]
    Load(#[from] DocumentLoadError),
    /// Another writer held the lock until the timeout.
    #[error(transparent)]
    Locked(LockError),
    /// A process that takes no lock changed the file during every attempt.
    #[error("`{}` was changed by another program during every attempt to edit it", .path.display())]
    Disturbed {
        /// The file.
        path: PathBuf,
    },
    /// An I/O error. If only the final directory sync failed, the new content is already in place.
    #[error("cannot write `{}`", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// An error of updating a document.
#[derive(Debug, thiserror::Error)]
pub enum DocumentUpdateError<E> {
    /// The document was not written.
    #[error(transparent)]
    Save(#[from] DocumentSaveError),
    /// The `edit` function failed.
    #[error(transparent)]
    Edit(E),
}

/// An error of replacing a document conditionally.
#[derive(Debug, thiserror::Error)]
pub enum DocumentReplaceError {
    /// The content no longer matches the stamp.
    #[error("`{}` was changed by another program", .path.display())]
    Conflict {
        /// The file.
        path: PathBuf,
        /// Stamp of the current content.
        found: ContentStamp,
    },
    /// The document was not written.
    #[error(transparent)]
    Save(DocumentSaveError),
}

impl DocumentLoadError {
    /// Returns the safety violation, if that is the cause.
    pub fn violation(&self) -> Option<&UnsafePath> {
        match self {
            Self::Unsafe(flaw) => Some(flaw),
            _ => None,
        }
    }

    pub(super) fn from_check(error: PathCheckError, path: PathBuf) -> Self {
        match error {
            PathCheckError::Unsafe(flaw) => Self::Unsafe(flaw),
            PathCheckError::Io(source) => Self::Io { path, source },
        }
    }
}
