//! The measurement loop: every client in every setting, in turn, round by round.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{BenchClient, BenchTransport, CALLERS, CORES, PAYLOADS, ThroughputPlan};
use crate::run::{TaskResult, capture, say};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchSetting {
    pub way: BenchTransport,
    pub cores: usize,
    pub payload: usize,
    pub callers: usize,
}

/// The result of one run of one client.
#[derive(Clone, Copy)]
pub struct ThroughputSample {
    pub round: usize,
    pub setting: BenchSetting,
    pub label: &'static str,
    /// Calls per second.
    pub rate: f64,
    /// Median latency in microseconds.
    pub median: f64,
}

pub fn settings(ways: &[BenchTransport]) -> Vec<BenchSetting> {
    let mut settings = Vec::new();
    for way in ways.iter().copied() {
        for cores in CORES {
            for payload in PAYLOADS {
                settings.extend(CALLERS.map(|callers| BenchSetting { way, cores, payload, callers }));
            }
        }
    }
    settings
}

pub fn measure(
    plan: &ThroughputPlan,
    settings: &[BenchSetting],
    field: &[BenchClient],
    server: &Path,
) -> TaskResult<Vec<ThroughputSample>> {
    say!("{} runs of {} s", plan.rounds * settings.len() * field.len(), plan.seconds);
    let mut samples = Vec::new();
    for round in 0..plan.rounds {
        say!("round {} of {}", round + 1, plan.rounds);
        for setting in settings {
            // Rotate the first client, so that no client always follows the same one.
            for turn in 0..field.len() {
                let client = &field[(round + turn) % field.len()];
                samples.push(run_client(plan, client, server, *setting, round)?);
            }
        }
    }
    Ok(samples)
}

fn run_client(
    plan: &ThroughputPlan,
    client: &BenchClient,
    server: &Path,
    setting: BenchSetting,
    round: usize,
) -> TaskResult<ThroughputSample> {
    let cores = (0..setting.cores).map(|core| core.to_string()).collect::<Vec<_>>().join(",");
    let mut command = Command::new("taskset");
    command.args(["-c", &cores]).arg(&client.program).args(&client.arguments);
    command.arg("--server").arg(client.server.as_deref().unwrap_or(server)).args(["--secs", &plan.seconds.to_string()]);
    command.args(["--payload", &setting.payload.to_string(), "--conc", &setting.callers.to_string()]);
    if setting.way != BenchTransport::Stdio {
        command.args(["--answers", setting.way.name()]);
    }
    let line = capture(&mut command)?.stdout;
    let figures: Value = serde_json::from_str(&line)?;
    let figure = |name: &str| figures[name].as_f64().ok_or(format!("{}: no {name} in {line}", client.label));
    Ok(ThroughputSample { round, setting, label: client.label, rate: figure("rps")?, median: figure("p50_us")? })
}

/// Writes the single figures next to the report, one JSON object per line.
pub fn write_samples(samples: &[ThroughputSample], file: &Path) -> TaskResult {
    let mut lines = String::new();
    for ThroughputSample { round, setting, label, rate, median } in samples {
        let BenchSetting { way, cores, payload, callers } = setting;
        let line = json!({"round": round, "over": way.name(), "cores": cores, "payload": payload, "callers": callers,
            "client": label, "rps": rate, "p50_us": median});
        lines.push_str(&format!("{line}\n"));
    }
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    Ok(fs::write(file, lines)?)
}
