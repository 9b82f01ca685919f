//! The report of `bench gateway`: figures by setting, and the limits.

use std::fmt::Write;

use super::gateway::{GatewayPlan, GatewaySample, GatewaySetting};
use super::gateway_targets::TargetKind;
use super::tables::median;
use crate::run::{MachineDescription, TaskResult};

/// The small calls of the handshake era, for which the limits are.
const ONE: GatewaySetting = GatewaySetting { is_stateless: false, payload: 64, clients: 1 };
const MANY: GatewaySetting = GatewaySetting { is_stateless: false, payload: 64, clients: 64 };

/// `pipes` are the medians of the server on a pipe, one for each round.
pub fn page(plan: &GatewayPlan, samples: &[GatewaySample], pipes: &[f64]) -> String {
    let here = MachineDescription::detect();
    let mut page = format!(
        "# Benchmarks: the gateway\n\n\
         Calls of an echo tool through `wharf serve --http`, with permission rules and the audit log on, compared with the \
         server itself over HTTP, a hop that only exchanges ids between the same HTTP library and a pipe, and gateways \
         of other makers before the same server. All run at once and are called in turns. Medians over {} rounds; ratios \
         are computed within a round. Processor time is that of all processes of the gateway, without the server behind \
         it, and for mcporter without its background process. –: no answer, or not measured (supergateway has a \
         process for each session).\n\n\
         Measured on {}, Linux {}, {} cores, {}, with `{}`.{}\n",
        plan.rounds,
        here.date,
        here.kernel,
        here.cores,
        here.processor,
        plan.command,
        plan.note.as_ref().map(|note| format!(" {note}")).unwrap_or_default(),
    );
    for setting in settings(samples) {
        push_setting(&mut page, samples, setting);
    }
    let _ = writeln!(page, "\n## Limits\n\n| metric | measured | limit | within limit |\n| --- | ---: | ---: | --- |");
    for LimitRow { what, measured, limit, reached } in rows(samples, pipes) {
        let held = if reached { "yes" } else { "**no**" };
        let _ = writeln!(page, "| {what} | {measured} | {limit} | {held} |");
    }
    page
}

fn settings(samples: &[GatewaySample]) -> Vec<GatewaySetting> {
    let mut settings: Vec<GatewaySetting> = Vec::new();
    for sample in samples {
        if !settings.contains(&sample.setting) {
            settings.push(sample.setting);
        }
    }
    settings
}

fn push_setting(page: &mut String, samples: &[GatewaySample], setting: GatewaySetting) {
    let era = if setting.is_stateless { "2026-07-28" } else { "2025-11-25" };
    let (clients, bytes) = (setting.clients, setting.payload);
    let plural = if clients == 1 { "" } else { "s" };
    let _ = writeln!(
        page,
        "\n## {era}, {bytes} bytes, {clients} client{plural}\n\n\
         | gateway | p50 ms | p99 ms | calls/s | processor µs/call | memory MB | processes |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for kind in TargetKind::ALL {
        let figure = |name: &str| figure(samples, kind, setting, name);
        let cells = match figure("n") {
            None => "– | – | – | – | – | –".to_owned(),
            Some(_) => format!(
                "{:.3} | {:.2} | {:.0} | {:.1} | {:.1} | {:.0}",
                figure("p50_us").unwrap_or_default() / 1000.0,
                figure("p99_us").unwrap_or_default() / 1000.0,
                figure("rps").unwrap_or_default(),
                figure("cpu_us_per_call").unwrap_or_default(),
                figure("rss_kib").unwrap_or_default() / 1024.0,
                figure("processes").unwrap_or_default(),
            ),
        };
        let _ = writeln!(page, "| {} | {cells} |", kind.label());
    }
}

/// Returns the median over all rounds.
fn figure(samples: &[GatewaySample], kind: TargetKind, setting: GatewaySetting, name: &str) -> Option<f64> {
    let values: Vec<f64> = rounds(samples).filter_map(|round| value(samples, kind, setting, round, name)).collect();
    (!values.is_empty()).then(|| median(values))
}

fn rounds(samples: &[GatewaySample]) -> std::ops::RangeInclusive<usize> {
    0..=samples.iter().map(|sample| sample.round).max().unwrap_or_default()
}

fn value(
    samples: &[GatewaySample],
    kind: TargetKind,
    setting: GatewaySetting,
    round: usize,
    name: &str,
) -> Option<f64> {
    let found = samples.iter().find(|sample| (sample.kind, sample.setting, sample.round) == (kind, setting, round))?;
    found.figures.as_ref()?[name].as_f64()
}

/// Returns the median ratio of Wharf's figure to that of another, within each round.
fn ratio(samples: &[GatewaySample], other: TargetKind, setting: GatewaySetting, name: &str) -> Option<f64> {
    let each = rounds(samples).filter_map(|round| {
        let ours = value(samples, TargetKind::Wharf, setting, round, name)?;
        Some(ours / value(samples, other, setting, round, name)?)
    });
    let ratios: Vec<f64> = each.collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

struct LimitRow {
    what: &'static str,
    measured: String,
    limit: String,
    reached: bool,
}

impl LimitRow {
    fn at_most(what: &'static str, measured: Option<f64>, limit: f64, unit: &str) -> Self {
        Self::new(what, measured, limit, unit, |measured, limit| measured <= limit)
    }

    fn at_least(what: &'static str, measured: Option<f64>, limit: f64, unit: &str) -> Self {
        Self::new(what, measured, limit, unit, |measured, limit| measured >= limit)
    }

    fn new(
        what: &'static str,
        measured: Option<f64>,
        limit: f64,
        unit: &str,
        holds: impl Fn(f64, f64) -> bool,
    ) -> Self {
        let shown = measured.map_or_else(|| "–".to_owned(), |measured| format!("{measured:.2} {unit}"));
        let reached = measured.is_some_and(|measured| holds(measured, limit));
        Self { what, measured: shown, limit: format!("{limit:.2} {unit}"), reached }
    }
}

const REQUIRED: &str = "processor time per call : Rust peer, 64 clients (required)";

fn rows(samples: &[GatewaySample], pipes: &[f64]) -> Vec<LimitRow> {
    let wharf = |setting, name| figure(samples, TargetKind::Wharf, setting, name);
    let direct = figure(samples, TargetKind::Direct, ONE, "p50_us").unwrap_or_default();
    let sum = direct + median(pipes.to_vec()) + 20.0;
    let scripts = TargetKind::ALL.into_iter().filter(|kind| kind.is_script());
    let slowest = scripts.filter_map(|kind| ratio(samples, kind, MANY, "rps")).reduce(f64::min);
    vec![
        LimitRow::at_most(REQUIRED, ratio(samples, TargetKind::RustProxy, MANY, "cpu_us_per_call"), 0.5, "x"),
        LimitRow::at_most("p50, 1 client : direct HTTP + pipe + 20 µs", wharf(ONE, "p50_us"), sum, "µs"),
        LimitRow::at_most("processor time per call, 1 client", wharf(ONE, "cpu_us_per_call"), 40.0, "µs"),
        LimitRow::at_most("processor time per call, 64 clients", wharf(MANY, "cpu_us_per_call"), 25.0, "µs"),
        LimitRow::at_least(
            "calls : Rust peer, 64 clients",
            ratio(samples, TargetKind::RustProxy, MANY, "rps"),
            1.3,
            "x",
        ),
        LimitRow::at_least("calls : best of the Node and Python peers, 64 clients", slowest, 8.0, "x"),
    ]
}

/// Fails if the required limit does not hold.
pub fn check(samples: &[GatewaySample]) -> TaskResult {
    match ratio(samples, TargetKind::RustProxy, MANY, "cpu_us_per_call") {
        Some(ratio) if ratio > 0.5 => Err(format!("{REQUIRED}: {ratio:.2} instead of 0.50").into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(kind: TargetKind, round: usize, cpu: f64) -> GatewaySample {
        let figures = json!({"n": 1, "p50_us": 50.0, "p99_us": 90.0, "rps": 1000.0, "cpu_us_per_call": cpu});
        GatewaySample { kind, setting: MANY, round, figures: Some(figures) }
    }

    #[test]
    fn ratios_are_computed_within_a_round() {
        let all = [
            sample(TargetKind::Wharf, 0, 10.0),
            sample(TargetKind::RustProxy, 0, 40.0),
            sample(TargetKind::Wharf, 1, 30.0),
            sample(TargetKind::RustProxy, 1, 120.0),
        ];
        assert_eq!(ratio(&all, TargetKind::RustProxy, MANY, "cpu_us_per_call"), Some(0.25));
        assert!(check(&all).is_ok());
        assert!(check(&[sample(TargetKind::Wharf, 0, 30.0), sample(TargetKind::RustProxy, 0, 40.0)]).is_err());
    }

    #[test]
    fn missing_answers_are_marked() {
        let silent = GatewaySample { kind: TargetKind::Fastmcp, setting: MANY, round: 0, figures: None };
        let mut page = String::new();
        push_setting(&mut page, &[silent, sample(TargetKind::Wharf, 0, 10.0)], MANY);
        assert!(page.contains("| fastmcp 4.1.2 | – | – |") && page.contains("| Wharf | 0.050 |"), "{page}");
    }
}
