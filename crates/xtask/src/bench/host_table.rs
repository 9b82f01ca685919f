//! The report of `bench host`: one row per limit.

use std::fmt::Write;

use serde_json::Value;

use super::host::{HostBenchPlan, median_ratio, read_figure};
use super::tables::{group_digits, median};
use crate::run::{MachineDescription, TaskResult};

/// One measured figure with its limit.
pub struct HostLimitRow {
    what: String,
    measured: String,
    limit: String,
    reached: bool,
}

pub fn page(plan: &HostBenchPlan, rows: &[HostLimitRow]) -> String {
    let here = MachineDescription::detect();
    let mut page = format!(
        "# Benchmarks: many servers\n\n\
         One host with 50 servers started at once: 35 healthy ones, and either 15 more of the same or 15 failing \
         ones: 5 that fail to start (no such program, or immediate exit), 5 that take 10 s to respond, and 5 that \
         crash (50 ms after they are ready, or 50 ms after they are started). A server is ready once it has answered a call. \
         Servers are killed with SIGKILL while {} calls wait for them. A call through the host is compared with the same \
         call on its connection, in turn and on one core, with 64 B of arguments and a rule that allows it: by \
         name in the process, by a pattern over its server's tools over stdio.\n\n\
         Measured on {}, Linux {}, {} cores, {}, with `{}`.\n\n\
         | metric | measured | limit | within limit |\n| --- | ---: | ---: | --- |\n",
        group_digits(1000),
        here.date,
        here.kernel,
        here.cores,
        here.processor,
        plan.command,
    );
    for HostLimitRow { what, measured, limit, reached } in rows {
        let held = if *reached { "yes" } else { "**no**" };
        let _ = writeln!(page, "| {what} | {measured} | {limit} | {held} |");
    }
    page
}

/// Compares the time to readiness. `pairs` are milliseconds with failing servers and with healthy ones.
pub fn ready_row(pairs: &[(f64, f64)]) -> HostLimitRow {
    let relation = median_ratio(pairs);
    let (troubled, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    HostLimitRow {
        what: format!("35 healthy servers ready, with 15 failing : with 15 healthy, median of {}", pairs.len()),
        measured: format!("{:.0} ms : {:.0} ms ({relation:.2}×)", median(troubled), median(other)),
        limit: "1.20×".into(),
        reached: relation <= 1.2,
    }
}

/// Compares the latency of calls. Each round has the figures with healthy servers, then with failing servers.
pub fn latency_row(plan: &HostBenchPlan, rounds: &[[Value; 2]]) -> TaskResult<HostLimitRow> {
    let mut pairs = Vec::new();
    for [other, troubled] in rounds {
        pairs.push((read_figure(troubled, "p99_us")?, read_figure(other, "p99_us")?));
    }
    let relation = median_ratio(&pairs);
    let (one, two): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    Ok(HostLimitRow {
        what: format!("p99 of calls to the 35, 4 callers, first {} s, median of {}", plan.seconds, rounds.len()),
        measured: format!("{:.0} µs : {:.0} µs ({relation:.2}×)", median(one), median(two)),
        limit: "2.00×".into(),
        reached: relation <= 2.0,
    })
}

pub fn spawn_row(plan: &HostBenchPlan, rounds: &[[Value; 2]]) -> TaskResult<HostLimitRow> {
    let counts = rounds.iter().filter_map(|[_, troubled]| troubled["spawns"].as_array()).flatten();
    let most = counts.filter_map(Value::as_u64).max().ok_or("no spawns")?;
    Ok(HostLimitRow {
        what: format!("starts of the most-restarted crashing server, in {} s", plan.seconds),
        measured: most.to_string(),
        limit: "12".into(),
        reached: most <= 12,
    })
}

pub fn cpu_row(crashing: &Value, quiet: &Value) -> TaskResult<HostLimitRow> {
    let (one, other) = (read_figure(crashing, "cpu_percent")?, read_figure(quiet, "cpu_percent")?);
    Ok(HostLimitRow {
        what: "CPU time of the idle host, with 5 crashing servers : without".into(),
        measured: format!("{one:.3} % : {other:.3} % (+{:.3} %)", one - other),
        limit: "+1 %".into(),
        reached: one - other < 1.0,
    })
}

/// Summarizes the outcome of pending calls over all kills.
pub fn pending_calls_row(runs: &[&Value]) -> TaskResult<HostLimitRow> {
    let (mut calls, mut ended, mut repeated, mut latest) = (0.0, 0.0, 0.0, 0f64);
    for run in runs {
        calls += read_figure(run, "kills")? * read_figure(run, "callers")?;
        ended += read_figure(&run["ends"], "outcome_unknown")?;
        repeated += read_figure(run, "repeated")?;
        latest = latest.max(read_figure(run, "last_end_max_ms")?);
    }
    Ok(HostLimitRow {
        what: "calls pending at a kill that end once, as unknown outcome, none repeated; time to the last end".into(),
        measured: format!("{} of {}; {latest:.0} ms at most", group_digits(ended as u64), group_digits(calls as u64)),
        limit: "all; 100 ms".into(),
        reached: ended == calls && repeated == 0.0 && latest <= 100.0,
    })
}

pub fn recovery_row(which: &str, run: &Value) -> TaskResult<HostLimitRow> {
    let (p50, p99) = (read_figure(run, "recovery_p50_ms")?, read_figure(run, "recovery_p99_ms")?);
    Ok(HostLimitRow {
        what: format!("from the kill of a server {which} to the next call's response, {} kills", run["kills"]),
        measured: format!("p50 {p50:.0} ms, p99 {p99:.0} ms"),
        limit: "p99 1500 ms".into(),
        reached: p99 <= 1500.0,
    })
}

pub fn overhead_row(figures: &Value) -> TaskResult<HostLimitRow> {
    let more = read_figure(figures, "difference_p50_us")?;
    let (host, connection) = (read_figure(figures, "host_p50_us")?, read_figure(figures, "connection_p50_us")?);
    Ok(HostLimitRow {
        what: format!(
            "p50 of a call, through the host : on its connection, {}",
            figures["over"].as_str().unwrap_or("?")
        ),
        measured: format!("{host:.2} µs : {connection:.2} µs (+{more:.2} µs)"),
        limit: "+1 µs".into(),
        reached: more <= 1.0,
    })
}

/// Compares allocations. `rows` are ordered from the smallest payload to the largest.
pub fn allocation_row(rows: &Value) -> TaskResult<HostLimitRow> {
    let rows = rows.as_array().ok_or("no rows")?;
    let (small, large) = (rows.first().ok_or("no rows")?, rows.last().ok_or("no rows")?);
    let (least, most) = (read_figure(small, "more_bytes")?, read_figure(large, "more_bytes")?);
    Ok(HostLimitRow {
        what: "bytes allocated by a call of 64 B and of 1 MiB, in addition to its connection".into(),
        measured: format!("{least:.0} B, {most:.0} B in {:.0} allocations", read_figure(large, "more_allocations")?),
        limit: "independent of payload".into(),
        reached: most - least < 1024.0,
    })
}

pub fn memory_row(figures: &Value) -> TaskResult<HostLimitRow> {
    let (host, guards) = (read_figure(figures, "host_rss")? / 1024.0, read_figure(figures, "guards_pss")? / 1024.0);
    Ok(HostLimitRow {
        what: "memory of an idle host with 20 stdio servers, and its guards' proportional share".into(),
        measured: format!("{host:.1} MiB + {guards:.1} MiB"),
        limit: "25 MB".into(),
        reached: (host + guards) * 1.048_576 <= 25.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_are_inclusive() {
        let plan = HostBenchPlan { starts: 1, rounds: 1, seconds: 60, kills: 1, command: String::new() };
        let p99 = |us: f64| json!({ "p99_us": us });
        let cpu = |percent: f64| json!({ "cpu_percent": percent });
        let killed = |ended: u64, twice: u64, ms: f64| {
            json!({ "kills": 2, "callers": 10, "ends": { "outcome_unknown": ended }, "repeated": twice,
                "last_end_max_ms": ms, "recovery_p50_ms": 1.0, "recovery_p99_ms": ms })
        };
        let more = |us: f64| json!({ "difference_p50_us": us, "host_p50_us": 3.0, "connection_p50_us": 2.0 });
        let bytes = |large: f64| json!([{ "more_bytes": 100.0 }, { "more_bytes": large, "more_allocations": 2 }]);
        let kib = |host: u64| json!({ "host_rss": host, "guards_pss": 10_000 });
        for (row, reached) in [
            (ready_row(&[(120.0, 100.0)]), true),
            (ready_row(&[(121.0, 100.0)]), false),
            (latency_row(&plan, &[[p99(50.0), p99(100.0)]]).unwrap(), true),
            (latency_row(&plan, &[[p99(50.0), p99(101.0)]]).unwrap(), false),
            (spawn_row(&plan, &[[json!({}), json!({ "spawns": [3, 12] })]]).unwrap(), true),
            (spawn_row(&plan, &[[json!({}), json!({ "spawns": [13, 3] })]]).unwrap(), false),
            (cpu_row(&cpu(1.1), &cpu(0.2)).unwrap(), true),
            (cpu_row(&cpu(1.3), &cpu(0.2)).unwrap(), false),
            (pending_calls_row(&[&killed(20, 0, 9.0)]).unwrap(), true),
            (pending_calls_row(&[&killed(19, 0, 9.0)]).unwrap(), false),
            (pending_calls_row(&[&killed(20, 1, 9.0)]).unwrap(), false),
            (pending_calls_row(&[&killed(20, 0, 101.0)]).unwrap(), false),
            (recovery_row("", &killed(20, 0, 1500.0)).unwrap(), true),
            (recovery_row("", &killed(20, 0, 1501.0)).unwrap(), false),
            (overhead_row(&more(1.0)).unwrap(), true),
            (overhead_row(&more(1.1)).unwrap(), false),
            (allocation_row(&bytes(300.0)).unwrap(), true),
            (allocation_row(&bytes(1_000_000.0)).unwrap(), false),
            (memory_row(&kib(14_000)).unwrap(), true),
            (memory_row(&kib(15_000)).unwrap(), false),
        ] {
            assert_eq!(row.reached, reached, "{}: {}", row.what, row.measured);
        }
    }
}
