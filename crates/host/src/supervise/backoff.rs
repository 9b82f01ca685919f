//! Retry schedule. Pure: the clock and the seed are parameters.

use std::time::Duration;

use tokio::time::Instant;
use wharf_spec::BackoffSettings;

/// Minimum interval between two starts of one server.
const MIN_START_INTERVAL: Duration = Duration::from_secs(1);
/// Uptime after which a connection resets the failure count.
pub(super) const STABLE_UPTIME: Duration = Duration::from_secs(10);
/// First and maximum cool-down after the last retry.
const MIN_COOL_DOWN: Duration = Duration::from_secs(60);
const MAX_COOL_DOWN: Duration = Duration::from_secs(600);
/// Substitute for a wait that would overflow the clock.
const MAX_WAIT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Maximum number of doublings; beyond it the upper limit applies anyway.
const MAX_DOUBLINGS: u32 = 16;

/// Failed connection attempts since the last stable connection.
#[derive(Debug, Clone)]
pub(super) struct RetrySchedule {
    failed: u32,
    given_up: u32,
    last_start: Option<Instant>,
    dice: JitterSource,
}

impl RetrySchedule {
    pub fn new(seed: u64) -> Self {
        Self { failed: 0, given_up: 0, last_start: None, dice: JitterSource(seed | 1) }
    }

    pub fn record_start(&mut self, now: Instant) {
        self.last_start = Some(now);
    }

    pub fn last_start(&self) -> Option<Instant> {
        self.last_start
    }

    /// Resets the counters: a person requested a connection, or a connection was stable.
    pub fn reset(&mut self) {
        (self.failed, self.given_up) = (0, 0);
    }

    /// Returns the number of consecutive failures.
    pub fn failure_count(&self) -> u32 {
        self.failed
    }

    /// Counts a failure. Returns the time of the next attempt, or `None` after the last one.
    pub fn record_failure(&mut self, backoff: BackoffSettings, now: Instant) -> Option<Instant> {
        self.failed += 1;
        if self.failed > backoff.attempts {
            return None;
        }
        let doublings = (self.failed - 1).min(MAX_DOUBLINGS);
        let longest = backoff.base.saturating_mul(1 << doublings).min(backoff.max);
        // The first retry may be immediate. Later ones wait for at least half of their interval.
        let least = if self.failed == 1 { Duration::ZERO } else { longest / 2 };
        let wait = least + (longest - least).mul_f64(self.dice.fraction());
        Some(self.respect_start_interval(saturating_after(now, wait)))
    }

    /// Returns the time of the next start after a stable connection was lost.
    pub fn after_stable_loss(&mut self, backoff: BackoffSettings, now: Instant) -> Instant {
        let wait = backoff.base.mul_f64(self.dice.fraction() / 4.0);
        self.respect_start_interval(saturating_after(now, wait))
    }

    /// Returns the end of the cool-down after the last retry.
    pub fn cool_down(&mut self, now: Instant) -> Instant {
        let wait = MIN_COOL_DOWN.saturating_mul(1 << self.given_up.min(MAX_DOUBLINGS)).min(MAX_COOL_DOWN);
        self.given_up += 1;
        now + wait + (wait / 10).mul_f64(self.dice.fraction())
    }

    fn respect_start_interval(&self, due: Instant) -> Instant {
        self.last_start.map_or(due, |started| due.max(started + MIN_START_INTERVAL))
    }
}

fn saturating_after(now: Instant, wait: Duration) -> Instant {
    now.checked_add(wait).unwrap_or_else(|| now + MAX_WAIT)
}

/// A small pseudo-random generator for jitter. Not for secrets.
#[derive(Debug, Clone)]
struct JitterSource(u64);

impl JitterSource {
    fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
        let fraction = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn backoff_grows_with_jitter_and_runs_out() {
        let backoff = BackoffSettings { attempts: 5, base: Duration::from_millis(500), max: Duration::from_secs(3) };
        for seed in 1..500u64 {
            let now = Instant::now();
            let mut attempts = RetrySchedule::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let waits: Vec<_> =
                std::iter::from_fn(|| attempts.record_failure(backoff, now).map(|due| due - now)).collect();
            let bounds = [(0, 500), (500, 1000), (1000, 2000), (1500, 3000), (1500, 3000)];
            assert_eq!(waits.len(), bounds.len());
            for (wait, (least, most)) in waits.iter().zip(bounds) {
                assert!((least..=most).contains(&wait.as_millis()), "{wait:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn server_starts_at_most_once_a_second() {
        let now = Instant::now();
        let mut attempts = RetrySchedule::new(7);
        attempts.record_start(now);
        assert_eq!(attempts.after_stable_loss(BackoffSettings::default(), now), now + MIN_START_INTERVAL);
        let first = attempts.record_failure(BackoffSettings::default(), now).unwrap();
        assert_eq!(first, now + MIN_START_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn cool_downs_grow_up_to_a_limit() {
        let now = Instant::now();
        let mut attempts = RetrySchedule::new(7);
        let waits: Vec<_> = (0..8).map(|_| (attempts.cool_down(now) - now).as_secs()).collect();
        assert!((60..=66).contains(&waits[0]) && (120..=132).contains(&waits[1]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= 660), "{waits:?}");
        attempts.reset();
        assert!((attempts.cool_down(now) - now).as_secs() <= 66);
    }
}
