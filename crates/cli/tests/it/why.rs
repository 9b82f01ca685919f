//! `wharf why`: every way to break is told by its word, with its evidence and one next step.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use wharf_testkit::test_home::{CommandOutput, TestHome};
use wharf_testkit::transport_faults::Refused;

use crate::support::{WHARF, assert_harmless, boom, faultd, shell, working};

/// The line of a fault server as an entry.
fn faulty(arguments: &str) -> Value {
    let words = shlex::split(&faultd(arguments)).unwrap();
    json!({"command": words[0], "args": words[1..]})
}

/// Where somebody answers everything with this status.
fn site(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    address.to_string()
}

/// Returns the address of a site that answers everything with a page.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = "<html><title>Welcome</title></html>";
            let head = format!("content-type: text/html\r\ncontent-length: {}\r\nconnection: close", body.len());
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
        }
    });
    address.to_string()
}

/// Runs it both ways, and checks the word, the exit code, the step that failed and something that was seen there.
#[track_caller]
fn check(home: &TestHome, args: &[&str], code: &str, exit: i32, (step, seen): (&str, &str)) {
    let args = ["why"].into_iter().chain(args.iter().copied()).collect::<Vec<_>>();
    let text: CommandOutput = home.run(&args);
    assert_eq!(text.code, Some(exit), "{code}: {text:?}");
    assert_harmless(&text.stdout);
    assert!(text.stdout.contains(&format!("\n{code}: ")), "{code}: {}", text.stdout);
    assert_eq!(text.stdout.lines().filter(|line| line.starts_with("next: ")).count(), 1, "{}", text.stdout);
    let document = home.run(args.into_iter().chain(["--json"]));
    assert_eq!(document.code, Some(exit), "{code}: {document:?}");
    let document = document.json();
    assert_eq!((&document["code"], &document["ok"], &document["schema"]), (&json!(code), &json!(false), &json!(1)));
    assert!(document["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{document}");
    let steps = document["steps"].as_array().unwrap();
    let failed: Vec<&Value> = steps.iter().filter(|step| step["state"] == "failed").collect();
    let [failed] = failed[..] else { panic!("{document}") };
    assert_eq!(failed["name"], step, "{document}");
    assert!(failed.to_string().contains(seen), "{seen:?} is missing in {failed}");
    let at = steps.iter().position(|step| step["state"] == "failed").unwrap();
    assert!(steps[..at].iter().all(|step| step["ok"] == true), "{document}");
    assert!(steps[at + 1..].iter().all(|step| step["state"] == "not_reached" && step["ok"].is_null()), "{document}");
    assert_eq!(steps.last().unwrap()["name"], "schema");
}

#[test]
fn configuration_errors_have_codes() {
    let home = TestHome::with_servers(&json!({
        "broken": {"args": ["x"]}, "off": {"command": "x", "enabled": false}, "mine": {"command": "x"},
        "unset": {"command": "sh", "env": {"A": "${SET:-x}", "B": "${NOT_THERE}"}},
        "secret": {"command": "sh", "env": {"A": "${secret:nobody-keeps-it}"}},
    }));
    home.write("project/.mcp.json", r#"{"mcpServers": {"theirs": {"command": "touch", "args": ["pwned"]}}}"#);
    check(&home, &["mime"], "config.missing", 2, ("config", "no server named `mime`"));
    assert!(home.run(["why", "mime"]).stdout.contains("next: did you mean `mine`?"));
    check(&home, &["broken"], "config.broken", 2, ("config", "config.json:1:"));
    check(&home, &["off"], "config.disabled", 2, ("config", "\"disabled\""));
    check(&home, &["unset"], "expand.unset", 2, ("expand", "NOT_THERE: not set"));
    check(&home, &["secret"], "expand.failed", 2, ("expand", "nobody-keeps-it"));
    check(&home, &["theirs"], "approval.needed", 5, ("approval", "defined by the project and not approved yet"));
    assert!(!home.path("project/pwned").exists());
    home.write("home/.mcp.json", "{\"mcpServers\": {");
    check(&home, &["lost"], "config.broken", 2, ("config", "home/.mcp.json"));
    let empty = TestHome::with_servers(&json!({}));
    check(&empty, &["any"], "config.missing", 2, ("config", "no servers configured"));
}

#[test]
fn program_errors_have_codes() {
    let home = TestHome::with_servers(&json!({
        "nowhere": {"command": "no-such-program"}, "plain": {"command": "./plain"},
        "cwd": {"command": "sh", "cwd": "/no/such/place"}, "boom": boom(), "killed": shell("kill -9 $$"),
        "noisy": shell(r"printf '\377\376{\000}\000\n\000'; cat >/dev/null"), "mute": faulty("S10-mute"),
        "future": faulty("32022-disjoint"), "lists": faulty("S03-list"),
    }));
    home.write("project/plain", "no program");
    check(&home, &["nowhere"], "path.not_found", 3, ("path", "/usr/bin"));
    check(&home, &["plain"], "path.not_executable", 3, ("path", "cannot be executed"));
    check(&home, &["cwd"], "path.no_directory", 3, ("path", "/no/such/place"));
    check(&home, &["boom"], "spawn.exited", 3, ("spawn", "stderr: boom: missing API key"));
    check(&home, &["killed"], "spawn.killed", 3, ("spawn", "SIGKILL"));
    check(&home, &["noisy"], "handshake.not_mcp", 3, ("handshake", "not an MCP server"));
    check(&home, &["mute", "--timeout", "700ms"], "handshake.timeout", 7, ("handshake", "700 ms"));
    let late = home.run(["why", "mute", "--timeout", "700ms"]);
    assert!(late.stdout.contains("next: wharf test mute --timeout 1400ms "), "{late:?}");
    check(&home, &["future"], "handshake.revision", 3, ("handshake", "2031-01-01"));
    check(&home, &["lists"], "list.failed", 3, ("list", "exited with code 1"));
}

/// F12: text instead of messages has one code, however it comes.
#[test]
fn text_instead_of_messages_is_not_mcp() {
    let home = TestHome::with_servers(&json!({
        "banner": shell("echo 'Welcome to the harbour'"),
        "log": shell("echo 'Welcome, listening on port 3000'; cat >/dev/null"),
        "page": { "url": format!("http://{}/mcp", page()) },
    }));
    check(&home, &["banner"], "handshake.not_mcp", 3, ("handshake", "Welcome"));
    check(&home, &["log", "--timeout", "700ms"], "handshake.not_mcp", 7, ("handshake", "Welcome"));
    let text = home.run(["why", "log", "--timeout", "700ms"]);
    assert!(text.stdout.contains("next: check that this is an MCP server"), "{text:?}");
    check(&home, &["page"], "handshake.not_mcp", 3, ("handshake", "Welcome"));
}

#[test]
fn url_errors_have_codes() {
    let at = |address: String| json!({ "url": format!("http://{address}/mcp?key=hush-hush") });
    let nobody = Refused::bind().unwrap();
    let home = TestHome::with_servers(&json!({
        "closed": at(nobody.address().to_string()), "login": at(site("401 Unauthorized")), "denied": at(site("403 Forbidden")),
        "path": at(site("404 Not Found")), "plain": {"url": format!("https://{}/mcp", site("200 OK"))},
        "header": {"url": "http://127.0.0.1:9/mcp", "headers": {"a b": "c"}},
    }));
    check(&home, &["closed"], "http.unreachable", 3, ("dial", "key=***"));
    check(&home, &["login"], "login.needed", 4, ("login", "server requires a login"));
    check(&home, &["denied"], "login.denied", 5, ("login", "server denied access"));
    check(&home, &["path"], "http.status", 3, ("handshake", "HTTP 404"));
    check(&home, &["plain"], "tls.untrusted", 3, ("tls", "TLS handshake failed"));
    check(&home, &["header"], "http.setup", 2, ("dial", "header"));
    for id in ["closed", "login", "denied", "path"] {
        assert!(!home.run(["why", id]).stdout.contains("hush-hush"));
    }
}

#[test]
fn working_server_has_no_problems() {
    let mut server = working();
    server["env"] = json!({"TOKEN": "${TOKEN}", "OTHER": "${OTHER:-none}"});
    let home = TestHome::with_servers(&json!({ "demo": server }));
    home.write("home/.mcp.json", r#"{"mcpServers": {"demo": {"command": "other"}}}"#);
    let run = |args: &[&str]| {
        let output = home.command(["why", "demo"].iter().chain(args)).env("TOKEN", "hush-hush").output().unwrap();
        CommandOutput::from(output)
    };
    let ran = run(&[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    for part in [
        "home/.config/wharf/config.json:1:",
        "replaces ",
        "TOKEN: set",
        "OTHER: not set, using its default",
        "not needed: your own server",
        "✓ path",
        "✓ handshake",
        "speaks 2026-07-28",
        "\nno problems found\n",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is missing in {}", ran.stdout);
    }
    let document = run(&["--json"]).json();
    assert_eq!((&document["ok"], &document["revision"]), (&json!(true), &json!("2026-07-28")), "{document}");
    assert!(document["tools"].as_u64().unwrap() > 3 && document["code"].is_null() && document["error"].is_null());
    assert!(!ran.stdout.contains("hush-hush") && !document.to_string().contains("hush-hush"));
}

/// U9.
#[test]
fn output_that_is_not_a_message_is_quoted_as_a_step() {
    let noisy = shell(&format!(r"echo 'Listening \033[2J'; exec {WHARF} demo-server --stdio"));
    let home = TestHome::with_servers(&json!({ "noisy": noisy }));
    for command in ["why", "test"] {
        let ran = home.run([command, "noisy"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("~ stdout") && ran.stdout.contains("stdout: Listening"), "{}", ran.stdout);
        assert_harmless(&ran.stdout);
    }
    let ran = home.run(["why", "noisy"]);
    assert!(ran.stdout.contains("usable, with problems: see stdout above"), "{}", ran.stdout);
}

/// U9.
#[test]
fn unreadable_responses_fail_without_waiting_for_the_timeout() {
    let home = TestHome::with_servers(&json!({
        "text": shell("while read line; do echo garbage; done"),
        "json": shell(r#"while read line; do echo '{"jsonrpc": "2.0", "result"'; done"#),
    }));
    for server in ["text", "json"] {
        for args in [&[server][..], &[server, "--timeout", "10"], &[server, "--timeout", "2"]] {
            check(&home, args, "handshake.not_mcp", 3, ("handshake", "responses are not JSON-RPC messages"));
        }
    }
}

/// U9.
#[test]
fn older_revision_is_no_detour() {
    let mut older = working();
    older["args"] = json!(["demo-server", "--stdio", "--revision", "2025-06-18"]);
    let home = TestHome::with_servers(&json!({ "older": older }));
    let ran = home.run(["why", "older"]);
    assert!(!ran.stdout.contains("~ handshake") && ran.stdout.contains("\nno problems found\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("2025-06-18"), "{}", ran.stdout);
}

/// U9.
#[test]
fn server_that_exits_without_reading_is_started_once() {
    let home = TestHome::new();
    let starts = home.path("starts");
    home.configure(&json!({"exits": shell(&format!("echo started >> {}; exit 3", starts.display()))}));
    check(&home, &["exits"], "spawn.exited", 3, ("spawn", "exited with code 3"));
    let started = std::fs::read_to_string(starts).unwrap();
    // `check` runs the command twice.
    assert_eq!(started.lines().count(), 2, "{started}");
}

/// U9.
#[test]
fn environment_is_blamed_only_for_missing_variables() {
    let home = TestHome::with_servers(&json!({
        "key": boom(), "syntax": shell("echo 'SyntaxError: invalid syntax' >&2; exit 1"),
    }));
    for (server, is_blamed) in [("key", true), ("syntax", false)] {
        let ran = home.run(["why", server]);
        assert_eq!(ran.stdout.contains("set missing variables"), is_blamed, "{}", ran.stdout);
        let ran = home.run(["tools", server]);
        assert_eq!(ran.stderr.contains("minimal environment"), is_blamed, "{}", ran.stderr);
    }
}
