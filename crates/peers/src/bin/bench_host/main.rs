//! Benchmarks of a host with many servers: `bench-host crowd|kill|overhead|memory`. Prints one line of figures.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark prints, reads its arguments and panics on errors"
)]

mod kill;
mod many_servers;
mod memory;
mod overhead;
mod process;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use wharf_peers::{RuntimeFlavour, block_on};

const USAGE: &str = "usage: bench-host crowd|kill|overhead|memory --server PATH [--good N] [--dead N] [--slow N]
       [--crash N] [--counted N] [--callers N] [--secs S] [--kills N] [--age S] [--local]";

fn main() {
    let options = HostBenchOptions::parse(std::env::args().skip(1));
    let figures = match options.part.as_str() {
        "crowd" => block_on(RuntimeFlavour::Multi, many_servers::measure(options)),
        "kill" => block_on(RuntimeFlavour::Multi, kill::measure(options)),
        // On one thread, so that the comparison includes no cross-thread wakeups.
        "overhead" => block_on(RuntimeFlavour::Current, overhead::measure(options)),
        "memory" => block_on(RuntimeFlavour::Multi, memory::measure(options)),
        _ => panic!("{USAGE}"),
    };
    println!("{figures}");
}

/// The figures of one part, as a JSON object.
type BenchFigures = Value;

/// Command-line options.
struct HostBenchOptions {
    part: String,
    /// Program of the servers.
    server: PathBuf,
    good: usize,
    dead: usize,
    slow: usize,
    crash: usize,
    /// Number of healthy servers that are measured.
    counted: usize,
    callers: usize,
    time: Duration,
    kills: usize,
    /// Uptime of a server when it is killed.
    age: Duration,
    /// Use an in-process server instead of one over stdio.
    local: bool,
}

impl HostBenchOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Self {
        let mut options = Self {
            part: words.next().unwrap_or_default(),
            server: PathBuf::new(),
            good: 0,
            dead: 0,
            slow: 0,
            crash: 0,
            counted: 0,
            callers: 0,
            time: Duration::ZERO,
            kills: 0,
            age: Duration::ZERO,
            local: false,
        };
        while let Some(flag) = words.next() {
            if flag == "--local" {
                options.local = true;
                continue;
            }
            let value = words.next().expect(USAGE);
            match flag.as_str() {
                "--server" => options.server = value.into(),
                "--good" => options.good = value.parse().unwrap(),
                "--dead" => options.dead = value.parse().unwrap(),
                "--slow" => options.slow = value.parse().unwrap(),
                "--crash" => options.crash = value.parse().unwrap(),
                "--counted" => options.counted = value.parse().unwrap(),
                "--callers" => options.callers = value.parse().unwrap(),
                "--secs" => options.time = Duration::from_secs_f64(value.parse().unwrap()),
                "--kills" => options.kills = value.parse().unwrap(),
                "--age" => options.age = Duration::from_secs_f64(value.parse().unwrap()),
                _ => panic!("{USAGE}"),
            }
        }
        options
    }
}

/// Returns a percentile in milliseconds, from nanoseconds in any order; 0 for an empty list.
fn percentile_ms(times: &mut [u64], percent: usize) -> f64 {
    times.sort_unstable();
    let place = times.len().saturating_sub(1) * percent / 100;
    times.get(place).map_or(0.0, |time| *time as f64 / 1e6)
}
