//! Log messages of servers in conversations and runs (F9).

use serde_json::{Value, json};
use wharf_testkit::modeld::Answer;
use wharf_testkit::test_home::{CommandOutput, TestHome};

use crate::run::Stage;
use crate::support::{assert_harmless, working};

/// Writes a server that logs during a call, and returns its entry.
fn logging_server(home: &TestHome) -> Value {
    let script = r#"say() { printf '%s\n' "$1"; }
answer() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
log() { say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"'"$1"'","data":"'"$2"'"}}'; }
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
    *'"server/discover"'*) say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no"}}' ;;
    *'"initialize"'*) answer '{"protocolVersion":"2025-11-25","serverInfo":{"name":"x","version":"1"},"capabilities":{"tools":{},"logging":{}}}' ;;
    *'"logging/setLevel"'*) answer '{}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"sail","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) log warning 'low tide\u001b[2K'; log info 'calm sea'; answer '{"content":[]}' ;;
  esac
done
"#;
    json!({ "command": "sh", "args": [home.write("logging.sh", script)], "trust": true })
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
