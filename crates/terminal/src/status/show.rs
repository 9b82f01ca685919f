//! Formats status rows as a table or as JSON.

use serde::Serialize;
use wharf::ServerState;
use wharf_spec::UntrustedText;

use super::status_rows::StatusRow;
use crate::age::AgeText;
use crate::clock::timestamp;
use crate::columns::{ColumnAlignment, render_columns};
use crate::count_text::CountText;
use crate::failure::ErrorDocument;
use crate::probe::evidence_line;
use crate::style::{BAD, GOOD, NAME, QUIET, WARNING, paint};
use crate::table::wrap;

const HEADINGS: [(&str, ColumnAlignment); 7] = [
    ("  ID", ColumnAlignment::Left),
    ("TRANSPORT", ColumnAlignment::Left),
    ("SOURCE", ColumnAlignment::Left),
    ("STATE", ColumnAlignment::Left),
    ("TOOLS", ColumnAlignment::Right),
    ("REVISION", ColumnAlignment::Left),
    ("SINCE", ColumnAlignment::Left),
];

/// Formats a line per server. A server with a problem also gets its error and a hint.
pub fn status_table(rows: &[StatusRow], width: Option<usize>) -> String {
    let cells: Vec<[String; 7]> = rows.iter().map(cells).collect();
    let shown = render_columns(HEADINGS, &cells, width, style_cell);
    let mut lines = shown.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    for (row, line) in rows.iter().zip(lines) {
        text.push_str(&format!("{line}\n"));
        for line in detail_lines(row) {
            text.push_str(&format!("{}\n", wrap(&format!("      {line}"), width)));
        }
    }
    text
}

fn cells(row: &StatusRow) -> [String; 7] {
    let tools = row.counts.as_ref().map_or("-".to_owned(), |counts| counts.tools.to_string());
    [
        format!("  {}", row.id),
        row.transport.to_owned(),
        row.source.to_owned(),
        state_label(row.state),
        tools,
        row.revision.clone().unwrap_or_else(|| "-".to_owned()),
        row.since.map_or("-".to_owned(), |since| AgeText(since).to_string()),
    ]
}

/// Returns the symbol and the word of a state.
pub fn state_label(state: ServerState) -> String {
    let mark = match state {
        ServerState::Ready => "✓",
        ServerState::Failed | ServerState::AuthRequired => "✗",
        ServerState::Connecting | ServerState::Reconnecting => "…",
        ServerState::Disabled | ServerState::Idle | ServerState::Disconnected => "○",
        ServerState::Unapproved => "‖",
    };
    format!("{mark} {state}")
}

fn style_cell(column: usize, cell: &str) -> String {
    match column {
        0 => paint(NAME, cell).to_string(),
        3 => style_state(cell),
        _ => cell.to_owned(),
    }
}

/// Styles a state by its symbol.
pub fn style_state(state: &str) -> String {
    let style = match state.chars().next() {
        Some('✓') => GOOD,
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

pub fn document(rows: &[StatusRow]) -> StatusDocument<'_> {
    StatusDocument { schema: 1, items: rows.iter().map(item).collect() }
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
