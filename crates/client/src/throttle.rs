//! Rate limits for large messages and for data that no call waits for. Reading pauses while the servers exceed them.
//!
//! Small responses to calls are not counted, so calls run as fast as the server responds. The limits hold for all
//! servers that share a budget: five servers that flood are read no faster than one. A server that has sent little
//! lately does not wait for them, so a flood does not delay the large results of other servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Limit of large messages, which are mostly requested results.
const LARGE_MESSAGES: RateLimit = RateLimit {
    total: Allowance { rate: 32 << 20, burst: 64 << 20 },
    exempt: Allowance { rate: 4 << 20, burst: 8 << 20 },
};
/// Limit of data that no call waits for.
const UNREQUESTED_DATA: RateLimit = RateLimit {
    total: Allowance { rate: 8 << 20, burst: 80 << 20 },
    exempt: Allowance { rate: 1 << 20, burst: 1 << 20 },
};
/// Bytes each message or line costs in addition to its length.
const OVERHEAD: usize = 128;
/// Maximum time for which a server that has sent much counts as one that sends much.
const MAX_MEMORY: Duration = Duration::from_secs(10);

struct RateLimit {
    /// What all servers together may send.
    total: Allowance,
    /// What each server may send without a pause, whatever the others send.
    exempt: Allowance,
}

/// An amount of data: bytes per second, and bytes at once.
struct Allowance {
    rate: u64,
    burst: u64,
}

impl Allowance {
    /// Returns the time that this many bytes take at the rate, in nanoseconds.
    fn nanoseconds(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(1_000_000_000) / self.rate
    }

    fn burst_time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds(self.burst))
    }
}

/// The time at which all data so far would have arrived at a rate, in nanoseconds since a fixed start.
#[derive(Default)]
struct RateMeter(AtomicU64);

impl RateMeter {
    fn add(&self, nanoseconds: u64, now: u64) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| Some(due.max(now) + nanoseconds));
    }

    /// Forgets the data that is further ahead than `longest`.
    fn cap(&self, longest: Duration, now: u64) {
        let longest = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_min(now.saturating_add(longest), Ordering::Relaxed);
    }

    /// Returns how far the data is ahead of the rate.
    fn ahead(&self, now: u64) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed).saturating_sub(now))
    }

    fn is_unused(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// The meters of one server at its exempt rate, or of all servers at the total rate.
#[derive(Default)]
struct RateMeters {
    large: RateMeter,
    unrequested: RateMeter,
}

/// The rate limits that all servers with one budget share.
pub(crate) struct SharedThrottle {
    began: Instant,
    meters: RateMeters,
}

impl SharedThrottle {
    pub fn new() -> Self {
        Self { began: Instant::now(), meters: RateMeters::default() }
    }
}

/// The share of one server in the rate limits.
pub(crate) struct ReceiveThrottle {
    server: RateMeters,
    host: Arc<SharedThrottle>,
}

impl ReceiveThrottle {
    pub fn new(host: Arc<SharedThrottle>) -> Self {
        Self { server: RateMeters::default(), host }
    }

    /// Counts a message or a line of this many bytes that no call waits for.
    pub fn record(&self, bytes: usize) {
        self.add(&self.server.unrequested, &self.host.meters.unrequested, bytes, &UNREQUESTED_DATA);
    }

    /// Counts this many bytes of a large message.
    pub fn record_large(&self, bytes: usize) {
        self.add(&self.server.large, &self.host.meters.large, bytes, &LARGE_MESSAGES);
    }

    fn add(&self, server: &RateMeter, host: &RateMeter, bytes: usize, limit: &RateLimit) {
        let (bytes, now) = (bytes.saturating_add(OVERHEAD) as u64, self.now());
        server.add(limit.exempt.nanoseconds(bytes), now);
        server.cap(limit.exempt.burst_time() + MAX_MEMORY, now);
        host.add(limit.total.nanoseconds(bytes), now);
    }

    /// Returns the time to wait before reading more, if any.
    pub fn required_pause(&self) -> Option<Duration> {
        // Nothing was ever counted: the common case needs no clock.
        if self.server.large.is_unused() && self.server.unrequested.is_unused() {
            return None;
        }
        let (now, host) = (self.now(), &self.host.meters);
        let pause = |server: &RateMeter, host: &RateMeter, limit: &RateLimit| {
            let is_exempt = server.ahead(now) <= limit.exempt.burst_time();
            let excess = host.ahead(now).saturating_sub(limit.total.burst_time());
            if is_exempt { Duration::ZERO } else { excess }
        };
        let large = pause(&self.server.large, &host.large, &LARGE_MESSAGES);
        let unrequested = pause(&self.server.unrequested, &host.unrequested, &UNREQUESTED_DATA);
        Some(large.max(unrequested)).filter(|pause| !pause.is_zero())
    }

    /// Reports whether the server has sent more than its exempt rate lately.
    pub fn is_over_rate(&self) -> bool {
        let meters = [&self.server.large, &self.server.unrequested];
        meters.iter().any(|meter| !meter.is_unused() && !meter.ahead(self.now()).is_zero())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.host.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn throttles<const N: usize>() -> [ReceiveThrottle; N] {
        let host = Arc::new(SharedThrottle::new());
        std::array::from_fn(|_| ReceiveThrottle::new(Arc::clone(&host)))
    }

    #[tokio::test(start_paused = true)]
    async fn reads_pause_while_server_exceeds_the_rate() {
        let [server] = throttles();
        assert_eq!((server.required_pause(), server.is_over_rate()), (None, false));
        server.record(80 * MIB - OVERHEAD);
        assert_eq!((server.required_pause(), server.is_over_rate()), (None, true), "so much at once is fine");
        server.record(4 * MIB - OVERHEAD);
        assert_eq!(server.required_pause(), Some(Duration::from_millis(500)));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(server.required_pause(), None);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(!server.is_over_rate());
        server.record(84 * MIB);
        assert!(server.required_pause().is_some(), "time that went by quietly is not saved up");
    }

    #[tokio::test(start_paused = true)]
    async fn large_messages_have_their_own_rate() {
        let [server] = throttles();
        server.record_large(64 * MIB - OVERHEAD);
        assert_eq!((server.required_pause(), server.is_over_rate()), (None, true));
        server.record_large(8 * MIB - OVERHEAD);
        assert_eq!(server.required_pause(), Some(Duration::from_millis(250)));
    }

    #[tokio::test(start_paused = true)]
    async fn servers_that_flood_share_one_rate_and_others_do_not_wait() {
        let [one, two, other] = throttles();
        one.record_large(44 * MIB - OVERHEAD);
        two.record_large(44 * MIB - OVERHEAD);
        let pause = Some(Duration::from_millis(750));
        assert_eq!((one.required_pause(), two.required_pause()), (pause, pause), "88 MiB together, 64 at once");
        other.record_large(8 * MIB - OVERHEAD);
        assert_eq!(other.required_pause(), None, "within what each server may send at once");
        tokio::time::advance(Duration::from_secs(3)).await;
        one.record_large(44 * MIB - OVERHEAD);
        two.record_large(44 * MIB - OVERHEAD);
        assert_eq!(one.required_pause(), pause, "a pause does not make the server exempt again");
        tokio::time::advance(MAX_MEMORY + Duration::from_secs(2)).await;
        two.record_large(80 * MIB);
        one.record_large(4 * MIB);
        assert_eq!(one.required_pause(), None, "a server that has been quiet is exempt");
    }
}
