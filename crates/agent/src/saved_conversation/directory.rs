//! The directory of saved conversations and their ids.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wharf_spec::Timestamp;

use super::{SavedConversationError, file_error};

const EXTENSION: &str = "jsonl";
/// Alphabet of id suffixes, without characters that are easily confused.
const ID_ALPHABET: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";

/// Creates a directory with mode 0700, or restricts an existing one to the current user.
pub(super) fn ensure_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if directory.metadata()?.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Returns an id that sorts by creation time, such as `20261115-103005-x7k2`.
pub(super) fn new_id(now: SystemTime) -> String {
    let time: String = Timestamp(now).to_string().chars().filter(|letter| !"-:".contains(*letter)).collect();
    let dice = getrandom::u32().unwrap_or_default();
    let letter = |shift: u32| char::from(ID_ALPHABET[(dice >> shift) as usize % ID_ALPHABET.len()]);
    let suffix: String = [0, 5, 10, 15].into_iter().map(letter).collect();
    format!("{}-{suffix}", time[..15].replace('T', "-"))
}

pub(super) fn conversation_path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.{EXTENSION}"))
}

/// Finds a conversation by its id or a prefix, or the most recent one.
pub(super) fn find_id(directory: &Path, id: Option<&str>) -> Result<String, SavedConversationError> {
    let all = newest_first(directory)?;
    let Some(id_prefix) = id else {
        return all.into_iter().next().map(|(id, _)| id).ok_or(SavedConversationError::Nothing);
    };
    let mut fitting: Vec<String> = all.into_iter().map(|(id, _)| id).filter(|id| id.starts_with(id_prefix)).collect();
    if let Some(exactly) = fitting.iter().position(|id| id == id_prefix) {
        return Ok(fitting.swap_remove(exactly));
    }
    match (fitting.pop(), fitting.is_empty()) {
        (Some(only), true) if !id_prefix.is_empty() => Ok(only),
        (None, _) => Err(SavedConversationError::Unknown(id_prefix.to_owned())),
        _ => Err(SavedConversationError::Ambiguous(id_prefix.to_owned())),
    }
}

/// Lists all conversations with the time of their last change, newest first. Ignores subdirectories and symbolic links.
pub(super) fn newest_first(directory: &Path) -> Result<Vec<(String, SystemTime)>, SavedConversationError> {
    let entries = match directory.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file_error(directory)(error)),
    };
    let found = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let id = name.strip_suffix(EXTENSION)?.strip_suffix('.').filter(|id| !id.is_empty())?;
        // Does not follow symbolic links.
        let metadata = entry.metadata().ok().filter(|metadata| metadata.is_file())?;
        Some((id.to_owned(), metadata.modified().ok()?))
    });
    let mut found: Vec<(String, SystemTime)> = found.collect();
    found.sort_by(|(id, at), (other, then)| (then, other).cmp(&(at, id)));
    Ok(found)
}
