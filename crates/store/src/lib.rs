//! Crash-safe file storage: locked, compared, atomic.
//!
//! Four kinds of files: a [`Document`] is read and replaced as a whole, a [`Journal`] is append-only, a [`LogFile`] is
//! size-bounded and drops its oldest lines, and a [`SpillDir`] holds results that are too large to show. All functions
//! block: async callers run them on a blocking thread.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod digest;
mod dir_handle;
mod document;
mod journal;
mod lock;
mod log;
mod path_safety;
#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod scratch_dir;
mod spill;

pub use dir_handle::create_private_directory;
pub use document::{
    ContentStamp, Document, DocumentLoadError, DocumentPrivacy, DocumentReplaceError, DocumentSaveError,
    DocumentUpdateError, LoadedDocument,
};
pub use journal::{
    Broken, CorruptionKind, Journal, JournalAppendError, JournalOpenError, JournalOptions, JournalSummary,
    JournalVerifyError, for_each_entry, verify_journal,
};
pub use lock::{LockError, LockFile};
pub use log::LogFile;
pub use path_safety::{PathViolation, UnsafePath};
pub use spill::{FileTotals, SpillDir, SpillError, SpillExtension, SpillLimits, SpilledFile};
