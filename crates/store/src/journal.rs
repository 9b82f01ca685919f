//! An append-only file: one JSON object per line, each with the hash of the line before.
//!
//! A head file next to it records the last line. Writers lock the head, and a truncated journal is detected by
//! comparison with it. The hash chain detects mistakes, losses and manual edits. It does not protect against an
//! attacker that can write the files and recomputes every hash.

mod error;
mod files;
mod head;
mod line;
mod read;
mod tail;
#[cfg(test)]
mod tests;
mod verify;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

pub use error::{JournalAppendError, JournalOpenError};
pub use read::for_each_entry;
pub use verify::{Broken, CorruptionKind, JournalSummary, JournalVerifyError, verify_journal};

use crate::lock::FileLockGuard;
use files::JournalFiles;
use head::JournalHead;
use line::JournalLine;
use tail::JournalTail;

/// Timeout for locks held by other processes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A journal that any number of threads and processes can append to.
#[derive(Debug)]
pub struct Journal {
    files: JournalFiles,
    options: JournalOptions,
    /// The mutex excludes other threads. The file lock excludes other processes.
    head: Mutex<File>,
}

/// Rotation limits of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOptions {
    /// Maximum size of one file in bytes. An entry that would exceed it goes into the next file.
    pub max_bytes: u64,
    /// Number of full files to retain besides the current one. The oldest are removed first.
    pub keep_files: usize,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { max_bytes: 16 << 20, keep_files: 9 }
    }
}

impl Journal {
    /// Opens a journal. Creates it and its directory with owner-only permissions if they are missing.
    ///
    /// # Errors
    /// Fails if another user could write to the journal, as for a private document, or on an I/O error.
    pub fn open(path: &Path, options: JournalOptions) -> Result<Self, JournalOpenError> {
        let files = JournalFiles::open_or_create(path)?;
        let head = files.open_head()?;
        Ok(Self { files, options, head: Mutex::new(head) })
    }

    /// Appends one entry as one line. Other processes see either the whole line or none of it.
    ///
    /// The line is printable ASCII: all other characters are escaped. If this fails, the entry is not in the journal. A
    /// written entry survives the end of this process, but survives a system crash only after [`Journal::sync`].
    pub fn append(&self, entry: &(impl Serialize + ?Sized)) -> Result<(), JournalAppendError> {
        let entry = serde_json::value::to_raw_value(entry).map_err(JournalAppendError::NotJson)?;
        self.append_all(&[entry])
    }

    /// Appends entries in order, each as [`Journal::append`] does, with one write for all that go into the same file.
    ///
    /// # Errors
    /// If this fails, the entries that would have gone into the current file are not in the journal.
    pub fn append_all(&self, entries: &[Box<RawValue>]) -> Result<(), JournalAppendError> {
        // The guarded state is on disk and consistent even after a panic.
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let _held =
            FileLockGuard::acquire(&head, &self.files.head_path(), PATIENCE).map_err(JournalAppendError::Locked)?;
        let failed = |error| self.files.append_error(error);
        let mut tail = JournalTail::find(&self.files, &head)?;
        let mut lines = Vec::new();
        for entry in entries {
            let mut line = self.compose(&tail, entry)?;
            if tail.size > 0 && tail.size + line.len() as u64 > self.options.max_bytes {
                write_lines(&head, &mut tail, &lines).map_err(failed)?;
                lines.clear();
                tail = self.rotate(&head, tail).map_err(failed)?;
                line = self.compose(&tail, entry)?;
            }
            tail.advance(&line);
            lines.extend_from_slice(&line);
        }
        write_lines(&head, &mut tail, &lines).map_err(failed)
    }

    /// Syncs all appended entries to disk.
    pub fn sync(&self) -> io::Result<()> {
        self.files.open_current()?.sync_data()
    }

    fn compose(&self, tail: &JournalTail, entry: &RawValue) -> Result<Vec<u8>, JournalAppendError> {
        let is_first = tail.size == 0;
        let after = if is_first {
            self.files.newest_full_file().map_err(|error| self.files.append_error(error))?
        } else {
            None
        };
        let line = JournalLine { is_first, link: &tail.link, after: after.as_deref(), torn: tail.torn, entry };
        let text = line.to_bytes().map_err(JournalAppendError::NotJson)?;
        match text.len() as u64 {
            length if length <= self.options.max_bytes => Ok(text),
            _ => Err(JournalAppendError::TooLarge { limit: self.options.max_bytes }),
        }
    }

    /// Renames the full file and starts the next. After a crash in between, [`JournalTail::find`] continues from the head.
    fn rotate(&self, head: &File, full: JournalTail) -> io::Result<JournalTail> {
        full.file.sync_data()?;
        self.files.rotate_current(self.options.keep_files)?;
        JournalHead { link: full.link.clone(), size: 0 }.write(head)?;
        Ok(JournalTail { file: self.files.open_current()?, size: 0, ..full })
    }
}

/// Writes lines that the tail has advanced over, and then the head. Truncates the file again if either write fails.
fn write_lines(head: &File, tail: &mut JournalTail, lines: &[u8]) -> io::Result<()> {
    let record = JournalHead { link: tail.link.clone(), size: tail.size };
    let written = tail.file.write_all(lines).and_then(|()| record.write(head));
    if written.is_err() {
        let _ = tail.file.set_len(tail.size - lines.len() as u64);
    }
    written
}
