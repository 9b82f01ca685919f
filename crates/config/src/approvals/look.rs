//! What a description leads to on this machine, looked at and not touched: programs, files, variables.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wharf_spec::{Fingerprint, Surroundings, find_program};

use crate::expand::{Part, parts, variable};

/// The most of a file that is read to recognise it.
const LIMIT: u64 = 512 << 20;
/// How much of it is read at once.
const PIECE: usize = 64 << 10;

/// A text with the variables that are set, for finding files; a reference without a value stays as it is.
pub(super) fn expanded(text: &str, project: &Path, around: &Surroundings) -> String {
    let filled = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Variable { name, default } => variable(name, default, around).unwrap_or_else(|_| format!("${{{name}}}")),
        Part::Secret(name) => format!("${{secret:{name}}}"),
        Part::Project => spelt(project),
        Part::Foreign(inner) => format!("${{{inner}}}"),
        Part::Unclosed => "${".to_owned(),
    };
    parts(text).into_iter().map(filled).collect()
}

/// The program of this name in the absolute entries of a path that are outside the project, so that no project brings
/// its own.
pub fn on_path(name: &str, path: &OsStr, around: &Surroundings) -> Option<PathBuf> {
    find_program(OsStr::new(name), path, &around.cwd, around).ok()
}

/// Tells a file from another that is put in its place, without reading it.
fn identity(file: &Path) -> Option<String> {
    let data: Metadata = file.metadata().ok().filter(Metadata::is_file)?;
    let (device, inode, size) = (data.dev(), data.ino(), data.size());
    Some(format!("{size} bytes, inode {device}:{inode}, changed at {}.{:09}", data.ctime(), data.ctime_nsec()))
}

/// Contents of files by their paths, each read once. Lives as long as one look at some entries: servers of a project
/// often share a large interpreter.
#[derive(Default)]
pub(crate) struct Contents(HashMap<PathBuf, String>);

impl Contents {
    /// Describes a file's content. Blocks.
    pub(super) fn describe(&mut self, path: &Path) -> String {
        self.0.entry(path.to_owned()).or_insert_with(|| content(path)).clone()
    }
}

/// Describes a file's content: its hash, or its size, inode and times where it is too large to be read.
fn content(path: &Path) -> String {
    match hashed(path) {
        Ok(Some(digest)) => format!("SHA-256 {digest}"),
        Ok(None) => format!("too large to be read: {}", identity(path).unwrap_or_default()),
        Err(_) => "cannot be read".to_owned(),
    }
}

/// The hash of a regular file's content; nothing if the file is larger than the limit.
fn hashed(path: &Path) -> io::Result<Option<Fingerprint>> {
    let data = path.metadata()?;
    // Opening a pipe would wait for a writer.
    if !data.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if data.size() > LIMIT {
        return Ok(None);
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
