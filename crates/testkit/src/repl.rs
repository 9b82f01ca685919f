//! The REPL of `wharf` on a terminal: its prompt, its server table, and leaving it.

use std::process::Command;

use crate::oracle::poll_until;
use crate::pty::{PATIENCE, Terminal};

/// The prompt before an input line.
pub const PROMPT: &str = "\u{203a} ";

/// The end of the output of `/mcp`.
const LAST_HINT: &str = "for more details";

/// Starts the REPL and waits for its prompt.
#[track_caller]
pub fn start(command: &Command) -> Terminal {
    let mut terminal = Terminal::start(command);
    terminal.expect(PROMPT);
    terminal
}

/// Leaves the REPL, asserts success, and returns all text shown.
#[track_caller]
pub fn exit_repl(mut terminal: Terminal) -> String {
    terminal.line("/exit");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.shown);
    ended.shown
}

/// Waits for a question and its input line: earlier input is not taken as an answer.
#[track_caller]
pub fn wait_for_question(terminal: &mut Terminal, question: &str) {
    terminal.expect(question);
    terminal.expect_view(|screen| {
        let (row, column) = screen.cursor_position();
        screen.contents_between(row, 0, row, column).trim_end() == "?"
    });
}

/// Requests the server table until a server has the wanted state, and its tools are listed if it is ready. Returns the
/// table.
#[track_caller]
pub fn wait_for_state(terminal: &mut Terminal, server: &str, state: &str) -> Table {
    let mut table = Table { text: String::new() };
    let came = poll_until(PATIENCE, || {
        terminal.line("/mcp");
        table.text = terminal.expect(LAST_HINT);
        table.find(server).is_some_and(|row| row.has_state(state) && (state != "ready" || row.has_tools()))
    });
    assert!(came, "{server} never reached state {state}:\n{}", table.text);
    table
}

/// The server table of `/mcp`.
#[derive(Debug)]
pub struct Table {
    pub text: String,
}

/// The cells of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    pub server: &'a str,
    pub transport: &'a str,
    pub source: &'a str,
    pub enabled: &'a str,
    pub status: &'a str,
    pub tools: &'a str,
    pub updated: &'a str,
}

impl Table {
    /// Returns the row of a server; panics if it is missing.
    #[track_caller]
    pub fn row(&self, server: &str) -> Row<'_> {
        self.find(server).unwrap_or_else(|| panic!("no row of {server}:\n{}", self.text))
    }

    fn find(&self, server: &str) -> Option<Row<'_>> {
        self.text.lines().filter_map(Row::parse).find(|row| row.server == server)
    }
}

impl<'a> Row<'a> {
    /// Parses a row; returns `None` if the line is not a complete row.
    fn parse(line: &'a str) -> Option<Row<'a>> {
        let cells: Vec<&str> = line.split('│').map(str::trim).collect();
        let [_, server, transport, source, enabled, status, tools, updated, _] = cells[..] else { return None };
        Some(Row { server, transport, source, enabled, status, tools, updated })
    }

    fn has_state(&self, state: &str) -> bool {
        self.status.split(' ').any(|word| word == state)
    }

    fn has_tools(&self) -> bool {
        self.tools.parse::<usize>().is_ok_and(|count| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_server_name_only() {
        let text = "\
            › /mcp\n\
            │ Server │ Transport │ Source  │ Enabled │ Status   │ Tools │ Updated │\n\
            │ east   │ stdio     │ global  │ yes     │ ✗ failed │     - │ 2h ago  │\n\
            │   it said west and ready                                            │\n\
            │ west   │ http      │ project │ yes     │ ✓ ready  │     8 │ -       │\n";
        let table = Table { text: text.to_owned() };
        let (east, west) = (table.row("east"), table.row("west"));
        assert_eq!((east.transport, east.source, east.status, east.updated), ("stdio", "global", "✗ failed", "2h ago"));
        assert_eq!((west.source, west.enabled, west.tools), ("project", "yes", "8"));
        assert!(east.has_state("failed") && !east.has_state("fail") && !east.has_tools() && west.has_tools());
        assert_eq!(table.find("it said west and ready"), None);
    }
}
