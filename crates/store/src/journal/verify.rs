//! Verification of a journal's hash chain.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::PATIENCE;
use super::files::JournalFiles;
use super::head::JournalHead;
use super::line::{ChainLink, LineRecord};
use crate::lock::{FileLockGuard, LockError};

/// Result of a successful verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalSummary {
    /// Number of entries.
    pub entries: u64,
    /// Sequence number of the first entry. Earlier entries were in files that have been removed.
    pub first: u64,
    /// Number of files.
    pub files: usize,
    /// Number of unfinished lines that crashes left and recovery moved aside.
    pub torn: u64,
}

/// Position and kind of a journal's first inconsistency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` line {line}: {fault}", .path.display())]
pub struct Broken {
    /// The file.
    pub path: PathBuf,
    /// Line number, counted from 1.
    pub line: u64,
    /// Kind of inconsistency.
    pub fault: CorruptionKind,
}

/// An inconsistency in a line of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CorruptionKind {
    /// The line is not a journal line.
    #[error("not a journal line")]
    Foreign,
    /// The line has no line break.
    #[error("incomplete line")]
    Torn,
    /// The sequence number is wrong: lines are missing, duplicated or reordered.
    #[error("expected entry {expected}, found entry {found}")]
    Order {
        /// Expected sequence number.
        expected: u64,
        /// Sequence number of the line.
        found: u64,
    },
    /// The hash recorded in the next line or in the head does not match.
    #[error("modified after it was written (hash mismatch)")]
    Altered,
    /// The preceding file is missing.
    #[error("the preceding file is missing")]
    Beginning,
    /// Lines after this one are missing.
    #[error("{0} later entries are missing")]
    End(u64),
    /// Lines follow the last line that the head records.
    #[error("not recorded in the head file")]
    Surplus,
    /// The head file is missing, so missing lines at the end cannot be detected.
    #[error("the head file is missing")]
    NoHead,
}

/// An error of verifying a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalVerifyError {
    /// The journal is inconsistent.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Another process held the lock until the timeout.
    #[error(transparent)]
    Locked(LockError),
    /// An I/O error.
    #[error("cannot read `{}`", .path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Verifies every line of a journal, in all retained files. Writers are locked out only while the files are opened.
pub fn verify_journal(path: &Path) -> Result<JournalSummary, JournalVerifyError> {
    let failed = |source| JournalVerifyError::Io { path: path.to_owned(), source };
    let files = JournalFiles::open_existing(path).map_err(failed)?;
    let head = files.read_head().map_err(failed)?;
    let parts = {
        let held = head.as_ref().map(|head| FileLockGuard::acquire(head, &files.head_path(), PATIENCE));
        let _held = held.transpose().map_err(JournalVerifyError::Locked)?;
        JournalSnapshot::open(&files, head.as_ref()).map_err(failed)?
    };
    if head.is_none() && parts.files.is_empty() {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    parts.verify_chain().map_err(failed)?.map_err(|(place, fault)| {
        let name =
            parts.files.get(place.file).map_or_else(|| files.path(), |part| files.path().with_file_name(&part.name));
        Broken { path: name, line: place.line, fault }.into()
    })
}

/// All files of a journal, opened under the lock.
struct JournalSnapshot {
    head: Option<JournalHead>,
    files: Vec<SnapshotFile>,
}

/// An open file and its size at the time of opening.
struct SnapshotFile {
    name: String,
    file: File,
    size: u64,
}

impl JournalSnapshot {
    fn open(files: &JournalFiles, head: Option<&File>) -> io::Result<Self> {
        let mut parts = Vec::new();
        for name in files.file_names()? {
            if let Some(file) = files.open_for_reading(&name)? {
                parts.push(SnapshotFile { name, size: file.metadata()?.len(), file });
            }
        }
        Ok(Self { head: head.map(JournalHead::read).transpose()?.flatten(), files: parts })
    }

    fn verify_chain(&self) -> io::Result<Result<JournalSummary, (LinePosition, CorruptionKind)>> {
        let mut walk = ChainVerifier::new(self.head.as_ref(), self.files.len());
        let mut line = Vec::new();
        for (file, part) in self.files.iter().enumerate() {
            walk.here = LinePosition { file, line: 0 };
            let mut reader = BufReader::new((&part.file).take(part.size));
            while reader.read_until(b'\n', &mut line)? > 0 {
                if let Err(broken) = walk.check_line(&line) {
                    return Ok(Err(broken));
                }
                line.clear();
            }
        }
        Ok(walk.finish())
    }
}

/// Position of a line.
#[derive(Debug, Clone, Copy, Default)]
struct LinePosition {
    file: usize,
    line: u64,
}

/// State of the verification. Does no I/O.
struct ChainVerifier<'a> {
    head: Option<&'a JournalHead>,
    /// Sequence number and hash that the next line must have. `None` before the first line.
    link: Option<ChainLink>,
    here: LinePosition,
    before: LinePosition,
    verified: JournalSummary,
}

impl<'a> ChainVerifier<'a> {
    fn new(head: Option<&'a JournalHead>, files: usize) -> Self {
        let verified = JournalSummary { entries: 0, first: 0, files, torn: 0 };
        Self { head, link: None, here: LinePosition::default(), before: LinePosition::default(), verified }
    }

    fn check_line(&mut self, text: &[u8]) -> Result<(), (LinePosition, CorruptionKind)> {
        self.here.line += 1;
        let line = text.strip_suffix(b"\n").ok_or((self.here, CorruptionKind::Torn))?;
        let record = LineRecord::parse(line).ok_or((self.here, CorruptionKind::Foreign))?;
        self.check_link(&record)?;
        let link = record.link().next(line);
        if self.head.is_some_and(|head| head.link.seq == link.seq && head.link != link) {
            return Err((self.here, CorruptionKind::Altered));
        }
        self.link = Some(link);
        self.before = self.here;
        self.verified.entries += 1;
        self.verified.torn += u64::from(record.torn.is_some());
        Ok(())
    }

    fn check_link(&mut self, record: &LineRecord) -> Result<(), (LinePosition, CorruptionKind)> {
        match &self.link {
            Some(link) if link.seq != record.seq => {
                Err((self.here, CorruptionKind::Order { expected: link.seq, found: record.seq }))
            }
            Some(link) if link.prev != record.prev => Err((self.before, CorruptionKind::Altered)),
            Some(_) => Ok(()),
            None if record.seq > 0 && record.after.is_none() => Err((self.here, CorruptionKind::Beginning)),
            None => {
                self.verified.first = record.seq;
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<JournalSummary, (LinePosition, CorruptionKind)> {
        let next = self.link.map_or(0, |link| link.seq);
        match self.head.map(|head| head.link.seq) {
            None if next == 0 => Ok(self.verified),
            None => Err((self.before, CorruptionKind::NoHead)),
            Some(known) if known > next => Err((self.before, CorruptionKind::End(known - next))),
            // A crash between writing a line and writing the head leaves one extra line.
            Some(known) if next > known + 1 => Err((self.before, CorruptionKind::Surplus)),
            Some(_) => Ok(self.verified),
        }
    }
}
