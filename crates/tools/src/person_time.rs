//! Time that a call spends waiting for a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Total time that one call has waited for a person's answers. Clones share the total.
#[derive(Debug, Clone, Default)]
pub struct PersonTime(Arc<AtomicU64>);

/// Measures one wait. Dropping it adds the wait to the total.
#[derive(Debug)]
pub struct PersonWait {
    total: PersonTime,
    began: Instant,
}

impl PersonTime {
    /// Starts to measure a wait.
    pub fn start_wait(&self) -> PersonWait {
        PersonWait { total: self.clone(), began: Instant::now() }
    }

    /// Adds a wait that was measured elsewhere.
    pub fn add(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the total of all finished waits.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Drop for PersonWait {
    fn drop(&mut self) {
        self.total.add(self.began.elapsed());
    }
}
