//! Call statistics of tools: counts, errors and latencies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Number of histogram buckets. There are four per doubling, from one microsecond to about an hour.
const LATENCY_BUCKETS: usize = 128;
/// Maximum number of tools counted individually. Further tools share one entry.
const MAX_COUNTED_TOOLS: usize = 4096;

/// Statistics of one server.
#[derive(Default)]
pub(crate) struct ServerStats {
    tools: RwLock<HashMap<Arc<str>, Arc<CallCounter>>>,
}

/// Statistics of one tool. Recording takes no lock.
pub(crate) struct CallCounter {
    calls: AtomicU64,
    errors: AtomicU64,
    scale: [AtomicU64; LATENCY_BUCKETS],
}

/// Call count and latencies of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ToolStats {
    /// The tool's name at the server. Untrusted.
    pub tool: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that failed or were not answered.
    pub errors: u64,
    /// Median latency in microseconds.
    pub p50_us: u64,
    /// 90th percentile of the latency in microseconds.
    pub p90_us: u64,
    /// 99th percentile of the latency in microseconds.
    pub p99_us: u64,
}

impl Default for CallCounter {
    fn default() -> Self {
        Self { calls: AtomicU64::new(0), errors: AtomicU64::new(0), scale: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl ServerStats {
    /// Records a call.
    pub fn record(&self, tool: &Arc<str>, took: Duration, success: bool) {
        let known = self.tools.read().unwrap_or_else(PoisonError::into_inner).get(tool).map(Arc::clone);
        known.unwrap_or_else(|| self.add_tool(tool)).record(took, success);
    }

    fn add_tool(&self, tool: &Arc<str>) -> Arc<CallCounter> {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let name = if tools.len() < MAX_COUNTED_TOOLS { Arc::clone(tool) } else { Arc::from("…") };
        Arc::clone(tools.entry(name).or_default())
    }

    /// Returns the statistics of all tools, sorted by name.
    pub fn snapshot(&self) -> Vec<ToolStats> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<ToolStats> = tools.iter().map(|(name, count)| count.snapshot(name)).collect();
        all.sort_by(|one, other| one.tool.cmp(&other.tool));
        all
    }
}

impl CallCounter {
    /// Records a call.
    pub fn record(&self, took: Duration, success: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(!success), Ordering::Relaxed);
        self.scale[bucket_of(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the statistics so far.
    pub fn snapshot(&self, tool: &str) -> ToolStats {
        let scale: Vec<u64> = self.scale.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let total: u64 = scale.iter().sum();
        let percentile = |percent: u64| {
            let wanted = (total * percent).div_ceil(100).max(1);
            let mut seen = 0;
            let found = scale.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            found.map_or(0, bucket_upper_bound)
        };
        ToolStats {
            tool: tool.to_owned(),
            calls: self.calls.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            p50_us: percentile(50),
            p90_us: percentile(90),
            p99_us: percentile(99),
        }
    }
}

/// Returns the bucket of a duration: its power of two and the quarter within it.
fn bucket_of(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if micros < 4 {
        return usize::try_from(micros).unwrap_or(0);
    }
    let doublings = micros.ilog2();
    let quarter = (micros >> (doublings - 2)) & 3;
    let step = u64::from(doublings) * 4 + quarter - 4;
    usize::try_from(step).unwrap_or(LATENCY_BUCKETS - 1).min(LATENCY_BUCKETS - 1)
}

/// Returns the longest duration of a bucket, in microseconds.
fn bucket_upper_bound(step: usize) -> u64 {
    if step < 4 {
        return step as u64;
    }
    let (doublings, quarter) = ((step + 4) / 4, (step % 4) as u64);
    (((4 + quarter + 1) << doublings) >> 2) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_fits_its_latency_bucket() {
        for micros in (0..5000).chain([1 << 20, (1 << 31) + 7]) {
            let found = bucket_of(Duration::from_micros(micros));
            assert!(
                bucket_upper_bound(found) >= micros,
                "{micros} in step {found} up to {}",
                bucket_upper_bound(found)
            );
            assert!(
                bucket_upper_bound(found) <= micros + micros / 4 + 1,
                "{micros} in step {found} up to {}",
                bucket_upper_bound(found)
            );
        }
        assert_eq!(bucket_of(Duration::MAX), LATENCY_BUCKETS - 1);
    }

    #[test]
    fn percentiles_match_recorded_durations() {
        let stats = ServerStats::default();
        let tool: Arc<str> = "t".into();
        for millis in 1..=100 {
            stats.record(&tool, Duration::from_millis(millis), millis != 7);
        }
        let [found] = &stats.snapshot()[..] else { panic!("one tool") };
        assert_eq!((found.calls, found.errors), (100, 1));
        for (found, millis) in [(found.p50_us, 50), (found.p90_us, 90), (found.p99_us, 99)] {
            assert!((millis * 1000..=millis * 1250).contains(&found), "{found} for {millis} ms");
        }
    }

    #[test]
    fn tools_over_the_limit_share_one_counter() {
        let stats = ServerStats::default();
        for n in 0..MAX_COUNTED_TOOLS + 50 {
            stats.record(&n.to_string().into(), Duration::ZERO, true);
        }
        assert_eq!(stats.snapshot().len(), MAX_COUNTED_TOOLS + 1);
    }
}
