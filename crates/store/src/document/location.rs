//! Resolution of a document's path, and reading and replacing the file there.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{DocumentLoadError, DocumentPrivacy, DocumentSaveError};
use crate::dir_handle::{DirHandle, found_or_none};
use crate::lock::{LockError, LockFile};
use crate::path_safety::{PathViolation, UnsafePath, check_parent_dirs, check_private_file};

/// Maximum symbolic links to follow, the same as in Linux.
const MAX_SYMLINKS: usize = 40;

/// A file name in an open directory. Symbolic links are already resolved where that is allowed.
pub(super) struct DocumentLocation {
    folder: Arc<DirHandle>,
    name: OsString,
    privacy: DocumentPrivacy,
    /// Creates missing files and directories with owner-only permissions.
    is_made_private: bool,
    /// User ID of the owner of the last link followed.
    linked_by: Option<u32>,
}

/// Content that was read, and the metadata of the file it came from.
pub(super) struct FoundContent {
    pub(super) bytes: Vec<u8>,
    metadata: Metadata,
}

impl DocumentLocation {
    /// Resolves the path of a document. Returns `None` if its directory does not exist.
    pub(super) fn resolve(path: &Path, privacy: DocumentPrivacy) -> Result<Option<Self>, DocumentLoadError> {
        let failed = |source| DocumentLoadError::Io { path: path.to_owned(), source };
        let ResolvedPath { parent, name, linked_by } = resolve_target(path, privacy).map_err(failed)?;
        let folder = found_or_none(DirHandle::open(&parent)).map_err(failed)?;
        let found = |folder| Self { folder: Arc::new(folder), name, privacy, is_made_private: false, linked_by };
        Ok(folder.map(found))
    }

    /// Resolves the path of a document for writing, creates its directory if missing, and checks that the directory is
    /// safe.
    pub(super) fn resolve_or_create(
        path: &Path,
        privacy: DocumentPrivacy,
        is_made_private: bool,
    ) -> Result<Self, DocumentSaveError> {
        let failed = |source| DocumentSaveError::Io { path: path.to_owned(), source };
        let ResolvedPath { parent, name, linked_by } = resolve_target(path, privacy).map_err(failed)?;
        let is_made_private = is_made_private || privacy == DocumentPrivacy::Private;
        let folder = match is_made_private {
            _ if privacy == DocumentPrivacy::Shared && rustix::process::geteuid().is_root() => {
                let mode = if is_made_private { 0o700 } else { 0o777 };
                create_dirs_with_parent_owner(&parent, Mode::from_raw_mode(mode)).and_then(|_| DirHandle::open(&parent))
            }
            true => DirHandle::create_private_dir(&parent),
            false => std::fs::create_dir_all(&parent).and_then(|()| DirHandle::open(&parent)),
        };
        let place = Self { folder: Arc::new(folder.map_err(failed)?), name, privacy, is_made_private, linked_by };
        place.check_parents()?;
        Ok(place)
    }

    /// Rejects a shared document that is not a regular file before any temporary file is created next to it (in `/dev`,
    /// for example).
    pub(super) fn check_kind(&self) -> Result<(), DocumentLoadError> {
        let found = found_or_none(self.folder.stat(&self.name)).map_err(|error| self.read_error(error))?;
        match found.map(|found| FileType::from_raw_mode(found.st_mode)) {
            Some(kind) if self.privacy == DocumentPrivacy::Shared && kind != FileType::RegularFile => {
                Err(DocumentLoadError::NotAFile { path: self.path() })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn lock(&self, max_wait: Duration) -> Result<LockFile, LockError> {
        LockFile::acquire_in(&self.folder, &self.auxiliary_name("lock"), max_wait)
    }

    /// Reads the file, if it exists.
    pub(super) fn read(&self, limit: u64) -> Result<Option<FoundContent>, DocumentLoadError> {
        let Some(file) = self.open()? else { return Ok(None) };
        let metadata = file.metadata().map_err(|error| self.read_error(error))?;
        match self.privacy {
            DocumentPrivacy::Private => {
                self.check_parents().and_then(|()| Ok(check_private_file(&self.path(), &metadata)?))?
            }
            DocumentPrivacy::Shared if !metadata.is_file() => {
                return Err(DocumentLoadError::NotAFile { path: self.path() });
            }
            DocumentPrivacy::Shared => {}
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| self.read_error(error))?;
        self.check_size(&bytes, limit)?;
        Ok(Some(FoundContent { bytes, metadata }))
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.folder.remove(&self.name)
    }

    /// Replaces the content atomically. Returns `false` if the current content is not `old` any more.
    pub(super) fn replace(
        &self,
        old: Option<&FoundContent>,
        bytes: &[u8],
        limit: u64,
    ) -> Result<bool, DocumentSaveError> {
        self.check_size(bytes, limit)?;
        old.map_or(Ok(()), |old| self.check_replaceable(&old.metadata))?;
        let draft = self.auxiliary_name("tmp");
        let replaced = self.write_draft(&draft, old, bytes).and_then(|()| {
            let is_same = self.content_equals(old, limit)?;
            if is_same {
                self.publish(&draft)?;
            }
            Ok(is_same)
        });
        if !matches!(replaced, Ok(true)) {
            let _ = self.folder.remove(&draft);
        }
        replaced
    }

    fn write_draft(&self, draft: &OsStr, old: Option<&FoundContent>, bytes: &[u8]) -> Result<(), DocumentSaveError> {
        let drafted = self.create(draft, old).and_then(|mut file| {
            file.write_all(bytes)?;
            match (self.privacy, old) {
                (DocumentPrivacy::Shared, Some(old)) => copy_owner_and_mode(&file, &old.metadata)?,
                (DocumentPrivacy::Shared, None) => self.chown_to_directory_owner(&file)?,
                (DocumentPrivacy::Private, _) => {}
            }
            file.sync_all()
        });
        drafted.map_err(|error| self.write_error(error))
    }

    fn create(&self, draft: &OsStr, old: Option<&FoundContent>) -> io::Result<File> {
        // The lock holder is the only user of this name, so an existing file was left by a crash.
        found_or_none(self.folder.remove(draft))?;
        match (self.privacy, old) {
            (DocumentPrivacy::Shared, None) if !self.is_made_private => {
                self.folder.create(draft, Mode::from_raw_mode(0o666))
            }
            _ => self.folder.create_private(draft),
        }
    }

    /// Gives a new file to the owner of its directory. A process that runs as root in another user's directory would
    /// otherwise leave a file that the owner cannot use.
    fn chown_to_directory_owner(&self, file: &File) -> io::Result<()> {
        chown_to_owner_of(file, &self.folder.metadata()?)
    }

    /// Checks that a shared file may be replaced: the process can write it, it has no other hard link that would keep
    /// the old content, and no symbolic link has led to a file of another user.
    fn check_replaceable(&self, old: &Metadata) -> Result<(), DocumentSaveError> {
        if self.privacy == DocumentPrivacy::Private {
            return Ok(());
        }
        let flaw = match self.linked_by {
            _ if old.nlink() > 1 => Some(PathViolation::HardLinks(old.nlink())),
            Some(owner) if owner != 0 && owner != old.uid() => {
                Some(PathViolation::Owner { found: old.uid(), expected: owner })
            }
            _ => None,
        };
        if let Some(flaw) = flaw {
            return Err(DocumentLoadError::Unsafe(UnsafePath { path: self.path(), flaw }).into());
        }
        self.folder.check_writable(&self.name).map_err(|error| self.write_error(error))
    }

    /// Reports whether the current content equals `old`. Compares bytes, because modification times are too coarse.
    fn content_equals(&self, old: Option<&FoundContent>, limit: u64) -> Result<bool, DocumentLoadError> {
        let now = self.read(limit)?;
        Ok(now.map(|found| found.bytes).as_deref() == old.map(|found| found.bytes.as_slice()))
    }

    fn publish(&self, draft: &OsStr) -> Result<(), DocumentSaveError> {
        let published = self.folder.rename(draft, &self.name).and_then(|()| self.folder.sync());
        published.map_err(|error| self.write_error(error))
    }

    fn open(&self) -> Result<Option<File>, DocumentLoadError> {
        match found_or_none(self.folder.open_for_reading(&self.name)) {
            Ok(file) => Ok(file),
            Err(_) if self.is_link() => Err(UnsafePath { path: self.path(), flaw: PathViolation::Link }.into()),
            Err(error) => Err(self.read_error(error)),
        }
    }

    fn is_link(&self) -> bool {
        std::fs::symlink_metadata(self.path()).is_ok_and(|metadata| metadata.is_symlink())
    }

    fn check_parents(&self) -> Result<(), DocumentLoadError> {
        match self.privacy {
            DocumentPrivacy::Private => {
                check_parent_dirs(self.folder.path()).map_err(|error| DocumentLoadError::from_check(error, self.path()))
            }
            DocumentPrivacy::Shared => Ok(()),
        }
    }

    fn check_size(&self, bytes: &[u8], limit: u64) -> Result<(), DocumentLoadError> {
        match u64::try_from(bytes.len()) {
            Ok(size) if size <= limit => Ok(()),
            _ => Err(DocumentLoadError::TooLarge { path: self.path(), limit }),
        }
    }

    fn read_error(&self, source: io::Error) -> DocumentLoadError {
        DocumentLoadError::Io { path: self.path(), source }
    }

    fn write_error(&self, source: io::Error) -> DocumentSaveError {
        DocumentSaveError::Io { path: self.path(), source }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Returns the name of an auxiliary file in the document's directory (the lock or the temporary file).
    fn auxiliary_name(&self, what: &str) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(".wharf-");
        name.push(what);
        name
    }
}

/// A resolved path.
struct ResolvedPath {
    parent: PathBuf,
    name: OsString,
    linked_by: Option<u32>,
}

/// Splits a path into directory and file name. For a shared document, symbolic links at the path are followed first.
fn resolve_target(path: &Path, privacy: DocumentPrivacy) -> io::Result<ResolvedPath> {
    let mut path = path.to_owned();
    let mut linked_by = None;
    for _ in 0..MAX_SYMLINKS {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = path.parent().unwrap_or(Path::new("")).to_owned();
        match std::fs::read_link(&path) {
            Ok(target) if privacy == DocumentPrivacy::Shared => {
                linked_by = Some(std::fs::symlink_metadata(&path)?.uid());
                path = parent.join(target);
            }
            _ => return Ok(ResolvedPath { parent, name, linked_by }),
        }
    }
    Err(Errno::LOOP.into())
}

/// Opens a directory. Creates it and its missing parents, each owned by the owner of its parent. Descends from open
/// directory to open directory, so that a planted symbolic link cannot redirect it.
fn create_dirs_with_parent_owner(path: &Path, mode: Mode) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    if let Some(found) = found_or_none(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from))? {
        return Ok(found.into());
    }
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let above = create_dirs_with_parent_owner(above, mode)?;
    let is_new = match rustix::fs::mkdirat(&above, name, mode) {
        Err(Errno::EXIST) => false,
        made => made.map(|()| true)?,
    };
    let made = File::from(rustix::fs::openat(&above, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
    if is_new {
        chown_to_owner_of(&made, &above.metadata()?)?;
    }
    Ok(made)
}

/// Gives a file created by root to the owner of its directory.
fn chown_to_owner_of(file: &File, folder: &Metadata) -> io::Result<()> {
    if rustix::process::geteuid().is_root() && folder.uid() != 0 {
        std::os::unix::fs::fchown(file, Some(folder.uid()), Some(folder.gid()))?;
    }
    Ok(())
}

/// Gives a new file the owner and permissions of the file it replaces.
///
/// If the owner and group cannot be set, the group permissions are dropped.
fn copy_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())).is_err()
    {
        mode &= 0o707;
    }
    file.set_permissions(Permissions::from_mode(mode))
}
