//! Healthy servers next to failing ones: time to readiness, call latency, and the cost of the failing servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::json;
use tokio::task::JoinSet;
use wharf::spec::ServerEntry;
use wharf::{CallOptions, Host};
use wharf_peers::{
    ServerKind, good_tool, host_builder, nanoseconds, server_entry, small_arguments, wait_until_answered,
};

use crate::process::{children_cpu_time, cpu_time};
use crate::{BenchFigures, HostBenchOptions, percentile_ms};

/// Starts all servers, waits for the measured ones, and calls them for the requested time.
pub async fn measure(options: HostBenchOptions) -> BenchFigures {
    let starts = StartLogs::new();
    let began = Instant::now();
    let host = host_builder(server_entries(&options, &starts)).start().await.unwrap();
    wait_until_answered(&host, options.counted).await;
    let ready = began.elapsed();
    let (own, children) = (cpu_time(), children_cpu_time());
    let left = options.time.saturating_sub(ready);
    let watched = Instant::now();
    let mut latencies = call_in_rotation(&host, &options, began + options.time).await;
    tokio::time::sleep(left.saturating_sub(watched.elapsed())).await;
    let watched = watched.elapsed().as_secs_f64().max(1e-9);
    let own = (cpu_time() - own).as_secs_f64() / watched;
    let children = (children_cpu_time() - children).as_secs_f64() / watched;
    let figures = json!({
        "ready_ms": ready.as_secs_f64() * 1e3, "calls": latencies.len(),
        "p50_us": percentile_ms(&mut latencies, 50) * 1e3, "p99_us": percentile_ms(&mut latencies, 99) * 1e3,
        "max_ms": percentile_ms(&mut latencies, 100), "cpu_percent": own * 100.0, "children_cpu_percent": children * 100.0,
        "spawns": starts.counts(options.crash), "states": states(&host),
    });
    host.close().await;
    figures
}

fn server_entries(options: &HostBenchOptions, starts: &StartLogs) -> Vec<ServerEntry> {
    let mut servers = Vec::new();
    let mut add = |kinds: &[ServerKind], count: usize| {
        for number in 0..count {
            let kind = kinds[number % kinds.len()];
            let starts = (kinds == CRASHING).then(|| starts.file(number));
            servers.push(server_entry(&options.server, kind, number, starts.as_deref()));
        }
    };
    // Failing servers first, so that they take their resources before the healthy ones.
    add(&[ServerKind::Missing, ServerKind::Dead], options.dead);
    add(&[ServerKind::Slow], options.slow);
    add(CRASHING, options.crash);
    add(&[ServerKind::Good], options.good);
    servers
}

const CRASHING: &[ServerKind] = &[ServerKind::Crashing, ServerKind::Stillborn];

/// Has the callers call the healthy servers in rotation. Returns the time of every call in nanoseconds.
async fn call_in_rotation(host: &Host, options: &HostBenchOptions, end: Instant) -> Vec<u64> {
    let turn = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..options.callers {
        let tools: Vec<_> = (0..options.counted).map(|number| good_tool(number, "echo")).collect();
        let (host, turn) = (host.clone(), Arc::clone(&turn));
        callers.spawn(async move {
            let (arguments, mut times) = (small_arguments(), Vec::new());
            let mut begun = Instant::now();
            while begun < end {
                let tool = &tools[turn.fetch_add(1, Ordering::Relaxed) % tools.len()];
                host.call(tool, &arguments, CallOptions::default()).await.unwrap();
                let answered = Instant::now();
                times.push(nanoseconds(answered - begun));
                begun = answered;
            }
            times
        });
    }
    callers.join_all().await.concat()
}

/// Counts the servers per state.
fn states(host: &Host) -> BTreeMap<&'static str, usize> {
    let mut states = BTreeMap::new();
    for server in host.status() {
        *states.entry(server.state.as_str()).or_default() += 1;
    }
    states
}

/// Folder in which crashing servers record their starts; removed on drop.
struct StartLogs(PathBuf);

impl StartLogs {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("wharf-bench-host-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, number: usize) -> PathBuf {
        self.0.join(number.to_string())
    }

    fn counts(&self, servers: usize) -> Vec<usize> {
        let lines = |file: &Path| std::fs::read_to_string(file).unwrap_or_default().lines().count();
        (0..servers).map(|number| lines(&self.file(number))).collect()
    }
}

impl Drop for StartLogs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
