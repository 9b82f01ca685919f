//! Sees when what is configured changes, and reads it again.
//!
//! Files are looked at from time to time instead of having the system tell: that works alike on every file system, sees
//! files of directories that are not there yet, files that are replaced and what links lead to, and a look at half a
//! dozen files costs a few microseconds. A change counts once nothing has changed for a moment.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use wharf_spec::Surroundings;

use crate::load::{Config, load_again};
use crate::memory::Memory;
use crate::{Layer, Places};

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(500);
/// How long nothing may have changed before a change counts.
const SETTLED: Duration = Duration::from_millis(200);
/// A file that never rests is read all the same after this many times as long.
const MOST_ROUNDS: u32 = 25;

/// Watches every file of a configuration, and what was approved.
///
/// A file that cannot be read any more, or is gone, goes on saying what it said last; what is wrong with it is one of
/// the problems of the [`Config`]. Needs a runtime of tokio with its clock.
pub struct Watch {
    places: Places,
    around: Surroundings,
    every: Duration,
    settled: Duration,
    memory: Memory,
    seen: Vec<Option<Stamp>>,
    current: Arc<Config>,
}

/// What tells two contents of a file apart without reading them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Watch {
    /// Reads everything and begins to watch. Blocks while it reads.
    pub fn new(places: Places, around: Surroundings) -> Self {
        // Looked at before it is read: what changes in between is seen the next time.
        let seen = stamps(&files(&places));
        let mut memory = Memory::keeping();
        let current = Arc::new(load_again(&places, &around, &mut memory));
        Self { places, around, every: EVERY, settled: SETTLED, memory, seen, current }
    }

    /// Looks at the files this often, and lets a change count after this long without another.
    #[must_use]
    pub fn paced(mut self, every: Duration, settled: Duration) -> Self {
        (self.every, self.settled) = (every, settled);
        self
    }

    /// What is configured now.
    pub fn config(&self) -> &Arc<Config> {
        &self.current
    }

    /// Waits until something else is configured. A file that is written anew with what it said before is no change.
    ///
    /// Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Arc<Config> {
        loop {
            sleep(self.every).await;
            let stamps = look(&self.places).await;
            if stamps != self.seen {
                let stamps = self.at_rest(stamps).await;
                if self.read(stamps).await {
                    return Arc::clone(&self.current);
                }
            }
        }
    }

    /// The files as they are once nothing changes any more.
    async fn at_rest(&self, mut stamps: Vec<Option<Stamp>>) -> Vec<Option<Stamp>> {
        let until = Instant::now() + self.settled * MOST_ROUNDS;
        while Instant::now() < until {
            sleep(self.settled).await;
            let now = look(&self.places).await;
            if now == stamps {
                break;
            }
            stamps = now;
        }
        stamps
    }

    /// Reads everything again; says whether anything is different.
    async fn read(&mut self, stamps: Vec<Option<Stamp>>) -> bool {
        let (places, around, mut memory) = (self.places.clone(), self.around.clone(), self.memory.clone());
        let read = tokio::task::spawn_blocking(move || (load_again(&places, &around, &mut memory), memory)).await;
        // Where the thread broke off, the next look tries again.
        let Ok((config, memory)) = read else { return false };
        (self.memory, self.seen) = (memory, stamps);
        if config.is_same(&self.current) {
            return false;
        }
        self.current = Arc::new(config);
        true
    }
}

/// The files that count, there or not.
fn files(places: &Places) -> Vec<PathBuf> {
    let layers = [Layer::Home, Layer::User, Layer::ProjectShared, Layer::Project];
    let usual = layers.into_iter().filter_map(|layer| places.file_of(layer));
    usual.chain(places.flags.iter().cloned()).chain([places.approvals.clone()]).collect()
}

async fn look(places: &Places) -> Vec<Option<Stamp>> {
    let files = files(places);
    // Where the thread broke off nothing is there, and the next look tells otherwise.
    tokio::task::spawn_blocking(move || stamps(&files)).await.unwrap_or_default()
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| file.metadata().ok().map(|metadata| Stamp::of(&metadata))).collect()
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_again_is_no_change() {
        let directory = tempfile::tempdir().unwrap();
        let places = Places { user: directory.path().join("config.json"), ..Places::default() };
        let write = |text: &str| std::fs::write(&places.user, text).unwrap();
        write(r#"{"mcpServers": {"one": {"command": "a"}}}"#);
        let mut watch = Watch::new(places.clone(), Surroundings::default());
        for (text, changes) in [
            (r#"{"mcpServers": {"one": {"command": "a"}}}"#, false),
            (r#"{"mcpServers": {"one": {"command": "b"}}}"#, true),
            ("{", true),
            ("{", false),
            (r#"{"mcpServers": {"one": {"command": "b"}}}"#, true),
        ] {
            write(text);
            let stamps = stamps(&files(&places));
            assert_ne!(stamps, watch.seen, "{text} was not noticed");
            assert_eq!(watch.read(stamps).await, changes, "{text}");
            assert_eq!(watch.config().servers.len(), 1);
        }
    }
}
