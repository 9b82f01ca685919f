//! Lock-free counting of a server's use.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::supervise::ServerActivity;

/// Calls in progress on a server, and the time of its last use.
pub(crate) struct ServerUsage {
    born: Instant,
    in_flight: AtomicUsize,
    held: AtomicUsize,
    last_used: AtomicU64,
    became_unused: Notify,
}

/// A call in progress, counted until it is dropped.
pub(crate) struct UsageGuard<'a>(&'a ServerUsage);

impl ServerUsage {
    pub fn new() -> Self {
        Self {
            born: Instant::now(),
            in_flight: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            last_used: AtomicU64::new(0),
            became_unused: Notify::new(),
        }
    }

    /// Counts a call until the guard is dropped.
    pub fn track_call(&self) -> UsageGuard<'_> {
        self.begin_call();
        UsageGuard(self)
    }

    /// Counts a call until [`Self::end_call`] is called.
    pub fn begin_call(&self) {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
    }

    pub fn end_call(&self) {
        self.touch();
        if self.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.became_unused.notify_waiters();
        }
    }

    /// Sets the number of holds that prevent an idle stop.
    pub fn set_holds(&self, holders: usize) {
        self.held.store(holders, Ordering::Release);
    }

    /// Returns the end of the last call, or the current time while a call is in progress.
    fn last_used(&self) -> Instant {
        if self.in_flight.load(Ordering::Acquire) > 0 {
            return Instant::now();
        }
        self.born + Duration::from_millis(self.last_used.load(Ordering::Acquire))
    }

    pub fn activity(&self) -> ServerActivity {
        ServerActivity {
            in_flight: self.in_flight.load(Ordering::Acquire),
            held: self.held.load(Ordering::Acquire),
            last_used: self.last_used(),
        }
    }

    /// Returns the number of calls in progress.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Resolves once no call is in progress.
    pub async fn wait_until_unused(&self) {
        loop {
            let unused = self.became_unused.notified();
            if self.in_flight() == 0 {
                return;
            }
            unused.await;
        }
    }

    fn touch(&self) {
        let millis = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.fetch_max(millis, Ordering::AcqRel);
    }
}

impl Drop for UsageGuard<'_> {
    fn drop(&mut self) {
        self.0.end_call();
    }
}
