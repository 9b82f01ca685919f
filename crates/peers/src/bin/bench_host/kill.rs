//! Kills a server with many pending calls: outcome of the calls, and time until the next call is answered.

use std::collections::BTreeMap;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::task::JoinSet;
use wharf::{CallError, CallOptions, Host, HostError, RawJson};
use wharf_peers::{ServerKind, good_tool, host_builder, nanoseconds, server_entry, server_name, wait_until_answered};

use crate::{BenchFigures, HostBenchOptions, percentile_ms};

/// Kills the servers in rotation, `options.kills` times, each after it has run for `options.age`. With an age of zero,
/// each kill uses a new host and happens as soon as the calls are pending.
pub async fn measure(options: HostBenchOptions) -> BenchFigures {
    let mut seen = KillStatistics::default();
    let mut scene = KillScenario::open(&options).await;
    for kill in 0..options.kills {
        if kill > 0 && options.age.is_zero() {
            scene.host.close().await;
            scene = KillScenario::open(&options).await;
        }
        scene.kill(kill % options.good, &options, &mut seen).await;
    }
    scene.host.close().await;
    seen.figures(&options)
}

/// A host, and the time at which each of its servers was last ready.
struct KillScenario {
    host: Host,
    ready: Vec<Instant>,
}

#[derive(Default)]
struct KillStatistics {
    /// Time from the kill to the end of the last pending call.
    last_end: Vec<u64>,
    /// Time from the kill to the response of the next call.
    recovery: Vec<u64>,
    /// Number of pending calls by outcome.
    ends: BTreeMap<&'static str, usize>,
    /// Number of calls that reached the restarted server.
    repeated: usize,
}

impl KillScenario {
    async fn open(options: &HostBenchOptions) -> Self {
        let servers =
            (0..options.good).map(|number| server_entry(&options.server, ServerKind::Good, number, None)).collect();
        let host = host_builder(servers).start().await.unwrap();
        wait_until_answered(&host, options.good).await;
        Self { host, ready: vec![Instant::now(); options.good] }
    }

    async fn kill(&mut self, number: usize, options: &HostBenchOptions, seen: &mut KillStatistics) {
        tokio::time::sleep_until((self.ready[number] + options.age).into()).await;
        let mut calls = self.start_pending_calls(number, options.callers).await;
        let killed = Instant::now();
        self.send_kill(number);
        while let Some(ended) = calls.join_next().await {
            *seen.ends.entry(outcome_name(&ended.unwrap())).or_default() += 1;
        }
        seen.last_end.push(nanoseconds(killed.elapsed()));
        let held = self.pending_count(number).await;
        seen.recovery.push(nanoseconds(killed.elapsed()));
        self.ready[number] = Instant::now();
        seen.repeated += held;
    }

    /// Makes calls that are never answered, and waits until the server has received all of them.
    async fn start_pending_calls(&self, number: usize, callers: usize) -> JoinSet<Result<(), HostError>> {
        let mut calls = JoinSet::new();
        for _ in 0..callers {
            let host = self.host.clone();
            calls.spawn(async move {
                let (tool, arguments) = (good_tool(number, "hold"), RawJson::empty_object());
                host.call(&tool, &arguments, CallOptions::default()).await.map(drop)
            });
        }
        while self.pending_count(number).await < callers {
            tokio::task::yield_now().await;
        }
        calls
    }

    async fn pending_count(&self, number: usize) -> usize {
        let tool = good_tool(number, "held");
        let reply = self.host.call(&tool, &RawJson::empty_object(), CallOptions::default()).await.unwrap();
        reply.text().unwrap().parse().unwrap()
    }

    fn send_kill(&self, number: usize) {
        let status = self.host.status_of(server_name(ServerKind::Good, number).as_str()).unwrap();
        let pid = status.connected.and_then(|connected| connected.pid).and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
}

/// Returns the outcome of a call as a word.
fn outcome_name(ended: &Result<(), HostError>) -> &'static str {
    match ended {
        Ok(()) => "answered",
        Err(HostError::Call { error: CallError::OutcomeUnknown(_), .. }) => "outcome_unknown",
        Err(HostError::Call { error: CallError::RetryableDisconnect(_), .. }) => "server_gone",
        Err(_) => "other",
    }
}

impl KillStatistics {
    fn figures(mut self, options: &HostBenchOptions) -> BenchFigures {
        json!({
            "kills": self.recovery.len(), "callers": options.callers, "age_s": options.age.as_secs_f64(),
            "last_end_p50_ms": percentile_ms(&mut self.last_end, 50),
            "last_end_max_ms": percentile_ms(&mut self.last_end, 100),
            "recovery_p50_ms": percentile_ms(&mut self.recovery, 50),
            "recovery_p99_ms": percentile_ms(&mut self.recovery, 99),
            "recovery_max_ms": percentile_ms(&mut self.recovery, 100),
            "ends": self.ends, "repeated": self.repeated,
        })
    }
}
