//! A server of 2025-11-25 as a shell script, for tests that decide what it says.

use std::path::PathBuf;

use wharf_testkit::test_home::TestHome;

const BEFORE: &str = r#"say() { printf '%s\n' "$1"; }
member() { say '{"jsonrpc":"2.0","id":'"$id"','"$1"'}'; }
answer() { member '"result":'"$1"; }
log() { say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"'"$1"'","data":"'"$2"'"}}'; }
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
    *'"server/discover"'*) member '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*) answer '{"protocolVersion":"2025-11-25","serverInfo":{"name":"x","version":"1"},"capabilities":{"tools":{},"logging":{}}}' ;;
    *'"logging/setLevel"'*) answer '{}' ;;
"#;
const AFTER: &str = "  esac\ndone\n";

/// Writes a script that runs a shell command for each method. `answer` sends a result, `member` a result or an error with
/// its key, `log` a log message.
pub fn write_shell_server(home: &TestHome, file: &str, methods: &[(&str, &str)]) -> PathBuf {
    let cases: String =
        methods.iter().map(|(method, command)| format!("    *'\"{method}\"'*) {command} ;;\n")).collect();
    home.write(file, &format!("{BEFORE}{cases}{AFTER}"))
}
