//! The screens in `evidence/screens`, at 80 and 120 columns. `UPDATE_SCREENS=1` writes them.

use std::path::PathBuf;

use serde_json::json;
use wharf_testkit::modeld::{Answer, Script};
use wharf_testkit::pty::{Layout, Terminal};
use wharf_testkit::repl::{self, PROMPT, wait_for_state};

use super::agent_home::{AgentHome, all_allowed, demo};

const WIDTHS: [u16; 2] = [80, 120];

/// Starts the REPL at a width, with enough rows for a whole screen.
fn repl_at(home: &AgentHome, columns: u16) -> Terminal {
    let mut terminal =
        Terminal::start_with(&home.command::<&str>([]), Layout { rows: 40, columns, ..Layout::default() });
    terminal.expect(PROMPT);
    terminal
}

/// Compares the screen from the last input on with its file. Ages are replaced, since they differ between runs.
#[track_caller]
fn assert_screen(terminal: &Terminal, name: &str, columns: u16, input: &str) {
    let rows = terminal.screen();
    let first = rows.iter().rposition(|row| row.contains(input)).expect("the input is on the screen");
    let rows: Vec<String> = rows[first..].iter().map(|row| without_age(row.trim_end())).collect();
    let shown = format!("{}\n", rows.join("\n").trim_end());
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../evidence/screens/{name}-{columns}.txt"));
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::write(&file, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(shown, expected, "{} is not current; UPDATE_SCREENS=1 writes it", file.display());
}

/// Replaces the age in the last cell of a row of the server table.
fn without_age(row: &str) -> String {
    let Some(age) = row.find("s ago") else { return row.to_owned() };
    let start = row[..age].rfind(|character: char| !character.is_ascii_digit()).map_or(0, |before| before + 1);
    let cell = row[start..].split(" │").next().unwrap_or_default();
    row.replace(cell, &format!("{:<width$}", "1s ago", width = cell.chars().count()))
}

#[test]
fn permission_question_is_as_recorded() {
    for columns in WIDTHS {
        let arguments = json!({"text": "High water is at noon,\nlow water at six.\n"});
        let home = AgentHome::new(Script::from_turns([Answer::call("echo", arguments), Answer::text("Done.")]));
        let home = home.servers(json!({"harbour": demo()}));
        let mut terminal = repl_at(&home, columns);
        wait_for_state(&mut terminal, "harbour", "ready");
        terminal.line("Say when the tide is high.");
        repl::wait_for_question(&mut terminal, "Allow the call?");
        assert_screen(&terminal, "permission", columns, "Say when the tide is high.");
        terminal.line("n");
        terminal.expect("Done.");
        home.leave(terminal);
    }
}

#[test]
fn form_is_as_recorded() {
    for columns in WIDTHS {
        let script = Script::from_turns([Answer::call("book_berth", json!({})), Answer::text("Done.")]);
        let home = AgentHome::new(script).servers(json!({"harbour": demo()})).with("permissions", all_allowed());
        let mut terminal = repl_at(&home, columns);
        wait_for_state(&mut terminal, "harbour", "ready");
        terminal.line("Book a berth.");
        repl::wait_for_question(&mut terminal, "Cargo");
        terminal.line("glass");
        repl::wait_for_question(&mut terminal, "`glass` is not one of the options");
        assert_screen(&terminal, "form", columns, "Book a berth.");
        terminal.line(":cancel");
        terminal.expect("Done.");
        home.leave(terminal);
    }
}

#[test]
fn server_table_is_as_recorded() {
    for columns in WIDTHS {
        let weather = json!({"command": "sh", "args": ["-c", "echo 'no station answers' >&2; exit 1"]});
        let home = AgentHome::new(Script::from_turns([])).servers(json!({
            "archive": {"command": "archive-server", "enabled": false},
            "github": {"command": "github-mcp-server"},
            "harbour": demo(),
            "weather": weather,
        }));
        let mut terminal = repl_at(&home, columns);
        wait_for_state(&mut terminal, "harbour", "ready");
        wait_for_state(&mut terminal, "github", "failed");
        wait_for_state(&mut terminal, "weather", "reconnecting");
        assert_screen(&terminal, "mcp", columns, "› /mcp");
        home.leave(terminal);
    }
}
