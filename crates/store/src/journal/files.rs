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
use crate::dir_handle::{DirHandle, found_or_none};
use crate::path_safety::{PathCheckError, check_parent_dirs, check_private_file};

#[derive(Debug)]
pub(super) struct JournalFiles {
    folder: DirHandle,
    name: String,
}

impl JournalFiles {
    /// Opens the journal's directory, creates it if missing, and checks that it is safe.
    pub(super) fn open_or_create(path: &Path) -> Result<Self, JournalOpenError> {
        let failed = |source| JournalOpenError::Io { path: path.to_owned(), source };
        let files = Self::open_with(path, DirHandle::create_private_dir).map_err(failed)?;
        check_parent_dirs(files.folder.path()).map_err(|error| match error {
            PathCheckError::Unsafe(flaw) => JournalOpenError::Unsafe(flaw),
            PathCheckError::Io(source) => failed(source),
        })?;
        Ok(files)
    }

    /// Opens the journal's directory.
    pub(super) fn open_existing(path: &Path) -> io::Result<Self> {
        Self::open_with(path, DirHandle::open)
    }

    fn open_with(path: &Path, open: impl FnOnce(&Path) -> io::Result<DirHandle>) -> io::Result<Self> {
        let name = path.file_name().and_then(OsStr::to_str).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { folder: open(path.parent().unwrap_or(Path::new("")))?, name: name.to_owned() })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub(super) fn head_path(&self) -> PathBuf {
        self.folder.path().join(self.auxiliary_name("head"))
    }

    /// Opens the head file. Creates it if missing.
    pub(super) fn open_head(&self) -> Result<File, JournalOpenError> {
        let failed = |source| JournalOpenError::Io { path: self.head_path(), source };
        let head = self.folder.open_for_writing(self.auxiliary_name("head").as_ref()).map_err(failed)?;
        check_private_file(&self.head_path(), &head.metadata().map_err(failed)?)?;
        Ok(head)
    }

    /// Opens the head file for reading, if it exists.
    pub(super) fn read_head(&self) -> io::Result<Option<File>> {
        found_or_none(self.folder.open_for_reading(self.auxiliary_name("head").as_ref()))
    }

    /// Opens the current file for appending.
    pub(super) fn open_current(&self) -> io::Result<File> {
        self.folder.open_for_appending(self.name.as_ref())
    }

    /// Opens one of the files for reading, if it exists.
    pub(super) fn open_for_reading(&self, name: &str) -> io::Result<Option<File>> {
        found_or_none(self.folder.open_for_reading(name.as_ref()))
    }

    /// Returns the names of all files with lines, oldest first.
    pub(super) fn file_names(&self) -> io::Result<Vec<String>> {
        let mut names = self.full_files()?;
        names.push(self.name.clone());
        Ok(names)
    }

    /// Returns the name of the newest full file.
    pub(super) fn newest_full_file(&self) -> io::Result<Option<String>> {
        Ok(self.full_files()?.pop())
    }

    /// Renames the current file to a full one, and removes the oldest full files beyond `keep`.
    pub(super) fn rotate_current(&self, keep: usize) -> io::Result<()> {
        let mut full = self.full_files()?;
        let number = full.last().and_then(|name| self.file_number(name)).unwrap_or(0) + 1;
        let name = self.auxiliary_name(&format!("{number:06}"));
        self.folder.rename(self.name.as_ref(), name.as_ref())?;
        self.folder.sync()?;
        full.push(name);
        let surplus = full.len().saturating_sub(keep);
        full[..surplus].iter().try_for_each(|name| self.folder.remove(name.as_ref()))
    }

    /// Saves the fragment of a line that a crash left.
    pub(super) fn save_torn_fragment(&self, fragment: &[u8]) -> io::Result<()> {
        let mut file = self.folder.open_for_appending(self.auxiliary_name("torn").as_ref())?;
        file.write_all(&[fragment, b"\n"].concat())?;
        file.sync_data()
    }

    pub(super) fn append_error(&self, source: io::Error) -> JournalAppendError {
        JournalAppendError::Io { path: self.path(), source }
    }

    /// Returns the names of the full files, ordered by number.
    fn full_files(&self) -> io::Result<Vec<String>> {
        let names = self.folder.names()?.into_iter().filter_map(|name| name.into_string().ok());
        let mut full: Vec<(u64, String)> = names.filter_map(|name| Some((self.file_number(&name)?, name))).collect();
        full.sort();
        Ok(full.into_iter().map(|(_, name)| name).collect())
    }

    fn file_number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.name)?.strip_prefix('.')?;
        let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse().ok() } else { None }
    }

    fn auxiliary_name(&self, what: &str) -> String {
        format!("{}.{what}", self.name)
    }
}
