//! What a description leads to on this machine, looked at and not touched: programs, files, variables.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wharf_spec::{Fingerprint, Surroundings};
use wharf_store::{Document, Privacy};

/// What is longer is no path, and is not looked into.
const LONGEST: usize = 4096;
/// The most of a file that is read to recognise it.
const LIMIT: u64 = 4 << 20;

/// What is written between `${` and `}` in a text, `$${` aside.
pub(super) fn references(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let inner = &rest[start + 2..];
        let Some(end) = inner.find('}') else { break };
        if !rest[..start].ends_with('$') {
            found.push(&inner[..end]);
        }
        rest = &inner[end + 1..];
    }
    found
}

/// A text with the variables that are set, for finding files; what is not set stays as it is.
pub(super) fn expanded(text: &str, around: &Surroundings) -> String {
    let mut whole = text.to_owned();
    if text.len() > LONGEST {
        return whole;
    }
    for reference in references(text) {
        let (name, default) = reference.split_once(":-").map_or((reference, None), |(name, rest)| (name, Some(rest)));
        let value = around.var(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy());
        if let Some(value) = value.as_deref().or(default) {
            whole = whole.replace(&format!("${{{reference}}}"), value);
        }
    }
    whole
}

/// The file that a command means: a path as it is, from the server's directory; a name from the absolute entries of
/// `PATH` outside the project. This is how the program is found when it is started.
pub(super) fn program(command: &str, path: &str, cwd: &Path, around: &Surroundings) -> Option<PathBuf> {
    if command.contains('/') {
        return cwd.join(command).canonicalize().ok();
    }
    let is_trusted =
        |entry: &PathBuf| entry.is_absolute() && !project(around).is_some_and(|own| entry.starts_with(own));
    let files = std::env::split_paths(path).filter(is_trusted).map(|entry| entry.join(command));
    files.into_iter().find(|file| is_executable(file))?.canonicalize().ok()
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

/// What a file's content hashes to; nothing if it cannot be read, or is more than is read for this.
pub(super) fn content(file: &Path) -> Option<Fingerprint> {
    let loaded = Document::at(file, Privacy::Shared).with_limit(LIMIT).load().ok()??;
    Some(Fingerprint(Sha256::digest(&loaded.bytes).into()))
}

/// A path as text. What is no text is spelt in a way that no other path is.
pub(super) fn spelt(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}
