//! Checks that a file is accessible only to its user, similar to OpenSSH's `StrictModes`.
//!
//! The decisions are pure functions. Their input is the metadata of open files and of the directories above them.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file or directory that other users could read, change or replace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not safe: {flaw}", .path.display())]
pub struct UnsafePath {
    /// Path of the unsafe file, or of an unsafe directory above it.
    pub path: PathBuf,
    /// Kind of violation.
    pub flaw: PathViolation,
}

/// A violation that makes a file or directory unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathViolation {
    /// The path is a symbolic link.
    Link,
    /// The path is not a regular file.
    NotAFile,
    /// The path is not a directory.
    NotADirectory,
    /// Another user owns the file.
    Owner {
        /// User ID of the owner.
        found: u32,
        /// User ID of the expected owner.
        expected: u32,
    },
    /// The file has this many hard links, and is reachable through each of them.
    HardLinks(u64),
    /// Group or others have permissions on it. Holds the mode.
    Exposed(u32),
    /// Group or others can replace entries of the directory. Holds the mode.
    Writable(u32),
}

impl UnsafePath {
    /// Returns the remedy: a shell command where possible.
    pub fn fix(&self) -> String {
        let path = ShellQuoted(&self.path);
        match self.flaw {
            PathViolation::Link => {
                format!("replace the link with the file: cp {path} {path}.own && mv {path}.own {path}")
            }
            PathViolation::NotAFile | PathViolation::NotADirectory => {
                format!("move it aside: mv {path} {path}.old")
            }
            PathViolation::Owner { expected, .. } => format!("sudo chown {expected} {path}"),
            PathViolation::HardLinks(_) => format!("cp -p {path} {path}.own && mv {path}.own {path}"),
            PathViolation::Exposed(_) => format!("chmod go-rwx {path}"),
            PathViolation::Writable(_) => format!("chmod go-w {path}"),
        }
    }
}

impl fmt::Display for PathViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("symbolic link"),
            Self::NotAFile => f.write_str("not a regular file"),
            Self::NotADirectory => f.write_str("not a directory"),
            Self::Owner { found, expected } => write!(f, "owned by user {found}, expected user {expected}"),
            Self::HardLinks(count) => write!(f, "{count} hard links"),
            Self::Exposed(mode) => write!(f, "accessible to other users (mode {mode:03o})"),
            Self::Writable(mode) => write!(f, "other users can replace its entries (mode {mode:03o})"),
        }
    }
}

/// A path, quoted for the shell.
struct ShellQuoted<'a>(&'a Path);

impl fmt::Display for ShellQuoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string_lossy();
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+@".contains(character);
        match text.chars().all(is_plain) {
            true => f.write_str(&text),
            false => write!(f, "'{}'", text.replace('\'', r"'\''")),
        }
    }
}

/// An error of checking a path.
#[derive(Debug)]
pub(crate) enum PathCheckError {
    Unsafe(UnsafePath),
    Io(io::Error),
}

/// Checks that an open file is accessible only to this user.
pub(crate) fn check_private_file(path: &Path, metadata: &Metadata) -> Result<(), UnsafePath> {
    file_violation(&FileAttributes::from_metadata(metadata), effective_uid())
        .map_err(|flaw| UnsafePath { path: path.to_owned(), flaw })
}

/// Checks that an open directory is accessible only to this user.
pub(crate) fn check_private_dir(path: &Path, metadata: &Metadata) -> Result<(), UnsafePath> {
    private_dir_violation(&FileAttributes::from_metadata(metadata), effective_uid())
        .map_err(|flaw| UnsafePath { path: path.to_owned(), flaw })
}

/// Checks that an open directory is writable only by this user. Other users may read it.
pub(crate) fn check_unwritable_by_others(path: &Path, metadata: &Metadata) -> Result<(), UnsafePath> {
    unwritable_dir_violation(&FileAttributes::from_metadata(metadata), effective_uid())
        .map_err(|flaw| UnsafePath { path: path.to_owned(), flaw })
}

/// Checks that no other user can replace any directory on the path. The path must not contain symbolic links.
pub(crate) fn check_parent_dirs(folder: &Path) -> Result<(), PathCheckError> {
    for above in folder.ancestors() {
        let metadata = std::fs::symlink_metadata(above).map_err(PathCheckError::Io)?;
        parent_dir_violation(&FileAttributes::from_metadata(&metadata), effective_uid())
            .map_err(|flaw| PathCheckError::Unsafe(UnsafePath { path: above.to_owned(), flaw }))?;
    }
    Ok(())
}

fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Metadata that the checks depend on.
#[derive(Debug, Clone, Copy)]
struct FileAttributes {
    kind: FileKind,
    mode: u32,
    owner: u32,
    links: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    File,
    Directory,
    Other,
}

impl FileAttributes {
    fn from_metadata(metadata: &Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => FileKind::File,
            kind if kind.is_dir() => FileKind::Directory,
            _ => FileKind::Other,
        };
        Self { kind, mode: metadata.mode() & 0o7777, owner: metadata.uid(), links: metadata.nlink() }
    }
}

fn file_violation(facts: &FileAttributes, us: u32) -> Result<(), PathViolation> {
    match *facts {
        FileAttributes { kind, .. } if kind != FileKind::File => Err(PathViolation::NotAFile),
        FileAttributes { owner, .. } if owner != us => Err(PathViolation::Owner { found: owner, expected: us }),
        FileAttributes { links, .. } if links > 1 => Err(PathViolation::HardLinks(links)),
        FileAttributes { mode, .. } if mode & 0o077 != 0 => Err(PathViolation::Exposed(mode)),
        _ => Ok(()),
    }
}

fn private_dir_violation(facts: &FileAttributes, us: u32) -> Result<(), PathViolation> {
    match *facts {
        FileAttributes { kind, .. } if kind != FileKind::Directory => Err(PathViolation::NotADirectory),
        FileAttributes { owner, .. } if owner != us => Err(PathViolation::Owner { found: owner, expected: us }),
        FileAttributes { mode, .. } if mode & 0o077 != 0 => Err(PathViolation::Exposed(mode)),
        _ => Ok(()),
    }
}

fn unwritable_dir_violation(facts: &FileAttributes, us: u32) -> Result<(), PathViolation> {
    match *facts {
        FileAttributes { kind, .. } if kind != FileKind::Directory => Err(PathViolation::NotADirectory),
        FileAttributes { owner, .. } if owner != us => Err(PathViolation::Owner { found: owner, expected: us }),
        FileAttributes { mode, .. } if mode & 0o022 != 0 => Err(PathViolation::Writable(mode)),
        _ => Ok(()),
    }
}

/// With the sticky bit set, other users can add entries but replace only their own.
fn parent_dir_violation(facts: &FileAttributes, us: u32) -> Result<(), PathViolation> {
    match *facts {
        FileAttributes { kind, .. } if kind != FileKind::Directory => Err(PathViolation::NotADirectory),
        FileAttributes { owner, .. } if owner != us && owner != 0 => {
            Err(PathViolation::Owner { found: owner, expected: us })
        }
        FileAttributes { mode, .. } if mode & 0o022 != 0 && mode & 0o1000 == 0 => Err(PathViolation::Writable(mode)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u32 = 1000;

    type AttributeCase = (FileKind, u32, u32, u64, Result<(), PathViolation>);

    fn check(judge: fn(&FileAttributes, u32) -> Result<(), PathViolation>, cases: &[AttributeCase]) {
        for &(kind, mode, owner, links, expected) in cases {
            let facts = FileAttributes { kind, mode, owner, links };
            assert_eq!(judge(&facts, US), expected, "{facts:?}");
        }
    }

    fn foreign(found: u32) -> Result<(), PathViolation> {
        Err(PathViolation::Owner { found, expected: US })
    }

    #[test]
    fn only_private_owned_files_are_safe() {
        let cases = [
            (FileKind::File, 0o600, US, 1, Ok(())),
            (FileKind::File, 0o400, US, 1, Ok(())),
            (FileKind::File, 0o640, US, 1, Err(PathViolation::Exposed(0o640))),
            (FileKind::File, 0o604, US, 1, Err(PathViolation::Exposed(0o604))),
            (FileKind::File, 0o620, US, 1, Err(PathViolation::Exposed(0o620))),
            (FileKind::File, 0o601, US, 1, Err(PathViolation::Exposed(0o601))),
            (FileKind::File, 0o600, US, 2, Err(PathViolation::HardLinks(2))),
            (FileKind::File, 0o600, 0, 1, foreign(0)),
            (FileKind::File, 0o600, 1001, 1, foreign(1001)),
            (FileKind::Directory, 0o700, US, 2, Err(PathViolation::NotAFile)),
            (FileKind::Other, 0o600, US, 1, Err(PathViolation::NotAFile)),
        ];
        check(file_violation, &cases);
    }

    #[test]
    fn unsafe_directories_are_detected() {
        let own = [
            (FileKind::Directory, 0o700, US, 2, Ok(())),
            (FileKind::Directory, 0o750, US, 2, Err(PathViolation::Exposed(0o750))),
            (FileKind::Directory, 0o1777, US, 2, Err(PathViolation::Exposed(0o1777))),
            (FileKind::Directory, 0o700, 0, 2, foreign(0)),
            (FileKind::File, 0o600, US, 1, Err(PathViolation::NotADirectory)),
        ];
        check(private_dir_violation, &own);
        let unshared = [
            (FileKind::Directory, 0o700, US, 2, Ok(())),
            (FileKind::Directory, 0o755, US, 2, Ok(())),
            (FileKind::Directory, 0o775, US, 2, Err(PathViolation::Writable(0o775))),
            (FileKind::Directory, 0o1777, US, 2, Err(PathViolation::Writable(0o1777))),
            (FileKind::Directory, 0o700, 0, 2, foreign(0)),
            (FileKind::Directory, 0o700, 1001, 2, foreign(1001)),
            (FileKind::File, 0o600, US, 1, Err(PathViolation::NotADirectory)),
        ];
        check(unwritable_dir_violation, &unshared);
        let passed = [
            (FileKind::Directory, 0o755, US, 2, Ok(())),
            (FileKind::Directory, 0o755, 0, 2, Ok(())),
            (FileKind::Directory, 0o1777, 0, 2, Ok(())),
            (FileKind::Directory, 0o777, 0, 2, Err(PathViolation::Writable(0o777))),
            (FileKind::Directory, 0o775, US, 2, Err(PathViolation::Writable(0o775))),
            (FileKind::Directory, 0o702, US, 2, Err(PathViolation::Writable(0o702))),
            (FileKind::Directory, 0o755, 1001, 2, foreign(1001)),
            (FileKind::Other, 0o777, US, 1, Err(PathViolation::NotADirectory)),
        ];
        check(parent_dir_violation, &passed);
    }

    #[test]
    fn fix_commands_are_shell_quoted() {
        for (path, flaw, expected) in [
            ("/a/b.json", PathViolation::Exposed(0o644), "chmod go-rwx /a/b.json"),
            ("/a b/it's", PathViolation::Writable(0o777), r"chmod go-w '/a b/it'\''s'"),
            ("/a/b", PathViolation::Owner { found: 0, expected: 7 }, "sudo chown 7 /a/b"),
        ] {
            assert_eq!(UnsafePath { path: path.into(), flaw }.fix(), expected);
        }
    }
}
