//! An open directory and operations on its entries.
//!
//! Every name is a single path component and is resolved relative to the open directory, so renaming the directory does
//! not redirect an operation. A symbolic link as the last component is never followed.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::path_safety::check_private_dir;

/// Creates a directory that only the owner can access, and its missing parents. Blocks.
///
/// # Errors
/// Fails on an I/O error, and if the directory exists but other users can read or change it.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    let metadata = DirHandle::create_private_dir(path)?.metadata()?;
    check_private_dir(path, &metadata).map_err(io::Error::other)
}

/// An open directory handle.
#[derive(Debug)]
pub(crate) struct DirHandle {
    file: File,
    path: PathBuf,
}

impl DirHandle {
    /// Opens a directory and stores its canonical path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        Ok(Self { file, path })
    }

    /// Opens a directory. Creates it and its missing parents with mode 0700.
    pub(crate) fn create_private_dir(path: &Path) -> io::Result<Self> {
        if !path.as_os_str().is_empty() {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        Self::open(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Opens the directory again with a separate file description, so that it can be locked independently.
    pub(crate) fn reopen(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.file, ".", flags, Mode::empty())?.into())
    }

    /// Opens a file for reading. Does not block, even if the file is a pipe.
    pub(crate) fn open_for_reading(&self, name: &OsStr) -> io::Result<File> {
        self.open_with(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
    }

    /// Opens a file for reading and appending. Creates it with mode 0600 if it is missing.
    pub(crate) fn open_for_appending(&self, name: &OsStr) -> io::Result<File> {
        self.open_or_create(name, OFlags::RDWR | OFlags::NONBLOCK | OFlags::APPEND)
    }

    /// Opens a file for reading and writing. Creates it with mode 0600 if it is missing.
    pub(crate) fn open_for_writing(&self, name: &OsStr) -> io::Result<File> {
        self.open_or_create(name, OFlags::RDWR | OFlags::NONBLOCK)
    }

    fn open_or_create(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        self.open_with(name, flags | OFlags::CREATE, Mode::from_raw_mode(0o600))
    }

    /// Creates a new file with mode 0600 regardless of the umask. Fails if it exists.
    pub(crate) fn create_private(&self, name: &OsStr) -> io::Result<File> {
        let file = self.create(name, Mode::from_raw_mode(0o600))?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// Creates a new file with `mode` minus the umask. Fails if it exists.
    pub(crate) fn create(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        self.open_with(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)
    }

    fn open_with(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.file, name, flags, mode)?.into())
    }

    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Checks that the process has write permission on a file. Replacing a file by rename does not require it.
    pub(crate) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::accessat(&self.file, name, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// Returns the names of all entries, unordered.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.file)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Syncs the directory to disk. File systems that do not support this are ignored.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.file) {
            Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF) => Ok(()),
            result => Ok(result?),
        }
    }
}

/// Maps [`io::ErrorKind::NotFound`] to `None`.
pub(crate) fn found_or_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
