//! Reads the same configuration as often as somebody wants.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use wharf_spec::Surroundings;

use crate::load::{Config, load_again};
use crate::memory::Memory;
use crate::{Layer, Places};

/// Reads a configuration again and again; clones of it remember together.
///
/// A file that cannot be read any more, or is gone for the moment, goes on saying what it said last; what is wrong with it
/// is one of the problems of the [`Config`].
#[derive(Clone)]
pub struct Reader(Arc<Reading>);

struct Reading {
    places: Places,
    around: Surroundings,
    memory: Mutex<Memory>,
}

impl Reader {
    /// Reads what is configured at these places. Nothing is read yet.
    pub fn new(places: Places, around: Surroundings) -> Self {
        Self(Arc::new(Reading { places, around, memory: Mutex::new(Memory::keeping()) }))
    }

    /// Reads everything, one reading after the other. Blocks.
    pub fn read(&self) -> Config {
        let Reading { places, around, memory } = &*self.0;
        load_again(places, around, &mut memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, for somebody who has just asked for it: a file that is gone says nothing any more. Blocks.
    pub fn read_anew(&self) -> Config {
        let gone = self.files().into_iter().filter(|file| !file.exists());
        let mut memory = self.0.memory.lock().unwrap_or_else(PoisonError::into_inner);
        gone.for_each(|file| memory.forget(&file));
        load_again(&self.0.places, &self.0.around, &mut memory)
    }

    /// The files that count, there or not.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let places = &self.0.places;
        let layers = [Layer::Home, Layer::User, Layer::ProjectShared, Layer::Project];
        let usual = layers.into_iter().filter_map(|layer| places.file_of(layer));
        usual.chain(places.flags.iter().cloned()).chain([places.approvals.clone()]).collect()
    }
}
