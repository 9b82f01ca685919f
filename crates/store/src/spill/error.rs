//! Errors of spilling a result.

use std::io;
use std::path::PathBuf;

use crate::lock::LockError;
use crate::path_safety::UnsafePath;

/// An error of spilling a result. No partial file remains.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// The quota is used up, and no file is old enough to be removed. The caller can still show a shortened result.
    #[error("the spill directory is full: {used} of {limit} bytes in {files} files")]
    Full {
        /// Size of all files in bytes.
        used: u64,
        /// Number of files.
        files: usize,
        /// Maximum size of all files in bytes.
        limit: u64,
    },
    /// The content exceeds the maximum size of one file.
    #[error("the content exceeds {limit} bytes")]
    TooLarge {
        /// Maximum size of one file in bytes.
        limit: u64,
    },
    /// The text is not valid base64.
    #[error("invalid base64")]
    NotBase64,
    /// Other users can access the directory. [`UnsafePath::fix`] returns the remedy.
    #[error(transparent)]
    Unsafe(#[from] UnsafePath),
    /// Another process held the lock until the timeout.
    #[error(transparent)]
    Locked(LockError),
    /// An I/O error.
    #[error("cannot write to `{}`", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}
