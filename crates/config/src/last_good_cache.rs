//! A cache of the last good content of files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The last good content of files. The default value stores nothing, for a single load.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastGoodCache(Option<HashMap<PathBuf, Vec<u8>>>);

impl LastGoodCache {
    /// Creates a cache that stores content.
    pub fn enabled() -> Self {
        Self(Some(HashMap::new()))
    }

    /// Stores the content of a file.
    pub fn store(&mut self, file: &Path, bytes: Vec<u8>) {
        if let Some(good) = &mut self.0 {
            good.insert(file.to_owned(), bytes);
        }
    }

    /// Removes the content of a file.
    pub fn forget(&mut self, file: &Path) {
        self.0.iter_mut().for_each(|good| drop(good.remove(file)));
    }

    /// Returns the last stored content of a file.
    pub fn get(&self, file: &Path) -> Option<&[u8]> {
        self.0.as_ref()?.get(file).map(Vec::as_slice)
    }
}
