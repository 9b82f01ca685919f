//! Repeated loading of the same configuration.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use wharf_spec::Environment;

use crate::last_good_cache::LastGoodCache;
use crate::load::{Config, reload};
use crate::{ConfigPaths, Layer};

/// Loads a configuration repeatedly. Clones share their cache.
///
/// For a file that is missing or unreadable, the last good content applies, and the [`Config`] lists the problem.
#[derive(Clone)]
pub struct ConfigReader(Arc<ReaderState>);

struct ReaderState {
    places: ConfigPaths,
    around: Environment,
    memory: Mutex<LastGoodCache>,
}

impl ConfigReader {
    /// Creates a reader for these locations. Does not read anything yet.
    pub fn new(places: ConfigPaths, around: Environment) -> Self {
        Self(Arc::new(ReaderState { places, around, memory: Mutex::new(LastGoodCache::enabled()) }))
    }

    /// Loads all layers. Concurrent calls run one at a time. Blocks.
    pub fn read(&self) -> Config {
        let ReaderState { places, around, memory } = &*self.0;
        reload(places, around, &mut memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads all layers on explicit request: a missing file is treated as empty, without its last good content. Blocks.
    pub fn reload(&self) -> Config {
        let gone = self.files().into_iter().filter(|file| !file.exists());
        let mut memory = self.0.memory.lock().unwrap_or_else(PoisonError::into_inner);
        gone.for_each(|file| memory.forget(&file));
        reload(&self.0.places, &self.0.around, &mut memory)
    }

    /// Returns all files that are relevant, existing or not.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let places = &self.0.places;
        let layers = [Layer::Home, Layer::User, Layer::ProjectShared, Layer::Project];
        let usual = layers.into_iter().filter_map(|layer| places.layer_file(layer));
        usual.chain(places.flags.iter().cloned()).chain([places.approvals.clone()]).collect()
    }
}
