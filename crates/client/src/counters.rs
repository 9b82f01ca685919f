//! Counters of anomalies, so that nothing is discarded without a trace.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of occurrences of each anomaly on a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCounters {
    /// Lines of output that are not messages.
    pub noise: u64,
    /// Messages that cannot be used.
    pub broken: u64,
    /// Messages over the size limit.
    pub oversized: u64,
    /// Responses without a matching call in flight.
    pub unmatched: u64,
    /// Requests that the server is not allowed to send.
    pub unwanted_requests: u64,
    /// Errors from the server without the id of a call.
    pub stray_errors: u64,
    /// Notifications.
    pub notifications: u64,
    /// Progress notifications without a matching call.
    pub stray_progress: u64,
    /// Notifications for an unknown subscription.
    pub strays: u64,
    /// Server requests declined without prompting, because there were too many.
    pub turned_away: u64,
    /// Replies and cancellations not sent because the queue was full.
    pub unsent: u64,
}

/// One of the [`ConnectionCounters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum CounterKind {
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

const COUNTER_KINDS: usize = CounterKind::Unsent as usize + 1;
/// Minimum time between two log lines of the same kind.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Counts anomalies and logs them at a limited rate.
#[derive(Debug)]
pub(crate) struct CounterSet {
    server: String,
    counts: [AtomicU64; COUNTER_KINDS],
    logged: Mutex<[Option<Instant>; COUNTER_KINDS]>,
}

impl CounterSet {
    pub fn new(server: String) -> Self {
        Self { server, counts: Default::default(), logged: Mutex::default() }
    }

    /// Counts an ordinary event without logging it.
    pub fn count(&self, kind: CounterKind) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an anomaly and logs it. The log line names the server. Text of the server in it is an excerpt: escaped,
    /// redacted and cut.
    pub fn count_and_warn(&self, kind: CounterKind, what: &str) {
        let total = self.counts[kind as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let now = Instant::now();
        let mut logged = self.logged.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let last = &mut logged[kind as usize];
        if last.is_some_and(|last| now.duration_since(last) < LOG_INTERVAL) {
            return;
        }
        *last = Some(now);
        drop(logged);
        tracing::warn!(server = %self.server, total, "{what}");
    }

    pub fn snapshot(&self) -> ConnectionCounters {
        let read = |kind: CounterKind| self.counts[kind as usize].load(Ordering::Relaxed);
        ConnectionCounters {
            noise: read(CounterKind::Noise),
            broken: read(CounterKind::Broken),
            oversized: read(CounterKind::Oversized),
            unmatched: read(CounterKind::Unmatched),
            unwanted_requests: read(CounterKind::UnwantedRequest),
            stray_errors: read(CounterKind::StrayError),
            notifications: read(CounterKind::Notification),
            stray_progress: read(CounterKind::StrayProgress),
            strays: read(CounterKind::Stray),
            turned_away: read(CounterKind::TurnedAway),
            unsent: read(CounterKind::Unsent),
        }
    }
}
