//! One measurement, printed as a line of JSON.

use std::fs;
use std::time::{Duration, Instant};

use crate::{BenchOptions, ServerTraffic};

/// Warm-up time of every client before the measurement.
pub const WARM_UP: Duration = Duration::from_millis(200);

/// Measures wall time and the CPU time of this process.
pub struct BenchStopwatch {
    begun: Instant,
    processor: Duration,
}

impl BenchStopwatch {
    pub fn start() -> Self {
        Self { begun: Instant::now(), processor: cpu_time() }
    }

    pub fn stop(self, latencies: Vec<u64>) -> Measurements {
        Measurements { wall: self.begun.elapsed(), processor: cpu_time().saturating_sub(self.processor), latencies }
    }
}

/// The measurements between start and stop.
pub struct Measurements {
    pub wall: Duration,
    /// CPU time of all threads of this process, without the server.
    pub processor: Duration,
    /// Nanoseconds, one entry for each call.
    pub latencies: Vec<u64>,
}

/// Converts a latency for [`Measurements`].
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The figures of one run.
pub struct BenchReport {
    line: String,
}

impl BenchReport {
    pub fn new(implementation: &str, runtime: &str, options: &BenchOptions, measured: Measurements) -> Self {
        let Measurements { wall, processor, mut latencies } = measured;
        assert!(!latencies.is_empty(), "no call was answered");
        latencies.sort_unstable();
        let (calls, wall) = (latencies.len(), wall.as_secs_f64());
        let line = format!(
            concat!(
                r#"{{"impl":"{}","rt":"{}","payload":{},"conc":{},"n":{},"wall_s":{:.4},"#,
                r#""rps":{:.1},"p50_us":{:.2},"p99_us":{:.2},"cpu_us_per_call":{:.3}}}"#
            ),
            implementation,
            runtime,
            options.payload,
            options.conc,
            calls,
            wall,
            calls as f64 / wall,
            percentile_us(&latencies, 50),
            percentile_us(&latencies, 99),
            processor.as_secs_f64() * 1e6 / calls as f64,
        );
        Self { line }
    }

    /// Adds the server's counts.
    pub fn with_server_counts(mut self, ServerTraffic { connections, requests }: ServerTraffic) -> Self {
        self.line.truncate(self.line.len() - 1);
        self.line.push_str(&format!(r#","connections":{connections},"requests":{requests}}}"#));
        self
    }

    /// Prints the line on standard output.
    pub fn print(&self) {
        println!("{}", self.line);
    }
}

/// Returns a percentile in microseconds, from latencies in ascending order.
fn percentile_us(latencies: &[u64], percent: usize) -> f64 {
    latencies[(latencies.len() - 1) * percent / 100] as f64 / 1000.0
}

/// Returns the CPU time of this process's threads, from the kernel's accounting.
///
/// Read from /proc, because reading the clock through rustix crashes under valgrind, which lacks the vDSO page.
fn cpu_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let accounts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
    let nanoseconds = accounts.filter_map(|account| account.split(' ').next()?.parse::<u64>().ok());
    Duration::from_nanos(nanoseconds.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_hundred_values() {
        let latencies: Vec<u64> = (1..=101).map(|n| n * 1000).collect();
        assert_eq!(percentile_us(&latencies, 50), 51.0);
        assert_eq!(percentile_us(&latencies, 99), 100.0);
        assert_eq!(percentile_us(&latencies[..1], 99), 1.0);
    }
}
