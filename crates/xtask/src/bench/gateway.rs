//! `cargo xtask bench gateway`: calls through the gateway, compared with the server alone, with a hop that does the
//! least a gateway must, and with gateways of other makers.
//!
//! All run at once and are called in turns, each round and setting, and are compared within a round. The processor time
//! is that of the gateway's processes without the server behind them.

use std::process::Command;

use serde_json::Value;

use super::gateway_table;
use super::gateway_targets::{RunningTarget, TargetKind, end_background_processes, start_all};
use super::report_page;
use crate::peers;
use crate::run::{TaskResult, capture, cargo, parse_number, run, say, target};

/// Number of clients that a gateway with a process for each session is not measured with.
const MANY_CLIENTS: usize = 1000;

/// Amount of measurement.
pub struct GatewayPlan {
    pub rounds: usize,
    seconds: f64,
    profile: String,
    /// Set if the programs are built already.
    is_built: bool,
    /// Only these targets, if any are named.
    only: Vec<String>,
    /// Remark on the machine, for the report.
    pub note: Option<String>,
    pub command: String,
}

/// One cell of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewaySetting {
    pub is_stateless: bool,
    pub payload: usize,
    pub clients: usize,
}

/// The figures of one target in one setting and round.
pub struct GatewaySample {
    pub kind: TargetKind,
    pub setting: GatewaySetting,
    pub round: usize,
    /// `None` if the target did not answer.
    pub figures: Option<Value>,
}

pub fn gateway(words: &[&str]) -> TaskResult {
    let plan = GatewayPlan::parse(words)?;
    let others = peers::install_gateways()?;
    if !plan.is_built {
        let packages = ["--package", "wharf-cli", "--package", "wharf-peers"];
        let programs = ["wharf", "bench-gateway", "bench-echo", "bench-http-echo", "bench-raw", "bench-wharf"];
        let programs = programs.iter().flat_map(|name| ["--bin", name]);
        run(cargo().args(["build", "--profile", &plan.profile]).args(packages).args(programs))?;
    }
    let binaries = target().join(if plan.profile == "dev" { "debug" } else { &plan.profile });
    let mut samples = Vec::new();
    let mut pipes = Vec::new();
    for round in 0..plan.rounds {
        pipes.push(measure_pipe(&binaries, plan.seconds)?);
        let targets = start_all(&binaries, &others, &plan.only)?;
        for setting in settings() {
            for target in &targets {
                samples.push(measure(&plan, target, setting, round));
            }
        }
        drop(targets);
        end_background_processes();
    }
    report_page::write_part(&gateway_table::page(&plan, &samples, &pipes))?;
    gateway_table::check(&samples)
}

fn settings() -> Vec<GatewaySetting> {
    let eras = [false, true].into_iter();
    let payloads = eras.flat_map(|is_stateless| [64, 65536].map(|payload| (is_stateless, payload)));
    let all = payloads.flat_map(|(is_stateless, payload)| {
        [1, 64, MANY_CLIENTS].map(|clients| GatewaySetting { is_stateless, payload, clients })
    });
    all.collect()
}

fn measure(plan: &GatewayPlan, target: &RunningTarget, setting: GatewaySetting, round: usize) -> GatewaySample {
    let sample = |figures| GatewaySample { kind: target.kind, setting, round, figures };
    if target.kind.has_process_per_session() && setting.clients >= MANY_CLIENTS {
        return sample(None);
    }
    let GatewaySetting { is_stateless, payload, clients } = setting;
    let mut command = Command::new("timeout");
    command.arg("60").arg(&target.load).args(["load", "--url", &target.url, "--tool", target.kind.tool()]);
    command.args(target.token.iter().flat_map(|token| ["--token", token.as_str()]));
    command.args(is_stateless.then_some("--stateless"));
    command.args(["--clients", &clients.to_string(), "--payload", &payload.to_string()]);
    command.args(["--secs", &plan.seconds.to_string(), "--pid", &target.pid().to_string()]);
    command.args(target.kind.server().into_iter().flat_map(|server| ["--except", server]));
    let measured = capture(&mut command).and_then(|output| Ok(serde_json::from_str::<Value>(&output.stdout)?));
    match measured {
        Ok(figures) => {
            say!("{} {setting:?}: {figures}", target.kind.label());
            sample(Some(figures).filter(|figures| figures["n"].as_u64() > Some(0)))
        }
        Err(failure) => {
            let line = failure.to_string();
            let reason =
                line.lines().find(|line| line.contains("called `")).or(line.lines().next()).unwrap_or_default();
            say!("{} {setting:?}: {}", target.kind.label(), reason.chars().take(200).collect::<String>());
            sample(None)
        }
    }
}

/// Returns the median latency of the server on a pipe, in microseconds.
fn measure_pipe(binaries: &std::path::Path, seconds: f64) -> TaskResult<f64> {
    let template = super::write_template(&binaries.join("bench-wharf"), super::BenchTransport::Stdio)?;
    let mut command = Command::new(binaries.join("bench-raw"));
    command.arg("--server").arg(binaries.join("bench-echo")).args(["--payload", "64", "--conc", "1"]);
    command.args(["--secs", &seconds.to_string(), "--template"]).arg(template);
    let figures: Value = serde_json::from_str(&capture(&mut command)?.stdout)?;
    figures["p50_us"].as_f64().ok_or_else(|| "no p50_us".into())
}

impl GatewayPlan {
    fn parse(words: &[&str]) -> TaskResult<Self> {
        let command = [&["cargo", "xtask", "bench", "gateway"], words].concat().join(" ");
        let (profile, only) = ("dist".to_owned(), Vec::new());
        let mut plan = Self { rounds: 5, seconds: 3.0, profile, is_built: false, only, note: None, command };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => (plan.rounds, plan.seconds) = (1, 1.0),
                "--rounds" => plan.rounds = parse_number("--rounds", words.next())?,
                "--secs" => plan.seconds = parse_number("--secs", words.next())?,
                "--profile" => plan.profile = words.next().ok_or("--profile NAME")?.to_string(),
                "--built" => plan.is_built = true,
                "--only" => plan.only.push(words.next().ok_or("--only TARGET")?.to_string()),
                "--note" => plan.note = Some(words.next().ok_or("--note TEXT")?.to_string()),
                other => return Err(format!("bench gateway: unknown argument {other}").into()),
            }
        }
        if plan.rounds == 0 { Err("--rounds must be at least 1".into()) } else { Ok(plan) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_era_payload_and_number_of_clients_is_measured() {
        let all = settings();
        assert_eq!(all.len(), 12);
        assert_eq!(all[0], GatewaySetting { is_stateless: false, payload: 64, clients: 1 });
    }

    #[test]
    fn arguments_are_parsed() {
        let plan = GatewayPlan::parse(&["--rounds", "2", "--only", "wharf"]).unwrap();
        assert_eq!((plan.rounds, plan.only.len()), (2, 1));
        assert!(GatewayPlan::parse(&["--rounds", "0"]).is_err());
        assert!(GatewayPlan::parse(&["--fast"]).is_err());
    }
}
