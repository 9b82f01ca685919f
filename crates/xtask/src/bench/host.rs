//! `cargo xtask bench host`: many servers behind one host, some of them failing, with each figure next to its limit.
//!
//! Compared figures are measured in the same run, alternating.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::host_table::{self, HostLimitRow};
use super::report_page;
use super::tables::median;
use crate::run::{TaskResult, capture, cargo, on_path, run, say, target};

/// Amount of measurement.
pub struct HostBenchPlan {
    /// Starts of all servers, with and without failing servers.
    pub starts: usize,
    /// Rounds of calls, with and without failing servers.
    pub rounds: usize,
    /// Seconds of calls per round, and seconds of observing an idle host.
    pub seconds: u64,
    /// Number of kills, of long-running and of just-started servers.
    pub kills: usize,
    pub command: String,
}

/// Number of healthy servers that are measured, and the servers started besides them.
const MEASURED_SERVERS: &str = "35";
const WITH_FAILING_SERVERS: [&str; 8] = ["--good", MEASURED_SERVERS, "--dead", "5", "--slow", "5", "--crash", "5"];
const HEALTHY_SERVERS_ONLY: [&str; 2] = ["--good", "50"];
/// Pending calls at the time of a kill.
const PENDING_CALLS: &str = "1000";
/// Servers killed in rotation, so that each runs for ten seconds between kills.
const KILLED_SERVERS: &str = "10";

pub fn host(words: &[&str]) -> TaskResult {
    let plan = HostBenchPlan::parse(words)?;
    if !on_path("taskset") {
        return Err("taskset not found (needed to pin a caller and its server to one core)".into());
    }
    let build = ["bench-host", "bench-host-allocations", "bench-host-server"].map(|name| ["--bin", name]).concat();
    run(cargo().args(["build", "--profile", "dist", "--package", "wharf-peers"]).args(build))?;
    let bench = HostBench { binaries: target().join("dist") };
    let mut rows = bench.crowd(&plan)?;
    rows.extend(bench.kills(&plan)?);
    rows.extend(bench.overhead()?);
    rows.push(host_table::memory_row(&bench.run_part("memory", &["--good", "20", "--secs", "2"])?)?);
    report_page::write_part(&host_table::page(&plan, &rows))
}

impl HostBenchPlan {
    fn parse(words: &[&str]) -> TaskResult<Self> {
        let command = [&["cargo", "xtask", "bench", "host"], words].concat().join(" ");
        match words {
            [] => Ok(Self { starts: 9, rounds: 3, seconds: 60, kills: 50, command }),
            ["--quick"] => Ok(Self { starts: 3, rounds: 1, seconds: 15, kills: 10, command }),
            _ => Err(format!("bench host: unknown arguments {}", words.join(" ")).into()),
        }
    }
}

struct HostBench {
    binaries: PathBuf,
}

impl HostBench {
    fn crowd(&self, plan: &HostBenchPlan) -> TaskResult<Vec<HostLimitRow>> {
        let seconds = plan.seconds.to_string();
        let calling = ["--callers", "4", "--secs", &seconds];
        let idle = ["--counted", MEASURED_SERVERS, "--secs", &seconds];
        let mut ready = Vec::new();
        for _ in 0..plan.starts {
            let [other, troubled] = self.measure_both(&[])?;
            ready.push((read_figure(&troubled, "ready_ms")?, read_figure(&other, "ready_ms")?));
        }
        let called = (0..plan.rounds).map(|_| self.measure_both(&calling)).collect::<TaskResult<Vec<_>>>()?;
        let crashing = self.run_part("crowd", &[&["--good", MEASURED_SERVERS, "--crash", "5"][..], &idle].concat())?;
        let quiet = self.run_part("crowd", &[&["--good", MEASURED_SERVERS][..], &idle].concat())?;
        Ok(vec![
            host_table::ready_row(&ready),
            host_table::latency_row(plan, &called)?,
            host_table::spawn_row(plan, &called)?,
            host_table::cpu_row(&crashing, &quiet)?,
        ])
    }

    /// Measures among healthy servers only, and among failing servers.
    fn measure_both(&self, more: &[&str]) -> TaskResult<[Value; 2]> {
        let counted = ["--counted", MEASURED_SERVERS];
        let one = |others: &[&str]| self.run_part("crowd", &[others, &counted, more].concat());
        Ok([one(&HEALTHY_SERVERS_ONLY)?, one(&WITH_FAILING_SERVERS)?])
    }

    fn kills(&self, plan: &HostBenchPlan) -> TaskResult<Vec<HostLimitRow>> {
        let kills = plan.kills.to_string();
        let kill = |more: [&str; 4]| {
            self.run_part("kill", &[&["--kills", &kills, "--callers", PENDING_CALLS][..], &more].concat())
        };
        let old = kill(["--good", KILLED_SERVERS, "--age", "10.2"])?;
        let young = kill(["--good", "1", "--age", "0"])?;
        Ok(vec![
            host_table::pending_calls_row(&[&old, &young])?,
            host_table::recovery_row("that has run for 10 s", &old)?,
            host_table::recovery_row("that has just started", &young)?,
        ])
    }

    fn overhead(&self) -> TaskResult<Vec<HostLimitRow>> {
        // Pinned to one core: a wakeup on another core costs more than the compared difference.
        let pinned = |more: &[&str]| {
            self.run_part_with("overhead", more, Command::new("taskset").args(["-c", "0"]).arg(self.program()))
        };
        let inside = pinned(&["--secs", "5", "--local"])?;
        let stdio = pinned(&["--secs", "5"])?;
        let line = capture(&mut Command::new(self.binaries.join("bench-host-allocations")))?.stdout;
        let allocations: Value = serde_json::from_str(&line)?;
        say!("{allocations}");
        Ok(vec![
            host_table::overhead_row(&inside)?,
            host_table::overhead_row(&stdio)?,
            host_table::allocation_row(&allocations)?,
        ])
    }

    /// Runs one part of the benchmark and returns its figures.
    fn run_part(&self, what: &str, more: &[&str]) -> TaskResult<Value> {
        self.run_part_with(what, more, &mut Command::new(self.program()))
    }

    /// Runs one part of the benchmark through the given command.
    fn run_part_with(&self, what: &str, more: &[&str], command: &mut Command) -> TaskResult<Value> {
        command.arg(what).arg("--server").arg(self.binaries.join("bench-host-server")).args(more);
        let figures: Value = serde_json::from_str(&capture(command)?.stdout)?;
        say!("{what} {}: {figures}", more.join(" "));
        Ok(figures)
    }

    fn program(&self) -> PathBuf {
        self.binaries.join("bench-host")
    }
}

/// Returns a number from a part's figures.
pub fn read_figure(figures: &Value, name: &str) -> TaskResult<f64> {
    figures[name].as_f64().ok_or_else(|| format!("no {name} in {figures}").into())
}

/// Returns the median of the ratios of the pairs.
pub fn median_ratio(pairs: &[(f64, f64)]) -> f64 {
    median(pairs.iter().map(|(one, other)| one / other).collect())
}
