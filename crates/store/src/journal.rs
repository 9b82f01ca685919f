//! A file that only grows: one JSON object a line, each naming the hash of the line before.
//!
//! Beside the file stands its head, a record of the line that came last. It is what writers lock, and what tells a file
//! whose end is missing from one that is whole. Against somebody who may write the files and recomputes every hash the
//! chain is no protection; it shows mistakes, losses and edits by hand.

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

pub use error::{AppendError, OpenError};
pub use read::entries;
pub use verify::{Broken, Fault, Verified, VerifyError, verify};

use crate::lock::Held;
use files::Files;
use head::Head;
use line::Line;
use tail::Tail;

/// How long other processes are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A journal that any number of threads and processes append to.
#[derive(Debug)]
pub struct Journal {
    files: Files,
    options: JournalOptions,
    /// Locked between threads by this, and between processes by the file's own lock.
    head: Mutex<File>,
}

/// How much a journal keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOptions {
    /// What one file may weigh before the next is begun.
    pub max_bytes: u64,
    /// Full files that are kept beside the current one. The oldest go first.
    pub keep_files: usize,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { max_bytes: 16 << 20, keep_files: 9 }
    }
}

impl Journal {
    /// Opens a journal, and makes it and its directory, for the user alone, where they are missing.
    ///
    /// It is refused where others could write to it, as a private document is.
    pub fn open(path: &Path, options: JournalOptions) -> Result<Self, OpenError> {
        let files = Files::make(path)?;
        let head = files.open_head()?;
        Ok(Self { files, options, head: Mutex::new(head) })
    }

    /// Appends one entry as one line. Another process sees the whole line or nothing of it.
    ///
    /// Whatever the entry holds, the line is printable ASCII: everything else is escaped. When this fails, the entry is
    /// not in the journal. It survives the end of this process, but the end of the system only after [`Journal::sync`].
    pub fn append(&self, entry: &(impl Serialize + ?Sized)) -> Result<(), AppendError> {
        let entry = serde_json::value::to_raw_value(entry).map_err(AppendError::NotJson)?;
        // What is behind the mutex is on disk, and whole even if somebody panicked.
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let _held = Held::take(&head, &self.files.head_path(), PATIENCE).map_err(AppendError::Locked)?;
        let mut tail = Tail::find(&self.files, &head)?;
        let mut line = self.compose(&tail, &entry)?;
        if tail.size > 0 && tail.size + line.len() as u64 > self.options.max_bytes {
            tail = self.rotate(&head, tail).map_err(|error| self.files.unwritten(error))?;
            line = self.compose(&tail, &entry)?;
        }
        self.put(&head, tail, &line).map_err(|error| self.files.unwritten(error))
    }

    /// Has the disk know everything that was appended.
    pub fn sync(&self) -> io::Result<()> {
        self.files.open_current()?.sync_data()
    }

    fn compose(&self, tail: &Tail, entry: &serde_json::value::RawValue) -> Result<Vec<u8>, AppendError> {
        let is_first = tail.size == 0;
        let after = if is_first { self.files.newest().map_err(|error| self.files.unwritten(error))? } else { None };
        let line = Line { is_first, link: &tail.link, after: after.as_deref(), torn: tail.torn, entry };
        let text = line.compose().map_err(AppendError::NotJson)?;
        match text.len() as u64 {
            length if length <= self.options.max_bytes => Ok(text),
            _ => Err(AppendError::TooLarge { limit: self.options.max_bytes }),
        }
    }

    /// Writes a line and then the head. What cannot be finished is taken back.
    fn put(&self, head: &File, mut tail: Tail, line: &[u8]) -> io::Result<()> {
        let size = tail.size + line.len() as u64;
        let link = tail.link.next(&line[..line.len() - 1]);
        let written = tail.file.write_all(line).and_then(|()| Head { link, size }.write(head));
        if written.is_err() {
            let _ = tail.file.set_len(tail.size);
        }
        written
    }

    /// Sets the full file aside and begins the next. After a crash in between, [`Tail::find`] goes on from the head.
    fn rotate(&self, head: &File, full: Tail) -> io::Result<Tail> {
        full.file.sync_data()?;
        self.files.set_aside(self.options.keep_files)?;
        Head { link: full.link.clone(), size: 0 }.write(head)?;
        Ok(Tail { file: self.files.open_current()?, size: 0, ..full })
    }
}
