//! Watches the configuration and reloads it on changes.
//!
//! Files are polled instead of using system notifications. Polling works on every file system, detects files in
//! directories that do not exist yet, replaced files and changed link targets, and costs a few microseconds for half a
//! dozen files. A change takes effect after a short time without further changes.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{Config, ConfigReader};

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time without changes after which a change takes effect.
const SETTLE_TIME: Duration = Duration::from_millis(200);
/// Maximum number of settle periods to wait for a file that keeps changing.
const MAX_SETTLE_ROUNDS: u32 = 25;

/// Watches all files of a configuration and the approvals.
///
/// Loads through a [`ConfigReader`], which may be shared. Requires a tokio runtime with time enabled.
pub struct ConfigWatcher {
    reader: ConfigReader,
    every: Duration,
    settled: Duration,
    seen: Vec<Option<FileStamp>>,
    current: Arc<Config>,
}

/// File metadata that distinguishes two versions of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl ConfigWatcher {
    /// Loads the configuration and starts to watch. Blocks while loading.
    pub fn new(reader: ConfigReader) -> Self {
        // Read the stamps first, so that a change during loading is detected on the next poll.
        let seen = read_stamps(&reader.files());
        let current = Arc::new(reader.read());
        Self { reader, every: POLL_INTERVAL, settled: SETTLE_TIME, seen, current }
    }

    /// Sets the polling interval and the time without changes after which a change takes effect.
    #[must_use]
    pub fn with_intervals(mut self, every: Duration, settled: Duration) -> Self {
        (self.every, self.settled) = (every, settled);
        self
    }

    /// Returns the current configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.current
    }

    /// Waits until the configuration changes, and returns the new one. Rewriting a file with the same content is not a
    /// change.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn next_change(&mut self) -> Arc<Config> {
        loop {
            sleep(self.every).await;
            let stamps = poll_stamps(&self.reader).await;
            if stamps != self.seen {
                let stamps = self.wait_until_stable(stamps).await;
                if self.reload(stamps).await {
                    return Arc::clone(&self.current);
                }
            }
        }
    }

    /// Waits until the files stop changing, and returns their stamps.
    async fn wait_until_stable(&self, mut stamps: Vec<Option<FileStamp>>) -> Vec<Option<FileStamp>> {
        let until = Instant::now() + self.settled * MAX_SETTLE_ROUNDS;
        while Instant::now() < until {
            sleep(self.settled).await;
            let now = poll_stamps(&self.reader).await;
            if now == stamps {
                break;
            }
            stamps = now;
        }
        stamps
    }

    /// Reloads the configuration. Returns whether it differs.
    async fn reload(&mut self, stamps: Vec<Option<FileStamp>>) -> bool {
        let reader = self.reader.clone();
        // If the blocking task fails, the next poll retries.
        let Ok(config) = wharf_threads::run_blocking(move || reader.read()).await else { return false };
        self.seen = stamps;
        if config.has_same_content(&self.current) {
            return false;
        }
        self.current = Arc::new(config);
        true
    }
}

async fn poll_stamps(reader: &ConfigReader) -> Vec<Option<FileStamp>> {
    let files = reader.files();
    // If the blocking task fails, the files are treated as missing until the next poll.
    wharf_threads::run_blocking(move || read_stamps(&files)).await.unwrap_or_default()
}

fn read_stamps(files: &[PathBuf]) -> Vec<Option<FileStamp>> {
    files.iter().map(|file| file.metadata().ok().map(|metadata| FileStamp::from_metadata(&metadata))).collect()
}

impl FileStamp {
    fn from_metadata(metadata: &Metadata) -> Self {
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
    use crate::ConfigPaths;
    use wharf_spec::Environment;

    #[tokio::test]
    async fn identical_content_is_not_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let places = ConfigPaths { user: directory.path().join("config.json"), ..ConfigPaths::default() };
        let write = |text: &str| std::fs::write(&places.user, text).unwrap();
        write(r#"{"mcpServers": {"one": {"command": "a"}}}"#);
        let mut watch = ConfigWatcher::new(ConfigReader::new(places.clone(), Environment::default()));
        for (text, changes) in [
            (r#"{"mcpServers": {"one": {"command": "a"}}}"#, false),
            (r#"{"mcpServers": {"one": {"command": "b"}}}"#, true),
            ("{", true),
            ("{", false),
            (r#"{"mcpServers": {"one": {"command": "b"}}}"#, true),
        ] {
            write(text);
            let stamps = read_stamps(&watch.reader.files());
            assert_ne!(stamps, watch.seen, "{text} was not noticed");
            assert_eq!(watch.reload(stamps).await, changes, "{text}");
            assert_eq!(watch.config().servers.len(), 1);
        }
    }
}
