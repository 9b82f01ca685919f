//! Lookup and hashing of the programs and files that a server definition refers to.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wharf_spec::{Environment, Fingerprint, find_program};

use crate::expand::{TemplatePart, lookup_variable, parse_template};

/// Maximum bytes of a file to hash.
const MAX_HASHED_BYTES: u64 = 512 << 20;
/// Bytes read at a time.
const READ_CHUNK_BYTES: usize = 64 << 10;

/// Expands the variables that are set, to find files. References without a value stay unchanged.
pub(super) fn expand_for_lookup(text: &str, project: &Path, around: &Environment) -> String {
    let filled = |part| match part {
        TemplatePart::Text(text) => text.to_owned(),
        TemplatePart::Variable { name, default } => {
            lookup_variable(name, default, around).unwrap_or_else(|_| format!("${{{name}}}"))
        }
        TemplatePart::Secret(name) => format!("${{secret:{name}}}"),
        TemplatePart::Project => path_to_text(project),
        TemplatePart::Foreign(inner) => format!("${{{inner}}}"),
        TemplatePart::Unclosed => "${".to_owned(),
    };
    parse_template(text).into_iter().map(filled).collect()
}

/// Finds a program by name in the absolute entries of a search path that are outside of the project, so that a project
/// cannot supply its own.
pub fn find_on_path(name: &str, path: &OsStr, around: &Environment) -> Option<PathBuf> {
    find_program(OsStr::new(name), path, &around.cwd, around).ok()
}

/// Returns a description that distinguishes a file from a replacement without reading it.
fn file_identity(file: &Path) -> Option<String> {
    let data: Metadata = file.metadata().ok().filter(Metadata::is_file)?;
    let (device, inode, size) = (data.dev(), data.ino(), data.size());
    Some(format!("{size} bytes, inode {device}:{inode}, changed at {}.{:09}", data.ctime(), data.ctime_nsec()))
}

/// A cache of content descriptions by path. Used for one inspection of several entries, since servers of a project
/// often share a large interpreter.
#[derive(Default)]
pub(crate) struct FileDigestCache(HashMap<PathBuf, String>);

impl FileDigestCache {
    /// Describes a file's content. Blocks.
    pub(super) fn describe(&mut self, path: &Path) -> String {
        self.0.entry(path.to_owned()).or_insert_with(|| describe_content(path)).clone()
    }
}

/// Describes a file's content by its hash, or by size, inode and change time if it is too large to hash.
fn describe_content(path: &Path) -> String {
    match hash_file(path) {
        Ok(Some(digest)) => format!("SHA-256 {digest}"),
        Ok(None) => format!("too large to hash: {}", file_identity(path).unwrap_or_default()),
        Err(_) => "cannot be read".to_owned(),
    }
}

/// Hashes a regular file. Returns `None` if it is larger than the limit.
fn hash_file(path: &Path) -> io::Result<Option<Fingerprint>> {
    let data = path.metadata()?;
    // Opening a pipe would block until there is a writer.
    if !data.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if data.size() > MAX_HASHED_BYTES {
        return Ok(None);
    }
    let mut file = File::open(path)?.take(MAX_HASHED_BYTES + 1);
    let mut hash = Sha256::new();
    let mut piece = vec![0; READ_CHUNK_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hash.update(&piece[..count]),
        }
    }
    Ok((file.limit() > 0).then(|| Fingerprint(hash.finalize().into())))
}

/// Returns a path as text. A path that is not UTF-8 is written in debug format, which is unambiguous.
pub(super) fn path_to_text(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}
