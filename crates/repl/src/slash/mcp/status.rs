//! `/mcp status`: all servers and their state.

use wharf::ServerState;

use super::boxed_table::{BoxedRow, BoxedTable, RowNote};
use crate::slash::{CommandContext, ReplAction};
use wharf_terminal::age::AgeText;
use wharf_terminal::columns::ColumnAlignment;
use wharf_terminal::config_context::ADD;
use wharf_terminal::failure::{Failure, evidence_line};
use wharf_terminal::status::show::{state_label, style_state};
use wharf_terminal::status::status_rows::StatusRow;
use wharf_terminal::style::{HEADING, NAME, QUIET, paint};
use wharf_terminal::table::wrap;

const HEADINGS: [(&str, ColumnAlignment); 7] = [
    ("Server", ColumnAlignment::Left),
    ("Transport", ColumnAlignment::Left),
    ("Source", ColumnAlignment::Left),
    ("Enabled", ColumnAlignment::Left),
    ("Status", ColumnAlignment::Left),
    ("Tools", ColumnAlignment::Right),
    ("Updated", ColumnAlignment::Left),
];

/// Columns to omit first: the status column shows disabled servers, and the details show the rest.
const OMIT_ORDER: [usize; 4] = [3, 2, 1, 6];

const HINTS: [&str; 2] = ["Use '/mcp list-tools' to see all tools", "Use '/mcp debug <server>' for more details"];

pub fn run(context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let rows = context.managed_host.rows();
    if rows.is_empty() {
        return context
            .print(format_args!("no MCP servers configured\n{}\n", paint(QUIET, format_args!("hint: {ADD}"))));
    }
    context.print(render_status(&rows, context.width()))
}

fn render_status(rows: &[StatusRow], width: Option<usize>) -> String {
    let rows: Vec<BoxedRow<7>> =
        rows.iter().map(|row| BoxedRow { cells: cells(row), below: problem_note(row) }).collect();
    let table = BoxedTable { headings: HEADINGS, rows: &rows, omit_order: &OMIT_ORDER };
    let hints: String = HINTS.iter().map(|hint| format!("{}\n", paint(QUIET, wrap(hint, width)))).collect();
    format!("{}\n{}\n{hints}", paint(HEADING, "MCP Servers Status:"), table.draw(width, style_cell))
}

fn cells(row: &StatusRow) -> [String; 7] {
    let tools = row.counts.as_ref().map_or("-".to_owned(), |counts| counts.tools.to_string());
    [
        row.id.clone(),
        row.transport.to_owned(),
        row.source.to_owned(),
        if is_enabled(row) { "yes" } else { "no" }.to_owned(),
        state_label(row.state.as_str()),
        tools,
        row.since.map_or("-".to_owned(), |since| AgeText(since).to_string()),
    ]
}

/// Reports whether the server is enabled, in its file and for this session.
pub fn is_enabled(row: &StatusRow) -> bool {
    row.enabled && row.state != ServerState::Disabled
}

fn style_cell(column: usize, cell: &str) -> String {
    match column {
        0 => paint(NAME, cell).to_string(),
        4 => style_state(cell),
        _ => cell.to_owned(),
    }
}

/// Returns a note with the problem of a server and the next step.
fn problem_note(row: &StatusRow) -> Option<RowNote> {
    let what = row.failure.as_deref().map(evidence_line).or_else(|| row.notes.first().cloned());
    let next = next_step(row);
    (what.is_some() || next.is_some())
        .then(|| RowNote { what: what.unwrap_or_default(), next: next.unwrap_or_default() })
}

/// Returns the command to run next for a server with a problem.
pub fn next_step(row: &StatusRow) -> Option<String> {
    let id = &row.id;
    match row.state {
        ServerState::AuthRequired => Some(format!("/mcp auth {id}")),
        ServerState::Unapproved => Some(format!("wharf approve {id}")),
        // Never in the host: the entry must be corrected and reloaded.
        ServerState::Failed if row.since.is_none() => Some(format!("wharf why {id}, then /mcp reload")),
        ServerState::Failed => Some(format!("/mcp reconnect {id}")),
        ServerState::Reconnecting => Some(format!("/mcp debug {id}")),
        _ if !row.notes.is_empty() => Some(format!("/mcp {id}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use wharf_terminal::status::status_rows::OfferCounts;

    fn row(id: &str, state: ServerState, tools: Option<usize>) -> StatusRow {
        StatusRow {
            since: Some(SystemTime::now() - Duration::from_secs(7200)),
            counts: tools.map(|tools| OfferCounts { tools, resources: 0, prompts: 0 }),
            ..StatusRow::new(id, "stdio", "global", state)
        }
    }

    fn rows() -> Vec<StatusRow> {
        let mut failed = row("web-search", ServerState::Failed, None);
        let mut failure = Failure::other("the server ended");
        failure.error.stderr = vec!["no API key was found anywhere, and none was given\u{1b}[2J".to_owned()];
        failed.failure = Some(Arc::new(failure));
        let mut theirs = row("theirs", ServerState::Unapproved, None);
        (theirs.source, theirs.since) = ("project", None);
        vec![
            row("filesystem-of-the-whole-harbour", ServerState::Ready, Some(8)),
            failed,
            row("off", ServerState::Disabled, None),
            theirs,
        ]
    }

    fn shown(rows: &[StatusRow], width: Option<usize>) -> String {
        anstream::adapter::strip_str(&render_status(rows, width)).to_string()
    }

    #[test]
    fn status_box_at_eighty_columns() {
        assert_eq!(
            shown(&rows(), Some(80)),
            "MCP Servers Status:\n\
             ┌─────────────┬───────────┬─────────┬─────────┬──────────────┬───────┬─────────┐\n\
             │ Server      │ Transport │ Source  │ Enabled │ Status       │ Tools │ Updated │\n\
             ├─────────────┼───────────┼─────────┼─────────┼──────────────┼───────┼─────────┤\n\
             │ filesystem… │ stdio     │ global  │ yes     │ ✓ ready      │     8 │ 2h ago  │\n\
             │ web-search  │ stdio     │ global  │ yes     │ ✗ failed     │     - │ 2h ago  │\n\
             │   the server ended: no API key was found anywher…; /mcp reconnect web-search │\n\
             │ off         │ stdio     │ global  │ no      │ ○ disabled   │     - │ 2h ago  │\n\
             │ theirs      │ stdio     │ project │ yes     │ ‖ unapproved │     - │ -       │\n\
             │   wharf approve theirs                                                       │\n\
             └─────────────┴───────────┴─────────┴─────────┴──────────────┴───────┴─────────┘\n\
             \n\
             Use '/mcp list-tools' to see all tools\n\
             Use '/mcp debug <server>' for more details\n"
        );
    }

    #[test]
    fn box_fits_and_shows_the_next_step_at_every_width() {
        for width in [44, 60, 72, 80, 100, 120] {
            let text = shown(&rows(), Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
            for part in ["✓ ready", "✗ failed", "○ disabled", "/mcp reconnect web-search │", "wharf approve theirs"]
            {
                assert!(text.contains(part), "{part} in\n{text}");
            }
        }
        assert!(shown(&rows(), None).contains("filesystem-of-the-whole-harbour"));
    }
}
