//! Rate limit for large messages and for data that no call waits for. Reading pauses while the server exceeds it.
//!
//! Small responses to calls are not counted, so calls run as fast as the server responds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Bytes per second of data that no call waits for.
const RATE: u64 = 8 << 20;
/// Bytes per second of large messages, which are mostly requested results.
const RATE_LARGE: u64 = 64 << 20;
/// Burst allowance of large messages: 64 MiB.
const BURST_LARGE: Duration = Duration::from_secs(1);
/// Burst allowance of other data: 80 MiB.
const BURST: Duration = Duration::from_secs(10);
/// Bytes each message or line costs in addition to its length.
const OVERHEAD: usize = 128;

/// Rate meter of one server: the time at which its data so far would have arrived at the allowed rate.
pub(crate) struct ReceiveThrottle {
    began: Instant,
    /// Nanoseconds since `began`.
    due: AtomicU64,
    /// The same for large messages.
    due_large: AtomicU64,
}

impl ReceiveThrottle {
    pub fn new() -> Self {
        Self { began: Instant::now(), due: AtomicU64::new(0), due_large: AtomicU64::new(0) }
    }

    /// Counts a message or a line of this many bytes that no call waits for.
    pub fn record(&self, bytes: usize) {
        self.add_cost(&self.due, bytes, RATE);
    }

    /// Counts this many bytes of a large message.
    pub fn record_large(&self, bytes: usize) {
        self.add_cost(&self.due_large, bytes, RATE_LARGE);
    }

    fn add_cost(&self, due: &AtomicU64, bytes: usize, rate: u64) {
        let cost = (bytes.saturating_add(OVERHEAD) as u64).saturating_mul(1_000_000_000) / rate;
        let now = self.now();
        let _ = due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| Some(due.max(now) + cost));
    }

    /// Returns the time to wait before reading more, if any.
    pub fn required_pause(&self) -> Option<Duration> {
        let (due, large) = (self.due.load(Ordering::Relaxed), self.due_large.load(Ordering::Relaxed));
        // Nothing was ever counted: the common case needs no clock.
        if due == 0 && large == 0 {
            return None;
        }
        let now = self.now();
        let pause = |due: u64, ahead| Duration::from_nanos(due.saturating_sub(now)).saturating_sub(ahead);
        Some(pause(due, BURST).max(pause(large, BURST_LARGE))).filter(|pause| !pause.is_zero())
    }

    /// Reports whether the server is above the allowed rate, even within the burst allowance.
    pub fn is_over_rate(&self) -> bool {
        let due = self.due.load(Ordering::Relaxed).max(self.due_large.load(Ordering::Relaxed));
        due != 0 && due > self.now()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reads_pause_while_server_exceeds_its_rate() {
        let pace = ReceiveThrottle::new();
        assert_eq!((pace.required_pause(), pace.is_over_rate()), (None, false));
        pace.record((80 << 20) - OVERHEAD);
        assert_eq!((pace.required_pause(), pace.is_over_rate()), (None, true), "so much at once is fine");
        pace.record((4 << 20) - OVERHEAD);
        assert_eq!(pace.required_pause(), Some(Duration::from_millis(500)));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(pace.required_pause(), None);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(!pace.is_over_rate());
        pace.record(80 << 20);
        assert!(pace.required_pause().is_some(), "time that went by quietly is not saved up for more than that");
    }

    #[tokio::test(start_paused = true)]
    async fn large_messages_have_their_own_rate() {
        let pace = ReceiveThrottle::new();
        pace.record_large((64 << 20) - OVERHEAD);
        assert_eq!((pace.required_pause(), pace.is_over_rate()), (None, true));
        pace.record_large((8 << 20) - OVERHEAD);
        assert_eq!(pace.required_pause(), Some(Duration::from_millis(125)));
    }
}
