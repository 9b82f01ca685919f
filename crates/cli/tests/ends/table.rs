//! What was seen, as the table that `cargo xtask prove` puts into the documentation.

use std::collections::BTreeMap;
use std::path::Path;

use crate::fleet::{PROCESSES, Role, SERVERS};
use crate::host::Kind;
use crate::runner::{CRUDE, Cell, GRACEFUL};

pub fn write(path: &Path, cells: &[Cell], runs: usize) {
    let table = serde_json::json!({
        "title": "Nothing outlives its host",
        "columns": ["host", "end", "runs", "servers", "processes before", "survivors", "slowest clean-up"],
        "rows": cells.iter().map(row).collect::<Vec<_>>(),
        "failed": cells.iter().map(|cell| cell.tally.failed).sum::<usize>(),
        "notes": notes(cells, runs),
    });
    wharf_testkit::torture::write_table(path, &table);
}

fn row(cell: &Cell) -> Vec<String> {
    let tally = &cell.tally;
    let (survivors, slowest) = match cell.kind {
        Kind::Unguarded => (format!("{} each", mean(tally.survivors, tally.runs)), "–".to_owned()),
        _ => (tally.survivors.to_string(), format!("{} ms", tally.slowest.as_millis())),
    };
    vec![
        cell.kind.as_str().replace('-', " "),
        cell.end.as_str().to_owned(),
        tally.runs.to_string(),
        SERVERS.to_string(),
        tally.processes.to_string(),
        survivors,
        slowest,
    ]
}

fn notes(cells: &[Cell], runs: usize) -> Vec<String> {
    let mut notes = vec![
        format!(
            "{SERVERS} servers at once, each end {runs} ×: 8 plain, 8 wrapped (half of them by a shell), 8 with a \
             grandchild in a session of its own and a double-forked one, 8 deaf to SIGTERM and to the end of their \
             input; {PROCESSES} processes and, where there are guards, one guard per server."
        ),
        format!(
            "Times run from the end until the host, its guards and every process of its servers are gone: at most \
             {} s, and {} s where the host closes its servers itself (close; any signal but SIGKILL for `wharf`).",
            CRUDE.as_secs(),
            GRACEFUL.as_secs()
        ),
    ];
    notes.extend(unguarded(cells));
    notes
}

/// The figure for an embedder without the guard, and what its survivors are.
fn unguarded(cells: &[Cell]) -> Option<String> {
    let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.kind == Kind::Unguarded && cell.tally.runs > 0).collect();
    if cells.is_empty() {
        return None;
    }
    // Ends that leave the same are told together.
    let mut ends: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for Cell { end, tally, .. } in &cells {
        let left = format!("{} ({})", mean(tally.survivors, tally.runs), roles(&tally.by_role, tally.runs));
        ends.entry(left).or_default().push(end.as_str());
    }
    let each = ends.iter().map(|(left, ends)| format!("{}: {left}", ends.join(", ")));
    let (survivors, runs) =
        cells.iter().fold((0, 0), |(left, runs), cell| (left + cell.tally.survivors, runs + cell.tally.runs));
    Some(format!(
        "An embedder without the guard gets `containment: group`, and on average {} of its {PROCESSES} processes \
         survive an end; this is counted and no failure. {}.",
        mean(survivors, runs),
        each.collect::<Vec<_>>().join("; ")
    ))
}

fn roles(by_role: &BTreeMap<Role, usize>, runs: usize) -> String {
    let each = by_role.iter().map(|(role, count)| format!("{} {}", mean(*count, runs), role.as_str()));
    let each: Vec<String> = each.collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

/// A mean with a decimal only where it has one.
fn mean(sum: usize, count: usize) -> String {
    let tenths = (sum * 10 + count / 2) / count.max(1);
    if tenths.is_multiple_of(10) { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}
