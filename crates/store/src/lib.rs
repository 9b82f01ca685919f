//! Files that are never torn or lost: locked, compared, atomic.
//!
//! Four kinds of them: a [`Document`] is read and replaced whole, a [`Journal`] only grows, a [`LogFile`] may lose what
//! is old, and a [`SpillDir`] takes what is too large to show. Everything here blocks; whoever lives on an async runtime calls it from a thread that may.

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

pub use document::{Document, LoadError, Loaded, Privacy, ReplaceError, SaveError, Stamp, UpdateError};
pub use folder::make_private_directory;
pub use journal::{
    AppendError, Broken, Fault, Journal, JournalOptions, OpenError, Verified, VerifyError, entries, verify,
};
pub use lock::{Lock, LockError};
pub use log::LogFile;
pub use privacy::{Flaw, Unsafe};
pub use spill::{Cleaned, Extension, SpillDir, SpillError, SpillLimits, Spilled};
