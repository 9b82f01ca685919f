//! Measures cells and says which of them stay within the bounds.

use serde_json::{Value, json};
use wharf_testkit::torture::{RunnerArguments, write_table};

use crate::cell::{Cell, MAX_PEAK, MAX_RATIO, Measured, all};

/// Cells that every run of the tests looks at.
const USUAL: [&str; 4] = ["stdio/lists/5", "stdio/results/5", "http/all/5", "sse/lists/1"];
/// Seconds of each of them.
const USUAL_SECONDS: u64 = 3;
/// How often a cell is measured for the table.
const ROUNDS: usize = 3;

/// Gives the exit code.
pub fn run(words: impl Iterator<Item = String>) -> i32 {
    let arguments = RunnerArguments::parse(words);
    // The number of runs is that of seconds.
    let seconds = arguments.runs.map_or(USUAL_SECONDS, |runs| runs as u64);
    let is_usual = |cell: &Cell| arguments.table.is_some() || USUAL.contains(&cell.name().as_str());
    let is_wanted = |cell: &Cell| arguments.selects(&cell.name()) && (arguments.filter.is_some() || is_usual(cell));
    let (mut rows, mut failed) = (Vec::new(), 0);
    for cell in all().into_iter().filter(is_wanted) {
        let (row, is_within) = match arguments.table {
            Some(_) => compare(cell, seconds),
            None => look(cell, seconds),
        };
        failed += usize::from(!is_within);
        rows.push(row);
    }
    if let Some(path) = &arguments.table {
        write_table(path, &table(&rows, failed, seconds));
    }
    println!("memory: {} cells, {failed} over a bound", rows.len());
    i32::from(failed > 0)
}

/// Memory alone: how long calls take says little while other tests run.
fn look(cell: Cell, seconds: u64) -> (Value, bool) {
    let measured = cell.measure(seconds);
    let is_within = measured.peak <= MAX_PEAK && measured.calls > 0;
    println!("memory: {}: {} KiB above idle (at most {MAX_PEAK})", cell.name(), measured.peak);
    measured.failures.iter().for_each(|failure| println!("memory:   {failure}"));
    (json!([cell.name(), measured.peak]), is_within)
}

fn compare(cell: Cell, seconds: u64) -> (Value, bool) {
    // One of each by turns, since a single 99th percentile beside busy processors is a throw of dice.
    let rounds: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let flooded = cell.measure(seconds);
            let beside = cell.measure_beside(&flooded, seconds);
            (flooded, beside)
        })
        .collect();
    let peak = rounds.iter().map(|(flooded, _)| flooded.peak).max().unwrap_or(0);
    let (flooded, beside): (Vec<_>, Vec<_>) = rounds.into_iter().unzip();
    let (flooded, beside) = (median(flooded), median(beside));
    let ratio = ratio(&flooded, &beside);
    let is_within = peak <= MAX_PEAK && ratio <= MAX_RATIO;
    let row = json!([
        cell.form,
        cell.kind.as_str(),
        cell.count,
        format!("{:.1}", megabytes(peak)),
        format!("{:.2}", milliseconds(&flooded)),
        format!("{:.2}", milliseconds(&beside)),
        format!("{ratio:.2}"),
        flooded.calls,
        format!("{:.2}", flooded.processors()),
        format!("{:.2}", beside.processors()),
        if is_within { "held" } else { "over" },
    ]);
    println!("memory: {row}");
    (row, is_within)
}

/// The one whose 99th percentile lies in the middle.
fn median(mut measured: Vec<Measured>) -> Measured {
    measured.sort_unstable_by_key(|measured| measured.p99);
    measured.swap_remove(measured.len() / 2)
}

#[expect(clippy::cast_precision_loss, reason = "it is only shown")]
fn ratio(flooded: &Measured, beside: &Measured) -> f64 {
    flooded.p99 as f64 / beside.p99.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "it is only shown")]
fn megabytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "it is only shown")]
fn milliseconds(measured: &Measured) -> f64 {
    measured.p99 as f64 / 1000.0
}

fn table(rows: &[Value], failed: usize, seconds: u64) -> Value {
    let profile = if cfg!(debug_assertions) { "dev profile of this workspace" } else { "release profile" };
    json!({
        "title": "Servers that send as much as they can",
        "columns": [
            "transport", "what floods", "servers", "peak above idle, MiB", "p99 of a healthy server, ms",
            "p99 beside as much processor time, ms", "ratio", "calls", "processors used", "processors used beside", "within 128 MiB and 2×",
        ],
        "rows": rows,
        "failed": failed,
        "notes": [
            format!(
                "Each row runs one host for {seconds} s with a healthy stdio server, called every 4 ms, beside servers that \
                 flood, each with four calls under way at once; one reader of the host's events never reads. Idle is the \
                 resident memory with the healthy server alone. The comparison is the same host and healthy server beside \
                 an unconnected process that uses as much processor time as the host and the flooding servers did, in each \
                 stretch of 25 ms and on as many threads as could run at once then. Both are measured {ROUNDS} times by \
                 turns; the medians are told, and the highest peak. \
                 Built with the {profile}."
            ),
        ],
    })
}
