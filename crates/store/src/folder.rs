//! An open directory, and what is done beneath it.
//!
//! Every name is a single component and is looked up in the directory that was opened, wherever its path leads by now.
//! A symbolic link in the last place is never followed.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::privacy::check_own_folder;

/// Makes a directory that only the owner may look into, with those above it that are missing. Blocks.
///
/// # Errors
/// Also where the directory is there and others may look into it or change it.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    let metadata = Folder::make_private(path)?.metadata()?;
    check_own_folder(path, &metadata).map_err(io::Error::other)
}

/// A directory that stays the same one while it is open.
#[derive(Debug)]
pub(crate) struct Folder {
    file: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a directory and remembers it by its path without links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        Ok(Self { file, path })
    }

    /// Opens a directory, and makes it and those above it first where they are missing, for nobody but the owner.
    pub(crate) fn make_private(path: &Path) -> io::Result<Self> {
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

    /// The same directory behind a description of its own, so that it can be locked apart.
    pub(crate) fn reopened(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.file, ".", flags, Mode::empty())?.into())
    }

    /// Opens a file for reading. Opening does not wait for anybody, even if it turns out to be a pipe.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<File> {
        self.open_with(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
    }

    /// Opens a file for reading and for writing at its end, and makes it for nobody but the owner if it is missing.
    pub(crate) fn append(&self, name: &OsStr) -> io::Result<File> {
        self.open_or_make(name, OFlags::RDWR | OFlags::NONBLOCK | OFlags::APPEND)
    }

    /// Opens a file for reading and writing, and makes it for nobody but the owner if it is missing.
    pub(crate) fn write(&self, name: &OsStr) -> io::Result<File> {
        self.open_or_make(name, OFlags::RDWR | OFlags::NONBLOCK)
    }

    fn open_or_make(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        self.open_with(name, flags | OFlags::CREATE, Mode::from_raw_mode(0o600))
    }

    /// Makes a new file for nobody but the owner, whatever the umask.
    pub(crate) fn create_private(&self, name: &OsStr) -> io::Result<File> {
        let file = self.create(name, Mode::from_raw_mode(0o600))?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// Makes a new file with the permissions that the umask leaves of these.
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

    /// Whether we may write a file, which replacing it does not ask.
    pub(crate) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::accessat(&self.file, name, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// The names in it, in no order.
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

    /// Has the disk know what is in the directory. Some file systems cannot be asked, and keep to their own order.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.file) {
            Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF) => Ok(()),
            result => Ok(result?),
        }
    }
}

/// The value, or nothing where there is no such file.
pub(crate) fn if_found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
