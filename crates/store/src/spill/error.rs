//! Why nothing was spilled.

use std::io;
use std::path::PathBuf;

use crate::lock::LockError;
use crate::privacy::Unsafe;

/// Why nothing was spilled. No part of a file remains.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// There is no room, and nothing in the directory is old enough to go. The result can still be shown shortened.
    #[error("the directory for large results is full: {used} of {limit} bytes in {files} files")]
    Full {
        /// What is there.
        used: u64,
        /// In so many files.
        files: usize,
        /// What may be there.
        limit: u64,
    },
    /// It is larger than one file may be.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// What one file may weigh.
        limit: u64,
    },
    /// It is not base64.
    #[error("it is not base64")]
    NotBase64,
    /// The directory is not ours alone. [`Unsafe::fix`] says what to do.
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
    /// Another process was writing all the time.
    #[error(transparent)]
    Locked(LockError),
    /// The system says no.
    #[error("cannot write to `{}`", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
