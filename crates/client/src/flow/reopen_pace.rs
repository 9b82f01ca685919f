//! The pace at which a subscription is opened again.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum doublings of the delay after failures.
const MAX_DOUBLINGS: u32 = 7;
/// Minimum interval between two openings, in multiples of the delay.
const MIN_INTERVAL: u32 = 4;

/// Failures since the last acknowledged stream. A stream that was acknowledged is a success, however soon it ends.
#[derive(Debug, Default)]
pub(super) struct ReopenPace {
    failures: u32,
    acknowledged: Option<Instant>,
}

impl ReopenPace {
    /// Records that a stream was acknowledged.
    pub fn record_success(&mut self, now: Instant) {
        (self.failures, self.acknowledged) = (0, Some(now));
    }

    /// Records a failed opening. Returns the number of consecutive failures.
    pub fn record_failure(&mut self) -> u32 {
        self.failures += 1;
        self.failures
    }

    /// Returns the time of the next opening: after a delay that each failure doubles, and not too soon after the last
    /// stream began.
    pub fn next_opening(&self, now: Instant, delay: Duration) -> Instant {
        let at = now + delay.saturating_mul(1 << self.failures.min(MAX_DOUBLINGS));
        self.acknowledged.map_or(at, |began| at.max(began + delay.saturating_mul(MIN_INTERVAL)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(250);

    /// L6.
    #[test]
    fn acknowledged_stream_that_ends_soon_is_not_a_failure() {
        let (mut pace, mut now) = (ReopenPace::default(), Instant::now());
        for _ in 0..20 {
            pace.record_success(now);
            // Each stream lives for ten seconds.
            now += Duration::from_secs(10);
            assert_eq!(pace.next_opening(now, DELAY), now + DELAY);
        }
        pace.record_success(now);
        assert_eq!(pace.next_opening(now, DELAY), now + 4 * DELAY, "openings are a second apart");
    }

    #[test]
    fn each_failed_opening_doubles_the_delay() {
        let (mut pace, now) = (ReopenPace::default(), Instant::now());
        for doublings in [1, 2, 3, 4, 5, 6, 7, 7] {
            pace.record_failure();
            assert_eq!(pace.next_opening(now, DELAY), now + DELAY * (1 << doublings));
        }
        pace.record_success(now);
        assert_eq!(pace.next_opening(now + Duration::from_secs(9), DELAY), now + Duration::from_secs(9) + DELAY);
    }
}
