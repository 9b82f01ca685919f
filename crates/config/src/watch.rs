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

use crate::{Config, Reader};

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(500);
/// How long nothing may have changed before a change counts.
const SETTLED: Duration = Duration::from_millis(200);
/// A file that never rests is read all the same after this many times as long.
const MOST_ROUNDS: u32 = 25;

/// Watches every file of a configuration, and what was approved.
///
/// What it reads is read by a [`Reader`], which others may read with as well. Needs a runtime of tokio with its clock.
pub struct Watch {
    reader: Reader,
    every: Duration,
    settled: Duration,
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
    pub fn new(reader: Reader) -> Self {
        // Looked at before it is read: what changes in between is seen the next time.
        let seen = stamps(&reader.files());
        let current = Arc::new(reader.read());
        Self { reader, every: EVERY, settled: SETTLED, seen, current }
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
            let stamps = look(&self.reader).await;
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
            let now = look(&self.reader).await;
            if now == stamps {
                break;
            }
            stamps = now;
        }
        stamps
    }

    /// Reads everything again; says whether anything is different.
    async fn read(&mut self, stamps: Vec<Option<Stamp>>) -> bool {
        let reader = self.reader.clone();
        // Where the thread broke off, the next look tries again.
        let Ok(config) = tokio::task::spawn_blocking(move || reader.read()).await else { return false };
        self.seen = stamps;
        if config.is_same(&self.current) {
            return false;
        }
        self.current = Arc::new(config);
        true
    }
}

async fn look(reader: &Reader) -> Vec<Option<Stamp>> {
    let files = reader.files();
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
    use crate::Places;
    use wharf_spec::Surroundings;

    #[tokio::test]
    async fn the_same_again_is_no_change() {
        let directory = tempfile::tempdir().unwrap();
        let places = Places { user: directory.path().join("config.json"), ..Places::default() };
        let write = |text: &str| std::fs::write(&places.user, text).unwrap();
        write(r#"{"mcpServers": {"one": {"command": "a"}}}"#);
        let mut watch = Watch::new(Reader::new(places.clone(), Surroundings::default()));
        for (text, changes) in [
            (r#"{"mcpServers": {"one": {"command": "a"}}}"#, false),
            (r#"{"mcpServers": {"one": {"command": "b"}}}"#, true),
            ("{", true),
            ("{", false),
            (r#"{"mcpServers": {"one": {"command": "b"}}}"#, true),
        ] {
            write(text);
            let stamps = stamps(&watch.reader.files());
            assert_ne!(stamps, watch.seen, "{text} was not noticed");
            assert_eq!(watch.read(stamps).await, changes, "{text}");
            assert_eq!(watch.config().servers.len(), 1);
        }
    }
}
