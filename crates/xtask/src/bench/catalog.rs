//! `cargo xtask bench catalog`: time to merge the listings of many servers, to look up a name and to replace one
//! server, compared with a plain map.

use std::fmt::Write;
use std::process::Command;

use serde_json::Value;

use super::tables::median;
use super::{ThroughputPlan, report_page};
use crate::run::{MachineDescription, TaskResult, capture, cargo, run, say, target};

/// One measured figure, with its unit, its baseline and its limit.
struct CatalogRow {
    what: &'static str,
    figure: &'static str,
    unit: &'static str,
    plain: Option<&'static str>,
    limit: Option<f64>,
}

const ROWS: [CatalogRow; 6] = [
    CatalogRow {
        what: "merging all servers",
        figure: "merge_us",
        unit: "µs",
        plain: Some("plain_merge_us"),
        limit: Some(10_000.0),
    },
    CatalogRow {
        what: "merging one by one, with a catalog each",
        figure: "grow_us",
        unit: "µs",
        plain: Some("plain_merge_us"),
        limit: None,
    },
    CatalogRow { what: "name lookup", figure: "find_ns", unit: "ns", plain: Some("plain_find_ns"), limit: Some(200.0) },
    CatalogRow { what: "lookup of a server's tool", figure: "id_ns", unit: "ns", plain: None, limit: None },
    CatalogRow {
        what: "replacing one server",
        figure: "change_us",
        unit: "µs",
        plain: Some("plain_change_us"),
        limit: None,
    },
    CatalogRow { what: "building one server's section", figure: "section_us", unit: "µs", plain: None, limit: None },
];

pub fn catalog(words: &[&str]) -> TaskResult {
    let plan = ThroughputPlan::parse("catalog", words)?;
    run(cargo().args(["build", "--profile", "dist", "--package", "wharf-peers", "--bin", "bench-catalog"]))?;
    let program = target().join("dist/bench-catalog");
    let mut rounds = Vec::new();
    for round in 0..plan.rounds {
        say!("round {} of {}", round + 1, plan.rounds);
        let line = capture(Command::new(&program).args(["--secs", &plan.seconds.to_string()]))?.stdout;
        rounds.push(serde_json::from_str(&line)?);
    }
    report_page::write_part(&page(&plan, &MachineDescription::detect(), &rounds))?;
    check_limits(&rounds)
}

fn page(plan: &ThroughputPlan, here: &MachineDescription, rounds: &[Value]) -> String {
    let of_first = |name: &str| rounds.first().and_then(|round| round[name].as_u64()).unwrap_or_default();
    let mut page = format!(
        "# Benchmarks: the catalog\n\n\
         {} servers of {} tools each, compared with a `HashMap` from names to tools that is built, queried and, for a \
         change invisible to current readers, copied in the same run. A change keeps the sections of all \
         other servers shared, which the run verifies. Medians over {} rounds.\n\n\
         Measured on {}, Linux {}, {} cores, {}, with `{}`.\n\n\
         | | catalog | map | catalog : map | limit |\n| --- | ---: | ---: | ---: | ---: |\n",
        of_first("servers"),
        of_first("tools"),
        plan.rounds,
        here.date,
        here.kernel,
        here.cores,
        here.processor,
        plan.command,
    );
    for row in &ROWS {
        let CatalogRow { what, figure, unit, plain, limit } = row;
        let shown = |value: f64| format!("{value:.0} {unit}");
        let plain = plain
            .map(|plain| (shown(median_of(rounds, plain)), format!("{:.2}×", median_ratio(rounds, figure, plain))));
        let (map, relation) = plain.unwrap_or_else(|| ("–".into(), "–".into()));
        let limit = limit.map_or_else(|| "–".into(), shown);
        let _ = writeln!(page, "| {what} | {} | {map} | {relation} | {limit} |", shown(median_of(rounds, figure)));
    }
    page
}

fn median_of(rounds: &[Value], figure: &str) -> f64 {
    median(rounds.iter().filter_map(|round| round[figure].as_f64()).collect())
}

/// Returns the median ratio to the map, computed within each round.
fn median_ratio(rounds: &[Value], figure: &str, plain: &str) -> f64 {
    let within = |round: &Value| Some(round[figure].as_f64()? / round[plain].as_f64()?);
    median(rounds.iter().filter_map(within).collect())
}

fn check_limits(rounds: &[Value]) -> TaskResult {
    for CatalogRow { what, figure, unit, limit, .. } in &ROWS {
        let found = median_of(rounds, figure);
        // A missing figure is NaN and fails every limit.
        if limit.is_some_and(|limit| found.is_nan() || found > limit) {
            return Err(format!("{what} takes {found:.0} {unit}, above its limit").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exceeding_a_limit_fails() {
        let figures = |merge: f64, find: f64| [json!({ "merge_us": merge, "find_ns": find })];
        assert!(check_limits(&figures(9_000.0, 199.0)).is_ok());
        assert!(check_limits(&figures(11_000.0, 100.0)).is_err());
        assert!(check_limits(&figures(9_000.0, 201.0)).is_err());
        assert!(check_limits(&[json!({ "merge_us": 1.0 })]).is_err());
    }

    #[test]
    fn rows_have_median_and_ratio() {
        let round =
            |merge: f64, plain: f64| json!({ "servers": 2, "tools": 3, "merge_us": merge, "plain_merge_us": plain });
        let plan = ThroughputPlan { rounds: 3, seconds: 0.1, command: "x".into() };
        let here = MachineDescription { date: "d".into(), kernel: "k".into(), cores: 1, processor: "p".into() };
        let page = page(&plan, &here, &[round(100.0, 50.0), round(300.0, 100.0), round(200.0, 200.0)]);
        assert!(page.contains("2 servers of 3 tools each"), "{page}");
        assert!(page.contains("| merging all servers | 200 µs | 100 µs | 2.00× | 10000 µs |"), "{page}");
    }
}
