//! Errors of opening and writing a journal.

use std::io;
use std::path::PathBuf;

use crate::lock::LockError;
use crate::path_safety::UnsafePath;

/// An error of opening a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalOpenError {
    /// Another user could write to the journal. [`UnsafePath::fix`] returns the remedy.
    #[error(transparent)]
    Unsafe(#[from] UnsafePath),
    /// An I/O error.
    #[error("cannot open `{}`", .path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// An error of appending an entry. The entry is not in the journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalAppendError {
    /// The entry cannot be serialized as JSON.
    #[error("the entry cannot be serialized as JSON")]
    NotJson(#[source] serde_json::Error),
    /// The entry exceeds the maximum size of a file.
    #[error("the entry exceeds {limit} bytes")]
    TooLarge {
        /// Maximum size of a file in bytes.
        limit: u64,
    },
    /// Another process held the lock until the timeout.
    #[error(transparent)]
    Locked(LockError),
    /// Another user could have written to the file.
    #[error(transparent)]
    Unsafe(#[from] UnsafePath),
    /// An I/O error, a full disk for example.
    #[error("cannot write to `{}`", .path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}
