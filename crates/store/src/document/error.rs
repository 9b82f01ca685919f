//! Why a document was not read or not written.

use std::io;
use std::path::PathBuf;

use super::Stamp;
use crate::lock::LockError;
use crate::privacy::{CheckError, Unsafe};

/// Why a document was not read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Others could have read or changed it. [`Unsafe::fix`] says what to do.
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
    /// It is larger than it may be.
    #[error("`{}` is larger than {limit} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it may weigh.
        limit: u64,
    },
    /// It is a directory, a pipe or a device.
    #[error("`{}` is not a regular file", .path.display())]
    NotAFile {
        /// What is not a file.
        path: PathBuf,
    },
    /// The system says no.
    #[error("cannot read `{}`", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why a document was not written. It holds what it held before.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// It cannot be read, or is not safe to have.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Somebody else was writing all the time.
    #[error(transparent)]
    Locked(LockError),
    /// Somebody who takes no lock changed it again and again.
    #[error("`{}` changes faster than it can be edited", .path.display())]
    Disturbed {
        /// The file.
        path: PathBuf,
    },
    /// The system says no. If only the last step failed, that of telling the disk, the new content is there already.
    #[error("cannot write `{}`", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why an update came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The document was not written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The edit itself failed.
    #[error(transparent)]
    Edit(E),
}

/// Why a document was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// It is not what it was when it was read.
    #[error("`{}` has changed meanwhile", .path.display())]
    Conflict {
        /// The file.
        path: PathBuf,
        /// What is there now.
        found: Stamp,
    },
    /// It was not written.
    #[error(transparent)]
    Save(SaveError),
}

impl LoadError {
    /// What makes the document unsafe, if that is why.
    pub fn flaw(&self) -> Option<&Unsafe> {
        match self {
            Self::Unsafe(flaw) => Some(flaw),
            _ => None,
        }
    }

    pub(super) fn of_check(error: CheckError, path: PathBuf) -> Self {
        match error {
            CheckError::Unsafe(flaw) => Self::Unsafe(flaw),
            CheckError::Io(source) => Self::Io { path, source },
        }
    }
}
