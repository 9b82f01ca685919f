//! The files of a package by path, in the order of their paths, so that equal contents give equal bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Mode of a file without the file type.
const FILE_MODE: u32 = 0o644;
const PROGRAM_MODE: u32 = 0o755;

/// One file of a package.
#[derive(Clone)]
pub struct PackageFile {
    pub bytes: Rc<[u8]>,
    pub mode: u32,
}

/// Files by relative path with `/` as the separator.
#[derive(Clone, Default)]
pub struct FileTree {
    files: BTreeMap<String, PackageFile>,
}

impl FileTree {
    pub fn add(&mut self, path: impl Into<String>, bytes: impl Into<Rc<[u8]>>) {
        self.files.insert(path.into(), PackageFile { bytes: bytes.into(), mode: FILE_MODE });
    }

    pub fn add_text(&mut self, path: impl Into<String>, text: &str) {
        self.add(path, text.as_bytes());
    }

    /// Adds an executable file.
    pub fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Rc<[u8]>>) {
        self.files.insert(path.into(), PackageFile { bytes: bytes.into(), mode: PROGRAM_MODE });
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &PackageFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns every directory above a file, parents first.
    pub fn directories(&self) -> BTreeSet<&str> {
        let ends = |path: &str| path.match_indices('/').map(|(end, _)| end).collect::<Vec<_>>();
        self.files.keys().flat_map(|path| ends(path).into_iter().map(|end| &path[..end])).collect()
    }

    pub fn total_bytes(&self) -> usize {
        self.files.values().map(|file| file.bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_precede_their_children() {
        let mut tree = FileTree::default();
        tree.add_text("usr/share/doc/a", "");
        tree.add_text("usr/bin/b", "");
        let directories: Vec<&str> = tree.directories().into_iter().collect();
        assert_eq!(directories, ["usr", "usr/bin", "usr/share", "usr/share/doc"]);
    }
}
