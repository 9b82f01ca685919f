//! The files of a journal and their names.
//!
//! `audit.jsonl` is the current file, `audit.jsonl.000007` is a full one, `audit.jsonl.head` records the last line, and
//! `audit.jsonl.torn` receives unfinished lines left by crashes. Full files are not renumbered, so references to them
//! stay valid.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::{JournalAppendError, JournalOpenError};
use crate::dir_handle::{DirHandle, if_found};
use crate::path_safety::{PathCheckError, check_file, check_way};

#[derive(Debug)]
pub(super) struct JournalFiles {
    folder: DirHandle,
    name: String,
}

impl JournalFiles {
    /// Opens the journal's directory, creates it if missing, and checks that it is safe.
    pub(super) fn make(path: &Path) -> Result<Self, JournalOpenError> {
        let failed = |source| JournalOpenError::Io { path: path.to_owned(), source };
        let files = Self::of(path, DirHandle::make_private).map_err(failed)?;
        check_way(files.folder.path()).map_err(|error| match error {
            PathCheckError::Unsafe(flaw) => JournalOpenError::Unsafe(flaw),
            PathCheckError::Io(source) => failed(source),
        })?;
        Ok(files)
    }

    /// Opens the journal's directory.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        Self::of(path, DirHandle::open)
    }

    fn of(path: &Path, open: impl FnOnce(&Path) -> io::Result<DirHandle>) -> io::Result<Self> {
        let name = path.file_name().and_then(OsStr::to_str).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { folder: open(path.parent().unwrap_or(Path::new("")))?, name: name.to_owned() })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub(super) fn head_path(&self) -> PathBuf {
        self.folder.path().join(self.beside("head"))
    }

    /// Opens the head file. Creates it if missing.
    pub(super) fn open_head(&self) -> Result<File, JournalOpenError> {
        let failed = |source| JournalOpenError::Io { path: self.head_path(), source };
        let head = self.folder.write(self.beside("head").as_ref()).map_err(failed)?;
        check_file(&self.head_path(), &head.metadata().map_err(failed)?)?;
        Ok(head)
    }

    /// Opens the head file for reading, if it exists.
    pub(super) fn read_head(&self) -> io::Result<Option<File>> {
        if_found(self.folder.read(self.beside("head").as_ref()))
    }

    /// Opens the current file for appending.
    pub(super) fn open_current(&self) -> io::Result<File> {
        self.folder.append(self.name.as_ref())
    }

    /// Opens one of the files for reading, if it exists.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<File>> {
        if_found(self.folder.read(name.as_ref()))
    }

    /// Returns the names of all files with lines, oldest first.
    pub(super) fn all(&self) -> io::Result<Vec<String>> {
        let mut names = self.full()?;
        names.push(self.name.clone());
        Ok(names)
    }

    /// Returns the name of the newest full file.
    pub(super) fn newest(&self) -> io::Result<Option<String>> {
        Ok(self.full()?.pop())
    }

    /// Renames the current file to a full one, and removes the oldest full files beyond `keep`.
    pub(super) fn set_aside(&self, keep: usize) -> io::Result<()> {
        let mut full = self.full()?;
        let number = full.last().and_then(|name| self.number(name)).unwrap_or(0) + 1;
        let name = self.beside(&format!("{number:06}"));
        self.folder.rename(self.name.as_ref(), name.as_ref())?;
        self.folder.sync()?;
        full.push(name);
        let surplus = full.len().saturating_sub(keep);
        full[..surplus].iter().try_for_each(|name| self.folder.remove(name.as_ref()))
    }

    /// Saves the fragment of a line that a crash left.
    pub(super) fn keep_torn(&self, fragment: &[u8]) -> io::Result<()> {
        let mut file = self.folder.append(self.beside("torn").as_ref())?;
        file.write_all(&[fragment, b"\n"].concat())?;
        file.sync_data()
    }

    pub(super) fn unwritten(&self, source: io::Error) -> JournalAppendError {
        JournalAppendError::Io { path: self.path(), source }
    }

    /// Returns the names of the full files, ordered by number.
    fn full(&self) -> io::Result<Vec<String>> {
        let names = self.folder.names()?.into_iter().filter_map(|name| name.into_string().ok());
        let mut full: Vec<(u64, String)> = names.filter_map(|name| Some((self.number(&name)?, name))).collect();
        full.sort();
        Ok(full.into_iter().map(|(_, name)| name).collect())
    }

    fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.name)?.strip_prefix('.')?;
        let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse().ok() } else { None }
    }

    fn beside(&self, what: &str) -> String {
        format!("{}.{what}", self.name)
    }
}
