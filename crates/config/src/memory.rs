//! What files said when they could last be read, for whoever reads them again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The last good content of files; of none, for whoever reads only once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Option<HashMap<PathBuf, Vec<u8>>>);

impl Memory {
    /// One that keeps what it is given.
    pub fn keeping() -> Self {
        Self(Some(HashMap::new()))
    }

    /// Keeps what a file says.
    pub fn keep(&mut self, file: &Path, bytes: Vec<u8>) {
        if let Some(good) = &mut self.0 {
            good.insert(file.to_owned(), bytes);
        }
    }

    /// Forgets what a file said.
    pub fn forget(&mut self, file: &Path) {
        self.0.iter_mut().for_each(|good| drop(good.remove(file)));
    }

    /// What a file said last.
    pub fn last(&self, file: &Path) -> Option<&[u8]> {
        self.0.as_ref()?.get(file).map(Vec::as_slice)
    }
}
