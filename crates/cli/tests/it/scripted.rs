//! Servers of a few lines of shell, for what the demo server does not do.

use std::path::{Path, PathBuf};

use crate::support::{home, quoted};

const ASK: &str = r#"say '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who goes there?","requestedSchema":{"type":"object","properties":{"password":{"type":"string","title":"Password"}},"required":["password"]}}}'"#;

/// Answers the handshake, then whatever `cases` say; `$id` is the id of the request.
fn server(name: &str, cases: &str) -> String {
    let script = format!(
        r#"say() {{ printf '%s\n' "$1"; }}
answer() {{ say '{{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}}'; }}
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
{cases}
    *'"server/discover"'*) say '{{"jsonrpc":"2.0","id":'"$id"',"error":{{"code":-32601,"message":"no"}}}}' ;;
    *'"initialize"'*) answer '{{"protocolVersion":"2025-11-25","serverInfo":{{"name":"x","version":"1"}},"capabilities":{{"tools":{{}},"logging":{{}},"resources":{{"subscribe":true}}}}}}' ;;
    *'"logging/setLevel"'*) answer '{{}}' ;;
    *'"tools/list"'*) answer '{{"tools":[{{"name":"sign_in","inputSchema":{{"type":"object"}}}}]}}' ;;
  esac
done
"#
    );
    let file: PathBuf = home().join(format!("{name}.sh"));
    std::fs::write(&file, script).unwrap();
    format!("sh {}", quoted(&file))
}

/// Its tool `sign_in` asks for a password by a form, and gives back the answer.
pub fn secretive() -> String {
    let cases = format!(
        r#"    *'"tools/call"'*) call=$id; {ASK} ;;
    *'"id":"q"'*)
      id=$call
      answer '{{"content":[],"structuredContent":'"$(printf '%s' "$line" | sed 's/.*"result":\(.*\)}}$/\1/')"'}}' ;;"#
    );
    server("secretive", &cases)
}

/// Its tool `sign_in` asks by a form and does not wait quietly: once something is written to `go`, it reports progress
/// and logs, makes sure that both have been heard, and writes to `heard`.
pub fn chatty(go: &Path, heard: &Path) -> String {
    let cases = format!(
        r#"    *'"tools/call"'*)
      call=$id
      token=$(printf '%s' "$line" | sed 's/.*"progressToken":\([0-9]*\).*/\1/')
      {ASK}
      read -r _ < {go}
      say '{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":'"$token"',"progress":1,"message":"waiting"}}}}'
      say '{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"impatient"}}}}'
      say '{{"jsonrpc":"2.0","id":"p","method":"ping"}}' ;;
    *'"id":"p"'*) echo heard > {heard} ;;
    *'"id":"q"'*) id=$call; answer '{{"content":[{{"type":"text","text":"Pass."}}]}}' ;;"#,
        go = quoted(go),
        heard = quoted(heard)
    );
    server("chatty", &cases)
}

/// Its tool `sign_in` fails until a page has been visited, and never says when that is so.
pub fn reticent() -> String {
    let cases = r#"    *'"tools/call"'*)
      if [ -n "$visited" ]; then answer '{"content":[{"type":"text","text":"You may pass."}]}'; continue; fi
      visited=yes
      say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32042,"message":"a page first","data":{"elicitations":[{"mode":"url","message":"Sign in.","url":"https://sign.example/in","elicitationId":"1"}]}}}' ;;"#;
    server("reticent", cases)
}

/// Ends with code 4 as soon as it is watched.
pub fn mortal() -> String {
    let cases = r#"    *'"resources/subscribe"'*) answer '{}'; echo 'out of rope' >&2; exit 4 ;;"#;
    server("mortal", cases)
}

/// Its tool `sign_in` writes the server's process id to `underway`, logs without a pause and never returns.
pub fn loud(name: &str, underway: &Path) -> String {
    let cases = format!(
        r#"    *'"tools/call"'*)
      echo $$ > {underway}
      while :; do say '{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"loud"}}}}'; done ;;"#,
        underway = quoted(underway)
    );
    server(name, &cases)
}

/// Its tool `sign_in` has half a surrogate pair in its description, its schema and its result.
pub fn cutting() -> String {
    let cases = r#"    *'"tools/list"'*) answer '{"tools":[{"name":"sign_in","description":"Cut \ud83d","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"\ud83d"}}}}]}' ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"a tide \ud83d"}]}' ;;"#;
    server("cutting", cases)
}
