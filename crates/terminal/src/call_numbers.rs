//! Columns of a table with the figures of a tool's calls.

use std::time::Duration;

use wharf::ToolStats;

use crate::clock::DurationText;
use crate::columns::ColumnAlignment;

/// Headings of [`stats_cells`].
pub const NUMBERS: [(&str, ColumnAlignment); 5] = [
    ("CALLS", ColumnAlignment::Right),
    ("ERRORS", ColumnAlignment::Right),
    ("P50", ColumnAlignment::Right),
    ("P90", ColumnAlignment::Right),
    ("P99", ColumnAlignment::Right),
];

/// Returns the statistics of a tool as table cells.
pub fn stats_cells(stats: &ToolStats) -> [String; 5] {
    let duration = |micros: u64| DurationText(Duration::from_micros(micros)).to_string();
    let times = [stats.p50_us, stats.p90_us, stats.p99_us].map(duration);
    let [half, most, nearly_all] = times;
    [stats.calls.to_string(), stats.errors.to_string(), half, most, nearly_all]
}
