//! What went wrong quietly, counted, so that nothing is dropped in silence.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often each thing has happened on a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Lines of output that were no message at all.
    pub noise: u64,
    /// Messages that could not be used.
    pub broken: u64,
    /// Messages over the size limit.
    pub oversized: u64,
    /// Answers to calls that are not, or no longer, waiting.
    pub unmatched: u64,
    /// Requests a server may not make.
    pub unwanted_requests: u64,
    /// Errors a server reported without saying for which call.
    pub stray_errors: u64,
    /// Notifications.
    pub notifications: u64,
    /// Progress that belonged to no call.
    pub stray_progress: u64,
    /// Notifications that named a subscription nobody has.
    pub strays: u64,
    /// Questions of the server that were turned away unasked, because there were too many.
    pub turned_away: u64,
    /// Our own replies and cancellations that found no room in the queue.
    pub unsent: u64,
}

/// One of the [`Counters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Count {
    Noise,
    Broken,
    Oversized,
    Unmatched,
    UnwantedRequest,
    StrayError,
    Notification,
    StrayProgress,
    Stray,
    TurnedAway,
    Unsent,
}

const KINDS: usize = Count::Unsent as usize + 1;
/// At most one log line of a kind in this time.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Counts, and logs at a bearable rate.
#[derive(Debug)]
pub(crate) struct Tally {
    server: String,
    counts: [AtomicU64; KINDS],
    logged: Mutex<[Option<Instant>; KINDS]>,
}

impl Tally {
    pub fn new(server: String) -> Self {
        Self { server, counts: Default::default(), logged: Mutex::default() }
    }

    /// Counts silently what is ordinary.
    pub fn count(&self, kind: Count) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what is not, with a log line that names the server and never the payload.
    pub fn warn(&self, kind: Count, what: &str) {
        let total = self.counts[kind as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let now = Instant::now();
        let mut logged = self.logged.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let last = &mut logged[kind as usize];
        if last.is_some_and(|last| now.duration_since(last) < LOG_EVERY) {
            return;
        }
        *last = Some(now);
        drop(logged);
        tracing::warn!(server = %self.server, total, "{what}");
    }

    pub fn snapshot(&self) -> Counters {
        let read = |kind: Count| self.counts[kind as usize].load(Ordering::Relaxed);
        Counters {
            noise: read(Count::Noise),
            broken: read(Count::Broken),
            oversized: read(Count::Oversized),
            unmatched: read(Count::Unmatched),
            unwanted_requests: read(Count::UnwantedRequest),
            stray_errors: read(Count::StrayError),
            notifications: read(Count::Notification),
            stray_progress: read(Count::StrayProgress),
            strays: read(Count::Stray),
            turned_away: read(Count::TurnedAway),
            unsent: read(Count::Unsent),
        }
    }
}
