//! Crash-safe file storage: locked, compared, atomic.
//!
//! Four kinds of files: a [`Document`] is read and replaced as a whole, a [`Journal`] is append-only, a [`LogFile`] is
//! size-bounded and drops its oldest lines, and a [`SpillDir`] holds results that are too large to show. All functions
//! block: async callers run them on a blocking thread.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod digest;
mod document;
mod folder;
mod journal;
mod lock;
mod log;
mod privacy;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod scratch;
mod spill;

pub use document::{
    ContentStamp, Document, DocumentLoadError, DocumentPrivacy, DocumentReplaceError, DocumentSaveError,
    DocumentUpdateError, LoadedDocument,
};
pub use folder::make_private_directory;
pub use journal::{
    Broken, CorruptionKind, Journal, JournalAppendError, JournalOpenError, JournalOptions, JournalSummary,
    JournalVerifyError, entries, verify,
};
pub use lock::{LockError, LockFile};
pub use log::LogFile;
pub use privacy::{PathViolation, UnsafePath};
pub use spill::{FileTotals, SpillDir, SpillError, SpillExtension, SpillLimits, SpilledFile};
