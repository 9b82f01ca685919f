//! What a description leads to on this machine, looked at and not touched: programs, files, variables.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wharf_spec::{Fingerprint, Surroundings};

use crate::expand::{Part, parts, variable};

/// The most of a file that is read to recognise it.
const LIMIT: u64 = 64 << 20;
/// How much of it is read at once.
const PIECE: usize = 64 << 10;

/// A text with the variables that are set, for finding files; what cannot be had stays as it is.
pub(super) fn expanded(text: &str, around: &Surroundings) -> String {
    let filled = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Variable { name, default } => variable(name, default, around).unwrap_or_else(|_| format!("${{{name}}}")),
        Part::Secret(name) => format!("${{secret:{name}}}"),
        Part::Foreign(inner) => format!("${{{inner}}}"),
        Part::Unclosed => "${".to_owned(),
    };
    parts(text).into_iter().map(filled).collect()
}

/// The file that a command means: a path as it is, from the server's directory; a name from the absolute entries of
/// `PATH` outside the project. This is how the program is found when it is started.
pub(super) fn program(command: &str, path: &str, cwd: &Path, around: &Surroundings) -> Option<PathBuf> {
    if command.contains('/') {
        return cwd.join(command).canonicalize().ok();
    }
    on_path(command, OsStr::new(path), around)?.canonicalize().ok()
}

/// The program of this name in the absolute entries of a path that are outside the project, so that no project brings
/// its own.
pub fn on_path(name: &str, path: &OsStr, around: &Surroundings) -> Option<PathBuf> {
    let is_trusted =
        |entry: &PathBuf| entry.is_absolute() && !project(around).is_some_and(|own| entry.starts_with(own));
    std::env::split_paths(path).filter(is_trusted).map(|entry| entry.join(name)).find(|file| is_executable(file))
}

fn project(around: &Surroundings) -> Option<&Path> {
    let is_home = around.var("HOME").is_some_and(|home| Path::new(home).starts_with(&around.cwd));
    (!is_home && around.cwd.parent().is_some()).then_some(around.cwd.as_path())
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// What tells a file from another that is put in its place.
pub(super) fn identity(file: &Path) -> Option<String> {
    let data: Metadata = file.metadata().ok().filter(Metadata::is_file)?;
    let (device, inode, size) = (data.dev(), data.ino(), data.size());
    Some(format!("{size} bytes, inode {device}:{inode}, changed at {}.{:09}", data.mtime(), data.mtime_nsec()))
}

/// What a file's content is, in words: what it hashes to, or what else tells it from another where it is too large.
pub(super) fn content(path: &Path) -> String {
    match hashed(path) {
        Ok(Some(digest)) => format!("SHA-256 {digest}"),
        Ok(None) => format!("too large to be read: {}", identity(path).unwrap_or_default()),
        Err(_) => "cannot be read".to_owned(),
    }
}

/// The hash of a regular file's content; nothing if there is more of it than is read for this.
fn hashed(path: &Path) -> io::Result<Option<Fingerprint>> {
    // Opening a pipe would wait for somebody to write.
    if !path.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?.take(LIMIT + 1);
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hash.update(&piece[..count]),
        }
    }
    Ok((file.limit() > 0).then(|| Fingerprint(hash.finalize().into())))
}

/// A path as text. What is no text is spelt in a way that no other path is.
pub(super) fn spelt(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}
