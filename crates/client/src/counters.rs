//! Counters of messages and anomalies, so that nothing is discarded without a trace.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of occurrences of each anomaly on a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCounters {
    /// Lines of output that are not messages.
    pub noise: u64,
    /// Messages that cannot be used.
    pub broken: u64,
    /// Messages over a size limit or the memory budget.
    pub oversized: u64,
    /// Responses without a matching call in flight, and cancellations of unknown requests.
    pub unmatched: u64,
    /// Requests that the server is not allowed to send.
    pub unwanted_requests: u64,
    /// Errors from the server without the id of a call.
    pub stray_errors: u64,
    /// Notifications.
    pub notifications: u64,
    /// Progress notifications without a matching call.
    pub stray_progress: u64,
    /// Notifications that match no call and no subscription.
    pub strays: u64,
    /// Server requests declined without prompting, because there were too many.
    pub turned_away: u64,
    /// Notifications, replies and cancellations not sent: the queue was full, or HTTP failed.
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
/// Minimum time between two log lines of the same kind, except for the total at the end of the connection.
const LOG_INTERVAL: Duration = Duration::from_secs(600);

/// Text of the log line with the total of each kind, in the order of [`CounterKind`].
const TOTAL_TEXTS: [&str; COUNTER_KINDS] = [
    "server wrote lines to stdout that are not messages",
    "malformed messages",
    "messages over a size limit",
    "responses without a call",
    "server requests that the revision does not allow",
    "errors without a request id",
    "notifications",
    "progress without a call",
    "notifications of unknown subscriptions",
    "prompts declined because there were too many",
    "notifications and replies that were not sent",
];

/// Log lines written about one kind of anomaly.
#[derive(Debug, Clone, Copy, Default)]
struct AnomalyLog {
    last_line: Option<Instant>,
    /// Anomalies counted by the last line.
    logged: u64,
}

impl AnomalyLog {
    /// Reports whether an anomaly gets a line of its own, and records the line.
    fn admit_line(&mut self, now: Instant, total: u64) -> bool {
        let is_due = self.last_line.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL);
        if is_due {
            *self = Self { last_line: Some(now), logged: total };
        }
        is_due
    }

    /// Reports whether anomalies occurred after the last line, and records a line with their total.
    fn admit_total(&mut self, total: u64) -> bool {
        let is_due = self.last_line.is_some() && total > self.logged;
        self.logged = self.logged.max(total);
        is_due
    }
}

/// Counts anomalies and logs them at a limited rate.
#[derive(Debug)]
pub(crate) struct CounterSet {
    server: String,
    counts: [AtomicU64; COUNTER_KINDS],
    logs: Mutex<[AnomalyLog; COUNTER_KINDS]>,
}

impl CounterSet {
    pub fn new(server: String) -> Self {
        Self { server, counts: Default::default(), logs: Mutex::default() }
    }

    /// Counts an ordinary event without logging it.
    pub fn count(&self, kind: CounterKind) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an anomaly and logs it. The log line names the server. Text of the server in it is an excerpt: escaped,
    /// redacted and cut.
    pub fn count_and_warn(&self, kind: CounterKind, what: &str) {
        let total = self.counts[kind as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let is_due = self.logs()[kind as usize].admit_line(Instant::now(), total);
        if is_due {
            tracing::warn!(server = %self.server, total, "{what}");
        }
    }

    /// Logs the total of each kind that occurred again after its last log line.
    pub fn log_totals(&self) {
        for (kind, text) in TOTAL_TEXTS.into_iter().enumerate() {
            let total = self.counts[kind].load(Ordering::Relaxed);
            let is_due = self.logs()[kind].admit_total(total);
            if is_due {
                tracing::warn!(server = %self.server, total, "{text}");
            }
        }
    }

    fn logs(&self) -> MutexGuard<'_, [AnomalyLog; COUNTER_KINDS]> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Drop for CounterSet {
    fn drop(&mut self) {
        self.log_totals();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G4.
    #[test]
    fn repeated_anomaly_is_logged_once_and_with_its_total() {
        let (mut log, began) = (AnomalyLog::default(), Instant::now());
        assert!(!log.admit_total(0), "no anomaly has no total");
        assert!(log.admit_line(began, 1));
        assert!(!log.admit_total(1), "one anomaly has its line");
        for seconds in 1..60 {
            assert!(!log.admit_line(began + Duration::from_secs(seconds), 1 + seconds), "after {seconds} s");
        }
        assert!(log.admit_total(60) && !log.admit_total(60), "the total is logged once");
        assert!(log.admit_line(began + LOG_INTERVAL, 61));
    }
}
