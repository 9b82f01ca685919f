//! Finds the repository that a directory belongs to. Reads the file system.

use std::path::Path;

/// Returns the root of the repository that a directory is in. A repository at the home directory or above does not
/// count.
pub fn repository_root<'a>(directory: &'a Path, home: Option<&Path>) -> Option<&'a Path> {
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    let is_home_or_above = |directory: &Path| home.as_ref().is_some_and(|home| home.starts_with(directory));
    let mut candidates = directory.ancestors().take_while(|directory| !is_home_or_above(directory));
    candidates.find(|directory| directory.join(".git").symlink_metadata().is_ok())
}
