//! Poll schedule. Pure: time and randomness are parameters.

use std::time::Duration;

/// Minimum interval between two polls.
pub(crate) const MIN_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Default interval between two polls.
pub(crate) const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum interval between two polls.
pub(crate) const MAX_POLL_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Maximum wait after failures, unless the interval itself is longer.
const MAX_POLL_BACKOFF: Duration = Duration::from_secs(300);
/// Maximum number of doublings of the wait.
const MAX_DOUBLINGS: u32 = 10;

/// Poll schedule of one subscription.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollBackoff {
    interval: Duration,
    failures: u32,
}

impl PollBackoff {
    pub fn new(interval: Duration) -> Self {
        Self { interval: interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL), failures: 0 }
    }

    /// Records whether a poll succeeded.
    pub fn record(&mut self, success: bool) {
        self.failures = if success { 0 } else { self.failures.saturating_add(1) };
    }

    /// Returns the wait after the poll that has just ended. It doubles with every failure and has a jitter of 10 %.
    /// `dice` receives the full spread and returns a part of it.
    pub fn next_wait(self, dice: impl FnOnce(Duration) -> Duration) -> Duration {
        let doubled = self.interval.saturating_mul(1 << self.failures.min(MAX_DOUBLINGS));
        let wait = doubled.min(MAX_POLL_BACKOFF.max(self.interval));
        (wait - wait / 10 + dice(wait / 5)).max(MIN_POLL_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(interval_ms: u64, failures: u32, least_ms: u64, most_ms: u64) {
        let mut cadence = PollBackoff::new(Duration::from_millis(interval_ms));
        (0..failures).for_each(|_| cadence.record(false));
        let waits = (cadence.next_wait(|_| Duration::ZERO), cadence.next_wait(|spread| spread));
        let expected = (Duration::from_millis(least_ms), Duration::from_millis(most_ms));
        assert_eq!(waits, expected, "{interval_ms} ms after {failures} failures");
        cadence.record(true);
        assert_eq!(
            cadence.next_wait(|_| Duration::ZERO),
            PollBackoff::new(cadence.interval).next_wait(|_| Duration::ZERO)
        );
    }

    #[test]
    fn poll_delay_doubles_with_jitter_up_to_a_maximum() {
        check(5_000, 0, 4_500, 5_500);
        check(5_000, 1, 9_000, 11_000);
        check(5_000, 3, 36_000, 44_000);
        check(5_000, 40, 270_000, 330_000);
        check(1_000, 0, 1_000, 1_100);
        check(1, 0, 1_000, 1_100);
        check(3_600_000, 5, 3_240_000, 3_960_000);
        check(u64::MAX, 0, 77_760_000, 95_040_000);
    }
}
