//! Planted secrets: whatever a server and its command do with them, nobody sees them in clear.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::path::Path;

use wharf_testkit::test_home::{CommandOutput, TestHome};
use wharf_testkit::transport_faults::Refused;

use crate::support::quoted;

fn run(home: &TestHome, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
    home.command(args).envs(variables.iter().copied()).output().unwrap().into()
}

/// Everything that was shown and everything that was written.
fn everything(home: &TestHome, ran: &CommandOutput) -> String {
    let mut text = format!("{}{}", ran.stdout, ran.stderr);
    gather(home.root(), &mut text);
    text
}

fn gather(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, text);
        } else if path.extension().is_none_or(|ending| ending != "sh") {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
}

/// Nothing of what was planted is to be seen, in clear or encoded, and all these parts are.
#[track_caller]
fn check(text: &str, planted: usize, parts: &[&str]) {
    for number in 0..planted {
        let secret = planted_secret(number);
        assert!(!text.contains(&secret), "{secret} in {text}");
    }
    assert!(!text.contains("PLANTED"), "a part of a secret in {text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

fn planted_secret(number: usize) -> String {
    format!("PLANTED-{number:02}-canary")
}

/// A server that says whatever it knows on stderr and in every message, and does what its first argument says.
const TELLTALE: &str = r#"does=$1; shift
known="$* CANARY=$CANARY MY_TOKEN=$MY_TOKEN"
for word in "$@" "CANARY=$CANARY" "MY_TOKEN=$MY_TOKEN"; do printf '%s\n' "$word" >&2; done
say() { printf '%s\n' "$1"; }
answer() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
refuse() { say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32001,"message":"refused: '"$known"'","data":"'"$known"'"}}'; }
[ "$does" = die ] && exit 3
[ "$does" = noise ] && { say "no JSON: $known"; exit 3; }
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
    *'"initialize"'*) answer '{"protocolVersion":"2025-11-25","serverInfo":{"name":"x","version":"1"},"capabilities":{"tools":{},"logging":{}}}' ;;
    *'"logging/setLevel"'*) answer '{}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"work","inputSchema":{"type":"object"}},{"name":"refuse","inputSchema":{"type":"object"}}],"_meta":{"known":"'"$known"'","access_token":"PLANTED-by-name"}}' ;;
    *'"name":"work"'*)
      say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"'"$known"'"}}'
      answer '{"content":[{"type":"text","text":"worked"}],"_meta":{"known":"'"$known"'"}}' ;;
    *'"id"'*) refuse ;;
  esac
done
"#;

/// The command line of that server, with a secret in each place an argument can have one.
fn telltale(home: &TestHome, does: &str) -> String {
    let program = home.write("telltale.sh", TELLTALE);
    let secret = planted_secret;
    let arguments = [
        format!("--api-key {}", secret(0)),
        format!("--token={}", secret(1)),
        format!("-H 'Authorization: Bearer {}'", secret(2)),
        format!("--header X-Id={}", secret(3)),
        format!("DB_PASSWORD={}", secret(4)),
        format!("https://me:{}@example.org/?key={}", secret(5), secret(6)),
    ];
    format!("sh {} {does} {}", quoted(&program), arguments.join(" "))
}

const VARIABLES: usize = 9;

fn with_secrets<'a>(command: &[&'a str], server: &'a str, variables: &'a [String]) -> Vec<&'a str> {
    [command, &["--stdio", server, "--env", &variables[0], "--env", "MY_TOKEN"]].concat()
}

fn check_process(command: &[&str], does: &str, code: i32, parts: &[&str]) {
    for debug in [&[][..], &["--debug"]] {
        let home = TestHome::new();
        let (server, trace) = (telltale(&home, does), home.path("trace.jsonl"));
        let variables = [format!("CANARY={}", planted_secret(7))];
        let command = [command, debug, &["--trace", trace.to_str().unwrap()]].concat();
        let ran = run(&home, &with_secrets(&command, &server, &variables), &[("MY_TOKEN", &planted_secret(8))]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        check(&everything(&home, &ran), VARIABLES, parts);
    }
}

#[test]
fn secrets_of_a_working_server_are_masked() {
    check_process(&["tools"], "serve", 0, &["work", "CANARY=***", "--token=***", "me", "started pid "]);
    check_process(&["call", "work", "--log", "error"], "serve", 0, &["worked", "error: ", "exited with code 0"]);
    check_process(&["call", "work", "--json"], "serve", 0, &["\"duration_ms\"", "***"]);
}

#[test]
fn secrets_of_a_failing_tool_are_masked() {
    check_process(&["call", "refuse"], "serve", 6, &["refused: ", "***"]);
    check_process(&["call", "refuse", "--json"], "serve", 6, &["\"refused\"", "***"]);
}

#[test]
fn secrets_of_a_crashing_server_are_masked() {
    check_process(&["tools"], "die", 3, &["CANARY=***", "  │ ***", "exited with code 3", "last lines of stderr"]);
    check_process(&["tools", "--json"], "die", 3, &["CANARY=***", "\"exit\":{\"code\":3}"]);
    check_process(&["tools"], "noise", 3, &["CANARY=***", "exited with code 3"]);
}

/// Answers whatever comes with its own head, over and over.
fn echoing(times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for _ in 0..times {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut buffer = [0; 8192];
            let count = stream.read(&mut buffer).unwrap_or(0);
            let head = String::from_utf8_lossy(&buffer[..count]).replace(['\r', '\n'], " ");
            let answer = format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{head}",
                head.len()
            );
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.shutdown(Shutdown::Write));
            // Whatever else it sends is read, or the answer would be lost with the connection.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    address
}

#[test]
fn secrets_echoed_by_an_http_server_are_masked() {
    let secret = planted_secret;
    for debug in [&["--json"][..], &["--debug"]] {
        let home = TestHome::new();
        let url = format!("http://someone:{}@{}/mcp?key={}&{}", secret(0), echoing(9), secret(1), secret(2));
        let headers = [format!("X-Api-Key={}", secret(3)), format!("Cookie: a={}", secret(4))];
        let trace = home.path("trace.jsonl");
        let command = ["tools", "--url", &url, "--header", &headers[0], "--header", &headers[1], "--trace"];
        let ran = run(&home, &[&command[..], &[trace.to_str().unwrap()], debug].concat(), &[]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        check(&everything(&home, &ran), 5, &["HTTP 400", "***"]);
    }
}

#[test]
fn secrets_in_unreachable_urls_and_proxies_are_masked() {
    let secret = planted_secret;
    let nobody = Refused::bind().unwrap();
    let nowhere = nobody.address();
    let home = TestHome::new();
    let url = format!("http://{}@{nowhere}/mcp?{}", secret(0), secret(1));
    let proxy = format!("http://{}:{}@{nowhere}", secret(2), secret(3));
    let header = format!("Authorization=Bearer {}", secret(4));
    for command in [
        &["tools", "--url", &url, "--debug"][..],
        &["tools", "--url", "http://example.org/", "--proxy", &proxy, "--header", &header, "--debug"],
        &["tools", "--url", &url, "--header", &header, "--json"],
        &["tools", "--url", "http://example.org/", "--proxy", &secret(5), "--debug"],
        &["tools", "--stdio", &format!("'x --api-key {}", secret(6))],
    ] {
        let ran = run(&home, command, &[("WHARF_DEBUG", "1")]);
        assert!(matches!(ran.code, Some(2 | 3)), "{ran:?}");
        check(&everything(&home, &ran), 7, &["error"]);
    }
}

#[test]
fn debug_variable_enables_debug_output() {
    let home = TestHome::new();
    let server = telltale(&home, "serve");
    for (value, shown) in [("1", true), ("0", false)] {
        let ran = run(&home, &["tools", "--stdio", &server], &[("WHARF_DEBUG", value)]);
        assert_eq!((ran.code, ran.stderr.contains("\"method\":\"initialize\"")), (Some(0), shown), "{ran:?}");
        assert_eq!(ran.stderr.contains("connected"), shown, "{ran:?}");
    }
}
