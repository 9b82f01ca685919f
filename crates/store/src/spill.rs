//! A directory for results that are too large to show.
//!
//! File names are random and chosen by the host. Server-supplied text is never part of a name. The directory is opened
//! once and all operations are relative to that handle. Files not created by this module are never touched.

mod concat_reader;
mod error;
mod extension;
mod quota;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::read::DecoderReader;
use rustix::fs::FileType;

pub use error::SpillError;
pub use extension::SpillExtension;

use crate::dir_handle::{DirHandle, found_or_none};
use crate::lock::FileLockGuard;
use crate::path_safety::{PathCheckError, PathViolation, UnsafePath, check_parent_dirs, check_private_dir};
use concat_reader::ConcatReader;
use quota::RemainingQuota;

/// Timeout for locks held by other writers.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size of the copy buffer in bytes.
const COPY_BUFFER_BYTES: usize = 64 << 10;
/// Prefix of the file names.
const NAME_PREFIX: &str = "spill-";
/// Number of hexadecimal digits in a file name.
const NAME_DIGITS: usize = 32;

/// Standard alphabet, padding optional.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A private directory with a quota.
#[derive(Debug)]
pub struct SpillDir {
    folder: DirHandle,
    limits: SpillLimits,
}

/// Limits of a spill directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpillLimits {
    /// Maximum size of all files together, in bytes.
    pub total_bytes: u64,
    /// Maximum number of files.
    pub files: usize,
    /// Maximum age of a file. Older files are removed.
    pub age: Duration,
    /// Maximum size of one file, in bytes.
    pub one: u64,
}

impl Default for SpillLimits {
    fn default() -> Self {
        Self { total_bytes: 1 << 30, files: 10_000, age: Duration::from_secs(7 * 24 * 3600), one: 256 << 20 }
    }
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpilledFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
}

/// Number and size of expired files that were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileTotals {
    /// Number of files.
    pub files: usize,
    /// Total size in bytes.
    pub bytes: u64,
}

impl SpillDir {
    /// Opens the directory. Creates it with owner-only permissions if it is missing.
    ///
    /// # Errors
    /// Fails if the path is a symbolic link, belongs to another user or is accessible by other users, or on an I/O
    /// error.
    pub fn open(path: &Path, limits: SpillLimits) -> Result<Self, SpillError> {
        let failed = |source| SpillError::Io { path: path.to_owned(), source };
        if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(UnsafePath { path: path.to_owned(), flaw: PathViolation::Link }.into());
        }
        let folder = DirHandle::create_private_dir(path).map_err(failed)?;
        check_private_dir(folder.path(), &folder.metadata().map_err(failed)?)?;
        check_parent_dirs(folder.path()).map_err(|error| match error {
            PathCheckError::Unsafe(flaw) => SpillError::Unsafe(flaw),
            PathCheckError::Io(source) => failed(source),
        })?;
        Ok(Self { folder, limits })
    }

    /// Writes the content of a reader to a new file. Other writers are locked out until the reader ends, so it should
    /// be fast.
    pub fn write(&self, kind: SpillExtension, mut from: impl Read) -> Result<SpilledFile, SpillError> {
        let locked = self.folder.reopen().map_err(|error| self.failed(error))?;
        let _held = FileLockGuard::acquire(&locked, self.folder.path(), PATIENCE).map_err(SpillError::Locked)?;
        let used = self.remove_older_than_limit(SystemTime::now())?.left;
        let room = RemainingQuota::new(&self.limits, &used)?;
        let name = random_name(kind).map_err(|error| self.failed(error))?;
        let file = self.folder.create_private(&name).map_err(|error| self.failed(error))?;
        match self.copy(&mut from, file, &room) {
            Ok(bytes) => Ok(SpilledFile { path: self.folder.path().join(&name), bytes }),
            Err(error) => {
                let _ = self.folder.remove(&name);
                Err(error)
            }
        }
    }

    /// Writes the concatenated pieces to a new file.
    pub fn write_pieces<P: AsRef<[u8]>>(
        &self,
        kind: SpillExtension,
        pieces: impl IntoIterator<Item = P>,
    ) -> Result<SpilledFile, SpillError> {
        self.write(kind, ConcatReader::new(pieces.into_iter()))
    }

    /// Decodes base64 into a new file, chunk by chunk. Removes the file if the text is not valid base64.
    pub fn write_base64(&self, kind: SpillExtension, text: &[u8]) -> Result<SpilledFile, SpillError> {
        self.write(kind, DecoderReader::new(text, &BASE64)).map_err(|error| match error {
            SpillError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => SpillError::NotBase64,
            error => error,
        })
    }

    /// Removes expired files.
    pub fn remove_expired(&self) -> Result<FileTotals, SpillError> {
        Ok(self.remove_older_than_limit(SystemTime::now())?.removed)
    }

    fn remove_older_than_limit(&self, now: SystemTime) -> Result<SweepResult, SpillError> {
        let mut swept = SweepResult::default();
        for name in self.folder.names().map_err(|error| self.failed(error))? {
            let Some((bytes, written)) = self.own_file_stat(&name).map_err(|error| self.failed(error))? else {
                continue;
            };
            let is_old = now.duration_since(written).is_ok_and(|age| age > self.limits.age);
            if is_old {
                found_or_none(self.folder.remove(&name)).map_err(|error| self.failed(error))?;
            }
            swept.count(is_old, bytes);
        }
        Ok(swept)
    }

    /// Returns size and modification time of a file if it was created by this module.
    fn own_file_stat(&self, name: &OsStr) -> io::Result<Option<(u64, SystemTime)>> {
        if !is_our_name(name) {
            return Ok(None);
        }
        let Some(stat) = found_or_none(self.folder.stat(name))? else { return Ok(None) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let written = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
        Ok(Some((u64::try_from(stat.st_size).unwrap_or(0), UNIX_EPOCH + written)))
    }

    fn copy(&self, from: &mut impl Read, mut file: File, room: &RemainingQuota) -> Result<u64, SpillError> {
        let mut chunk = vec![0; COPY_BUFFER_BYTES];
        let mut bytes = 0;
        loop {
            let count = match from.read(&mut chunk) {
                Ok(0) => return Ok(bytes),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed(error)),
            };
            bytes += count as u64;
            room.check(bytes)?;
            file.write_all(&chunk[..count]).map_err(|error| self.failed(error))?;
        }
    }

    fn failed(&self, source: io::Error) -> SpillError {
        SpillError::Io { path: self.folder.path().to_owned(), source }
    }
}

/// Files that a sweep removed, and files that remain.
#[derive(Debug, Default)]
struct SweepResult {
    removed: FileTotals,
    left: FileTotals,
}

impl SweepResult {
    fn count(&mut self, is_removed: bool, bytes: u64) {
        let side = if is_removed { &mut self.removed } else { &mut self.left };
        side.files += 1;
        side.bytes += bytes;
    }
}

fn random_name(kind: SpillExtension) -> io::Result<OsString> {
    let mut random = [0; NAME_DIGITS / 2];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let digits = u128::from_be_bytes(random);
    Ok(format!("{NAME_PREFIX}{digits:0NAME_DIGITS$x}.{}", kind.as_str()).into())
}

fn is_our_name(name: &OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)?.split_once('.'));
    parts.is_some_and(|(digits, extension)| {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits.len() == NAME_DIGITS
            && digits.bytes().all(is_digit)
            && SpillExtension::ALL.iter().any(|known| known.as_str() == extension)
    })
}
