//! Mutual exclusion across processes and threads.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::dir_handle::{DirHandle, found_or_none};

/// Maximum pause between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(8);

/// A lock that is held until it is dropped or its process ends.
///
/// The lock is a file that exists only while the lock is held. It may be held during long operations, including network
/// requests. It is advisory: it only excludes other holders of the same lock.
#[derive(Debug)]
pub struct LockFile {
    folder: Arc<DirHandle>,
    path: PathBuf,
    /// Closing the file releases the lock.
    _file: File,
}

/// An error of taking a lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another holder did not release the lock in time.
    #[error("`{}` is locked by another process (timed out after {} ms)", .path.display(), .max_wait.as_millis())]
    Held {
        /// Path of the lock file.
        path: PathBuf,
        /// The timeout.
        max_wait: Duration,
    },
    /// An I/O error.
    #[error("cannot lock `{}`", .path.display())]
    Io {
        /// Path of the lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl LockFile {
    /// Takes the lock at this path. Its directory must exist. Blocks up to `max_wait`.
    pub fn acquire(path: &Path, max_wait: Duration) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let folder = DirHandle::open(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
        Self::acquire_in(&Arc::new(folder), name, max_wait)
    }

    pub(crate) fn acquire_in(folder: &Arc<DirHandle>, name: &OsStr, max_wait: Duration) -> Result<Self, LockError> {
        let path = folder.path().join(name);
        let deadline = Instant::now() + max_wait;
        loop {
            let attempt = folder.open_for_writing(name).and_then(|file| {
                let locked = lock_until(&file, deadline)?;
                Ok((locked, is_current(folder, name, &file)?, file))
            });
            match attempt {
                Ok((true, true, file)) => return Ok(Self { folder: folder.clone(), path, _file: file }),
                // The previous holder has removed the file, so the lock taken is on a deleted file.
                Ok((true, false, _)) => {}
                Ok((false, ..)) => return Err(LockError::Held { path, max_wait }),
                Err(source) => return Err(LockError::Io { path, source }),
            }
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Removed while still locked: waiters see that their file is no longer the one at the path, and retry.
        let _ = self.folder.remove(self.path.file_name().unwrap_or_default());
    }
}

/// A lock on an open file, released on drop.
///
/// Threads that share the file also share the lock and need separate synchronization.
pub(crate) struct FileLockGuard<'a>(&'a File);

impl<'a> FileLockGuard<'a> {
    pub(crate) fn acquire(file: &'a File, path: &Path, max_wait: Duration) -> Result<Self, LockError> {
        match lock_until(file, Instant::now() + max_wait) {
            Ok(true) => Ok(Self(file)),
            Ok(false) => Err(LockError::Held { path: path.to_owned(), max_wait }),
            Err(source) => Err(LockError::Io { path: path.to_owned(), source }),
        }
    }
}

impl Drop for FileLockGuard<'_> {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Waits for the lock until the deadline. Returns whether it was taken.
fn lock_until(file: &File, deadline: Instant) -> io::Result<bool> {
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(false),
            Err(TryLockError::WouldBlock) => thread::sleep(pause),
        }
        pause = (pause * 2).min(MAX_RETRY_DELAY);
    }
}

fn is_current(folder: &DirHandle, name: &OsStr, file: &File) -> io::Result<bool> {
    let Some(named) = found_or_none(folder.stat(name))? else { return Ok(false) };
    let held = rustix::fs::fstat(file)?;
    Ok((named.st_dev, named.st_ino) == (held.st_dev, held.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_dir::ScratchDir;

    #[test]
    fn lock_is_exclusive_and_leaves_no_file() {
        let scratch = ScratchDir::new();
        let path = scratch.path("refresh.lock");
        let lock = LockFile::acquire(&path, Duration::ZERO).unwrap();
        assert!(matches!(LockFile::acquire(&path, Duration::ZERO), Err(LockError::Held { .. })));
        drop(lock);
        assert!(!path.exists());
        drop(LockFile::acquire(&path, Duration::ZERO).unwrap());
    }

    #[test]
    fn symlinked_lock_file_is_rejected() {
        let scratch = ScratchDir::new();
        let path = scratch.path("lock");
        std::os::unix::fs::symlink(scratch.path("elsewhere"), &path).unwrap();
        assert!(matches!(LockFile::acquire(&path, Duration::ZERO), Err(LockError::Io { .. })));
        assert!(!scratch.path("elsewhere").exists());
    }

    #[test]
    fn lock_excludes_concurrent_threads() {
        let scratch = ScratchDir::new();
        let path = scratch.path("lock");
        let counter = scratch.path("counter");
        std::fs::write(&counter, "0").unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let _lock = LockFile::acquire(&path, Duration::from_secs(60)).unwrap();
                        let count: u32 = std::fs::read_to_string(&counter).unwrap().parse().unwrap();
                        std::fs::write(&counter, (count + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&counter).unwrap(), "200");
    }
}
