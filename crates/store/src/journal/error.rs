//! Why a journal was not opened or not written.

use std::io;
use std::path::PathBuf;

use crate::lock::LockError;
use crate::privacy::Unsafe;

/// Why a journal was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Others could write to it. [`Unsafe::fix`] says what to do.
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
    /// The system says no.
    #[error("cannot open `{}`", .path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why an entry is not in the journal.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// It has no JSON.
    #[error("the entry cannot be written as JSON")]
    NotJson(#[source] serde_json::Error),
    /// It is larger than a whole file may be.
    #[error("the entry is larger than {limit} bytes")]
    TooLarge {
        /// What a file may weigh.
        limit: u64,
    },
    /// Another process was writing all the time.
    #[error(transparent)]
    Locked(LockError),
    /// Others could have written to the file.
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
    /// The system says no; the disk may be full.
    #[error("cannot write to `{}`", .path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
