//! A size-bounded log file that several processes can write concurrently.
//!
//! Best effort: each line is one write to the end of the file, and a line that cannot be written is lost.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::dir_handle::{DirHandle, found_or_none};
use crate::lock::FileLockGuard;
use crate::path_safety::{check_private_file, check_unwritable_by_others};

/// Timeout for another process that is rotating the file.
const ROTATION_LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// A log file with one older generation: `name` and `name.1`.
#[derive(Debug)]
pub struct LogFile {
    folder: DirHandle,
    name: OsString,
    file: File,
    max_bytes: u64,
}

impl LogFile {
    /// Opens a log file. Creates it and its directory with owner-only permissions if they are missing.
    ///
    /// # Errors
    /// Fails on an I/O error, and if the file is a link, belongs to another user or is readable by other users, or if
    /// other users can write to its directory.
    pub fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let folder = open_private_dir(path.parent().unwrap_or(Path::new("")))?;
        let file = open_private_file(&folder, &name)?;
        Ok(Self { folder, name, file, max_bytes })
    }

    /// Appends one line and a line break. Other processes see either the whole line or none of it.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        let text = format!("{line}\n");
        self.reopen_if_replaced()?;
        if self.is_full(text.len())? {
            self.rotate(text.len())?;
        }
        match self.file.write(text.as_bytes())? {
            count if count == text.len() => Ok(()),
            // End a partial line, so that the next one is whole.
            _ => self.file.write_all(b"\n"),
        }
    }

    /// Reopens the file by name if it was replaced: another process may have rotated it, or the directory may have been
    /// removed.
    fn reopen_if_replaced(&mut self) -> io::Result<()> {
        if self.is_current()? {
            return Ok(());
        }
        self.file = match found_or_none(open_private_file(&self.folder, &self.name))? {
            Some(file) => file,
            None => {
                self.folder = open_private_dir(self.folder.path())?;
                open_private_file(&self.folder, &self.name)?
            }
        };
        Ok(())
    }

    fn is_current(&self) -> io::Result<bool> {
        let Some(named) = found_or_none(self.folder.stat(&self.name))? else { return Ok(false) };
        let ours = rustix::fs::fstat(&self.file)?;
        Ok((named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino))
    }

    fn is_full(&self, more: usize) -> io::Result<bool> {
        let size = self.file.metadata()?.len();
        Ok(size > 0 && size + more as u64 > self.max_bytes)
    }

    /// Rotates the full file. Checks again under the lock, so that only one process rotates.
    fn rotate(&mut self, more: usize) -> io::Result<()> {
        let path = self.folder.path().join(&self.name);
        let held = FileLockGuard::acquire(&self.file, &path, ROTATION_LOCK_TIMEOUT).map_err(io::Error::other)?;
        if self.is_current()? && self.is_full(more)? {
            let mut older = self.name.clone();
            older.push(".1");
            self.folder.rename(&self.name, &older)?;
        }
        drop(held);
        self.reopen_if_replaced()
    }
}

fn open_private_dir(path: &Path) -> io::Result<DirHandle> {
    let folder = DirHandle::create_private_dir(path)?;
    check_unwritable_by_others(folder.path(), &folder.metadata()?).map_err(io::Error::other)?;
    Ok(folder)
}

fn open_private_file(folder: &DirHandle, name: &OsStr) -> io::Result<File> {
    let file = folder.open_for_appending(name)?;
    check_private_file(&folder.path().join(name), &file.metadata()?).map_err(io::Error::other)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_dir::ScratchDir;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn log_is_private_and_keeps_one_rotated_file() {
        let scratch = ScratchDir::new();
        let path = scratch.path("logs/a.log");
        let mut log = LogFile::open(&path, 10).unwrap();
        for line in ["one", "two", "three", "four", "a line longer than the bound"] {
            log.append(line).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a line longer than the bound\n");
        assert_eq!(std::fs::read_to_string(scratch.path("logs/a.log.1")).unwrap(), "four\n");
        assert_eq!((mode(&path), mode(&scratch.path("logs"))), (0o600, 0o700));
        assert_eq!(crate::scratch_dir::names(&scratch.path("logs")), ["a.log", "a.log.1"]);
    }

    #[test]
    fn unsafe_log_paths_are_rejected() {
        let scratch = ScratchDir::new();
        std::os::unix::fs::symlink(scratch.path("elsewhere"), scratch.path("link.log")).unwrap();
        assert!(LogFile::open(&scratch.path("link.log"), 10).is_err());
        assert!(!scratch.path("elsewhere").exists());
        std::fs::write(scratch.path("open.log"), "x").unwrap();
        std::fs::set_permissions(scratch.path("open.log"), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(LogFile::open(&scratch.path("open.log"), 10).is_err());
        let shared = scratch.path("shared");
        std::fs::create_dir(&shared).unwrap();
        for (mode, is_fine) in [(0o777, false), (0o1777, false), (0o770, false), (0o755, true)] {
            std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(LogFile::open(&shared.join("a.log"), 10).is_ok(), is_fine, "{mode:o}");
            assert_eq!(shared.join("a.log").exists(), is_fine, "{mode:o}");
        }
    }

    #[test]
    fn concurrent_writers_tear_no_line() {
        let scratch = ScratchDir::new();
        let path = scratch.path("shared.log");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let mut log = LogFile::open(path, 20_000).unwrap();
                    (0..200).for_each(|number| log.append(&format!("<{writer} {number} {}>", "x".repeat(40))).unwrap());
                });
            }
        });
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let (now, older) = (read(&path), read(&scratch.path("shared.log.1")));
        for line in now.lines().chain(older.lines()) {
            assert!(line.starts_with('<') && line.ends_with("x>") && line.matches('<').count() == 1, "{line}");
        }
        assert!(!now.is_empty() && now.len() <= 20_000 && older.len() > 15_000);
    }

    #[test]
    fn removed_log_is_recreated() {
        let scratch = ScratchDir::new();
        let path = scratch.path("a.log");
        let mut log = LogFile::open(&path, 100).unwrap();
        log.append("one").unwrap();
        std::fs::remove_file(&path).unwrap();
        log.append("two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    }

    #[test]
    fn log_is_recreated_after_its_directory_is_removed() {
        let scratch = ScratchDir::new();
        let path = scratch.path("state/logs/a.log");
        let mut log = LogFile::open(&path, 100).unwrap();
        log.append("one").unwrap();
        for line in ["two", "three"] {
            std::fs::remove_dir_all(scratch.path("state")).unwrap();
            log.append(line).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{line}\n"));
            assert_eq!((mode(&path), mode(&scratch.path("state/logs"))), (0o600, 0o700));
        }
    }
}
