//! Files for the length of a test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file with this content. Dropping it removes it.
pub struct File(PathBuf);

impl File {
    pub fn holding(content: &str) -> File {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("below-{}-{number}.pem", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, content).unwrap();
        File(path)
    }

    pub fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}
