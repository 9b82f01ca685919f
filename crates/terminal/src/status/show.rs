//! Formats status rows as a table or as JSON.

use serde::Serialize;
use wharf::ServerState;
use wharf_spec::UntrustedText;

use super::status_rows::{StatusRow, worst_kind_of_rows};
use crate::age::AgeText;
use crate::clock::timestamp;
use crate::columns::{ColumnAlignment, left_aligned, render_columns};
use crate::count_text::CountText;
use crate::failure::{ErrorDocument, evidence_line};
use crate::style::{BAD, GOOD, NAME, QUIET, WARNING, paint};
use crate::table::wrap;

/// Column of the state.
const STATE_COLUMN: usize = 3;

/// Returns the headings of a table of connected servers, with this one for the time.
pub fn status_headings(time: &'static str) -> [(&'static str, ColumnAlignment); 7] {
    let mut headings = left_aligned(["  ID", "TRANSPORT", "SOURCE", "STATE", "TOOLS", "REVISION", time]);
    headings[4].1 = ColumnAlignment::Right;
    headings
}

/// One row of a table of servers. The first four cells are the id, transport, source and state.
pub struct ServerRow<const N: usize> {
    pub cells: [String; N],
    /// Lines below the row. Escaped.
    pub below: Vec<String>,
}

/// Formats a row per server with its lines below it, and a summary.
pub fn server_table<const N: usize>(
    headings: [(&str, ColumnAlignment); N],
    rows: &[ServerRow<N>],
    width: Option<usize>,
) -> String {
    let cells: Vec<[String; N]> = rows.iter().map(|row| row.cells.clone()).collect();
    let shown = render_columns(headings, &cells, width, style_cell);
    let mut lines = shown.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    for (row, line) in rows.iter().zip(lines) {
        text.push_str(&format!("{line}\n"));
        for line in &row.below {
            text.push_str(&format!("{}\n", wrap(line, width)));
        }
    }
    let states: Vec<&str> = rows.iter().map(|row| row.cells[STATE_COLUMN].as_str()).collect();
    text.push_str(&format!("{}\n", paint(QUIET, wrap(&summary(&states), width))));
    text
}

/// Formats the number of servers by state, as in `3 servers: 2 ready, 1 failed`. Takes labels of states.
fn summary(labels: &[&str]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for label in labels {
        match counts.iter_mut().find(|(known, _)| known == label) {
            Some((_, count)) => *count += 1,
            None => counts.push((label, 1)),
        }
    }
    let rank = |label: &str| "✓●…○‖·✗".chars().position(|symbol| label.starts_with(symbol));
    counts.sort_by_key(|(label, _)| rank(label));
    let word = |label: &str| label.split_once(' ').map_or(label, |(_, word)| word).to_owned();
    let counts: Vec<String> = counts.iter().map(|(label, count)| format!("{count} {}", word(label))).collect();
    format!("{}: {}", CountText(labels.len(), "server"), counts.join(", "))
}

/// Formats a line per server. A server with a problem also gets its error and a hint.
pub fn status_table(rows: &[StatusRow], width: Option<usize>) -> String {
    let row = |row: &StatusRow| ServerRow {
        cells: [
            format!("  {}", row.id),
            row.transport.to_owned(),
            row.source.to_owned(),
            state_label(row.state.as_str()),
            row.counts.as_ref().map_or("-".to_owned(), |counts| counts.tools.to_string()),
            row.revision.clone().unwrap_or_else(|| "-".to_owned()),
            row.since.map_or("-".to_owned(), |since| AgeText(since).to_string()),
        ],
        below: detail_lines(row).iter().map(|line| format!("      {line}")).collect(),
    };
    server_table(status_headings("SINCE"), &rows.iter().map(row).collect::<Vec<_>>(), width)
}

/// Returns the symbol and the word of a state.
pub fn state_label(state: &str) -> String {
    let symbol = match state {
        "ready" => '✓',
        "enabled" => '●',
        "failed" | "broken" | "auth_required" => '✗',
        "connecting" | "reconnecting" => '…',
        "unapproved" | "changed" => '‖',
        "replaced" => '·',
        _ => '○',
    };
    format!("{symbol} {state}")
}

fn style_cell(column: usize, cell: &str) -> String {
    match column {
        0 => paint(NAME, cell).to_string(),
        STATE_COLUMN => style_state(cell),
        _ => cell.to_owned(),
    }
}

/// Styles a state by its symbol.
pub fn style_state(state: &str) -> String {
    let style = match state.chars().next() {
        Some('✓' | '●') => GOOD,
        Some('✗') => BAD,
        Some('…' | '‖') => WARNING,
        _ => QUIET,
    };
    paint(style, state).to_string()
}

fn detail_lines(row: &StatusRow) -> Vec<String> {
    let mut lines: Vec<String> = row.failure.iter().map(|failure| evidence_line(failure)).collect();
    lines.extend(row.notes.iter().cloned());
    let hint = match row.state {
        ServerState::Unapproved => Some(format!("wharf approve {}", row.id)),
        _ if lines.is_empty() => None,
        _ => Some(format!("wharf why {}", row.id)),
    };
    lines.extend(hint.map(|hint| format!("{} {hint}", paint(QUIET, "hint:"))));
    lines
}

/// JSON document of all rows.
#[derive(Serialize)]
pub struct StatusDocument<'a> {
    schema: u32,
    /// False if a server that should be available is not.
    ok: bool,
    items: Vec<StatusItem<'a>>,
}

#[derive(Serialize)]
pub struct StatusItem<'a> {
    id: &'a str,
    transport: &'static str,
    source: &'static str,
    file: &'a str,
    enabled: bool,
    state: ServerState,
    since: Option<String>,
    tools: Option<usize>,
    resources: Option<usize>,
    prompts: Option<usize>,
    revision: Option<&'a str>,
    server_info: Option<ServerInfoDocument<'a>>,
    last_error: Option<ErrorDocument<'a>>,
    last_connected_at: Option<String>,
    updated_at: Option<String>,
    restarts: u32,
    notes: &'a [String],
}

#[derive(Serialize)]
struct ServerInfoDocument<'a> {
    name: &'a str,
    version: &'a str,
    title: Option<&'a str>,
}

pub fn document<'a>(rows: &'a [StatusRow], ids: &[String]) -> StatusDocument<'a> {
    let ok = worst_kind_of_rows(rows, !ids.is_empty()).is_none();
    StatusDocument { schema: 1, ok, items: rows.iter().map(item).collect() }
}

pub fn item(row: &StatusRow) -> StatusItem<'_> {
    let since = row.since.map(timestamp);
    StatusItem {
        id: &row.id,
        transport: row.transport,
        source: row.source,
        file: &row.file,
        enabled: row.enabled,
        state: row.state,
        tools: row.counts.as_ref().map(|counts| counts.tools),
        resources: row.counts.as_ref().map(|counts| counts.resources),
        prompts: row.counts.as_ref().map(|counts| counts.prompts),
        revision: row.revision.as_deref(),
        server_info: row.server_info.as_ref().map(|info| ServerInfoDocument {
            name: &info.name,
            version: &info.version,
            title: info.title.as_deref(),
        }),
        last_error: row.failure.as_ref().map(|failure| failure.error_document()),
        last_connected_at: row.last_connected_at.map(timestamp),
        updated_at: since.clone(),
        since,
        restarts: row.restarts,
        notes: &row.notes,
    }
}

/// Formats a server on one line, as in `git · ready, 13 tools`.
pub fn status_line(row: &StatusRow) -> String {
    let tools = row.counts.as_ref().filter(|_| row.state == ServerState::Ready);
    let tools = tools.map(|counts| format!(", {}", CountText(counts.tools, "tool"))).unwrap_or_default();
    let wrong = row.failure.as_ref().map(|failure| format!(": {}", evidence_line(failure))).unwrap_or_default();
    format!("{} · {}{tools}{wrong}", paint(NAME, UntrustedText::new(row.id.as_str())), row.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_the_states() {
        let labels = |states: &[&str]| states.iter().map(|state| state_label(state)).collect::<Vec<_>>();
        for (states, expected) in [
            (&["ready"][..], "1 server: 1 ready"),
            (&["failed", "ready", "disabled", "ready"], "4 servers: 2 ready, 1 disabled, 1 failed"),
            (&["unapproved", "enabled"], "2 servers: 1 enabled, 1 unapproved"),
        ] {
            let labels = labels(states);
            assert_eq!(summary(&labels.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        }
    }
}
