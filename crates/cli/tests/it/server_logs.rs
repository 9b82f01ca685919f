//! Log messages of servers in conversations and runs (F9).

use serde_json::{Value, json};
use wharf_testkit::modeld::Answer;
use wharf_testkit::test_home::{CommandOutput, TestHome};

use crate::run::Stage;
use crate::shell_server::write_shell_server;
use crate::support::{assert_harmless, working};

/// Writes a server that logs during a call, and returns its entry.
fn logging_server(home: &TestHome) -> Value {
    let list = r#"answer '{"tools":[{"name":"sail","inputSchema":{"type":"object"}}]}'"#;
    let call = r#"log warning 'low tide\u001b[2K'; log info 'calm sea'; answer '{"content":[]}'"#;
    let script = write_shell_server(home, "logging.sh", &[("tools/list", list), ("tools/call", call)]);
    json!({ "command": "sh", "args": [script], "trust": true })
}

fn stage() -> Stage {
    let stage = Stage::among(&json!({}), [Answer::call("sail", json!({})), Answer::text("Done.")]);
    stage.home.configure(&json!({ "harbour": logging_server(&stage.home) }));
    stage
}

#[test]
fn run_shows_warnings_of_servers_and_keeps_all_messages() {
    let stage = stage();
    let ran = stage.run(&["run", "sail"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("harbour · warning: low tide") && !ran.stderr.contains("calm sea"), "{ran:?}");
    assert_harmless(&ran.stderr);
    let logs = stage.home.run_line("logs harbour");
    assert!(logs.stdout.contains(": warning: low tide") && logs.stdout.contains(": info: calm sea"), "{logs:?}");
}

#[test]
fn info_level_shows_more_than_warnings_and_no_messages() {
    let stage = stage();
    let ran = CommandOutput::from(stage.command(&["run", "sail"]).env("WHARF_DEBUG", "info").output().unwrap());
    assert!(ran.stderr.contains("harbour · info: calm sea"), "{ran:?}");
    assert!(!ran.stderr.contains("\"method\""), "{ran:?}");
}

#[test]
fn conversation_takes_debug() {
    let home = TestHome::with_servers(&json!({ "demo": working() }));
    let ran = home.run_with_input(&["--debug"], "/mcp\n/exit\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("\"method\""), "{ran:?}");
}
