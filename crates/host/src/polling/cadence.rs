//! When to poll next. No clock and no dice of its own.

use std::time::Duration;

/// The shortest time between two polls.
pub(crate) const MINIMUM: Duration = Duration::from_secs(1);
/// The time between two polls where nobody says another.
pub(crate) const DEFAULT: Duration = Duration::from_secs(5);
/// The longest time between two polls.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The longest wait after failures, unless the interval itself is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// How often the wait is doubled.
const MOST_DOUBLINGS: u32 = 10;

/// When one subscription polls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cadence {
    interval: Duration,
    failures: u32,
}

impl Cadence {
    pub fn new(interval: Duration) -> Self {
        Self { interval: interval.clamp(MINIMUM, LONGEST), failures: 0 }
    }

    /// Notes what a poll came to.
    pub fn note(&mut self, success: bool) {
        self.failures = if success { 0 } else { self.failures.saturating_add(1) };
    }

    /// How long to wait after the poll that has just ended: twice as long with every failure, and ten in a hundred more
    /// or less by what the dice say, which get the widest spread and give a part of it.
    pub fn wait(self, dice: impl FnOnce(Duration) -> Duration) -> Duration {
        let doubled = self.interval.saturating_mul(1 << self.failures.min(MOST_DOUBLINGS));
        let wait = doubled.min(LONGEST_WAIT.max(self.interval));
        (wait - wait / 10 + dice(wait / 5)).max(MINIMUM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(interval_ms: u64, failures: u32, least_ms: u64, most_ms: u64) {
        let mut cadence = Cadence::new(Duration::from_millis(interval_ms));
        (0..failures).for_each(|_| cadence.note(false));
        let waits = (cadence.wait(|_| Duration::ZERO), cadence.wait(|spread| spread));
        let expected = (Duration::from_millis(least_ms), Duration::from_millis(most_ms));
        assert_eq!(waits, expected, "{interval_ms} ms after {failures} failures");
        cadence.note(true);
        assert_eq!(cadence.wait(|_| Duration::ZERO), Cadence::new(cadence.interval).wait(|_| Duration::ZERO));
    }

    #[test]
    fn waits_are_spread_doubled_and_bounded() {
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
