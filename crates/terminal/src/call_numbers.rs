//! Columns of a table with the figures of a tool's calls.

use std::time::Duration;

use wharf::ToolStats;

use crate::clock::DurationText;
use crate::columns::Side;

/// Headings of [`numbers`].
pub const NUMBERS: [(&str, Side); 5] =
    [("CALLS", Side::Right), ("ERRORS", Side::Right), ("P50", Side::Right), ("P90", Side::Right), ("P99", Side::Right)];

/// Returns the statistics of a tool as table cells.
pub fn numbers(stats: &ToolStats) -> [String; 5] {
    let took = |micros: u64| DurationText(Duration::from_micros(micros)).to_string();
    let times = [stats.p50_us, stats.p90_us, stats.p99_us].map(took);
    let [half, most, nearly_all] = times;
    [stats.calls.to_string(), stats.errors.to_string(), half, most, nearly_all]
}
