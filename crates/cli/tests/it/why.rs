//! `wharf why`: every way to break is told by its word, with its evidence and one next step.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use wharf_testkit::test_home::{CommandOutput, TestHome};
use wharf_testkit::transport_faults::Refused;

use crate::support::{assert_harmless, boom, faultd, shell, working};

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
fn what_is_wrong_before_anything_is_started() {
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
fn what_is_wrong_with_a_program() {
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
    check(&home, &["future"], "handshake.revision", 3, ("handshake", "2031-01-01"));
    check(&home, &["lists"], "list.failed", 3, ("list", "exited with code 1"));
}

#[test]
fn what_is_wrong_with_an_address() {
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
fn nothing_is_wrong() {
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
