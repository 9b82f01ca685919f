//! `wharf test`, and the server that says what it lacks: whatever looks at it shows the text and the code.

use serde_json::{Value, json};
use wharf_testkit::test_home::TestHome;

use crate::support::{assert_harmless, boom, working};

#[test]
fn working_server_passes_every_step() {
    let home = TestHome::with_servers(&json!({ "demo": working() }));
    let ran = home.run(["test", "demo"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    for part in
        ["✓ path", "✓ spawn", "✓ handshake", "✓ ping", "✓ list", "✓ ready", "  2026-07-28  ", "\n1 server: 1 ready\n"]
    {
        assert!(ran.stdout.contains(part), "{part:?} is missing in {}", ran.stdout);
    }
    let document = home.run(["test", "demo", "--json"]).json();
    let names: Vec<&str> =
        document["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["path", "spawn", "handshake", "ping", "list"]);
    assert_eq!((&document["ok"], &document["id"], &document["error"]), (&json!(true), &json!("demo"), &Value::Null));
    assert!(document["steps"].as_array().unwrap().iter().all(|step| step["duration_ms"].is_u64()), "{document}");
}

#[test]
fn disabled_or_unapproved_server_is_not_started() {
    let home = TestHome::with_servers(&json!({"off": {"command": "touch", "args": ["off"], "enabled": false}}));
    home.write("project/.mcp.json", r#"{"mcpServers": {"off": {"command": "touch", "args": ["pwned"]}}}"#);
    for (args, exit, code) in [
        (&["off"][..], 2, "config.disabled"),
        (&["off", "--scope", "global"], 2, "config.disabled"),
        (&["off", "--scope", "project"], 5, "approval.needed"),
    ] {
        let args = ["test", "--json"].iter().chain(args);
        let ran = home.run(args);
        assert_eq!((ran.code, &ran.json()["code"]), (Some(exit), &json!(code)), "{ran:?}");
    }
    assert_eq!(home.run(["test", "of"]).code, Some(2));
    assert!(home.run(["test", "of"]).stderr.contains("did you mean `off`?"));
    let other = TestHome::with_servers(&json!({ "mine": working() }));
    assert!(other.run(["test", "mine", "--scope", "project"]).stderr.contains("no project server named `mine`"));
    assert!(!home.path("project/pwned").exists() && !home.path("project/off").exists());
}

/// Must show, of issue 6: the text and the code, by every command, for people and for programs.
#[test]
fn stderr_and_exit_code_are_shown_by_every_command() {
    let home = TestHome::with_servers(&json!({ "boom": boom() }));
    for args in [&["status"][..], &["status", "--brief"], &["test", "boom"], &["why", "boom"]] {
        let ran = home.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""), "{args:?}: {ran:?}");
        for part in ["boom: missing API key", "exited with code 3"] {
            assert!(ran.stdout.contains(part), "{args:?}: {part:?} is missing in {}", ran.stdout);
        }
        assert_harmless(&ran.stdout);
    }
    for (args, at) in [
        (&["status", "--json"][..], "/items/0/last_error"),
        (&["test", "boom", "--json"], "/error"),
        (&["why", "boom", "--json"], "/error"),
    ] {
        let ran = home.run(args);
        let document = ran.json();
        let error = document.pointer(at).unwrap_or_else(|| panic!("{args:?}: {document}"));
        assert_eq!(ran.code, Some(3));
        assert_eq!((&error["exit"], &error["stderr"]), (&json!({"code": 3}), &json!(["boom: missing API key"])));
    }
    let server = "sh -c \"echo 'boom: missing API key' >&2; exit 3\"";
    for args in [&["tools", "--stdio", server][..], &["call", "echo", "--stdio", server]] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains("boom: missing API key") && ran.stderr.contains("code 3"), "{ran:?}");
        let error = home.run(args.iter().chain(&["--json"])).json()["error"].take();
        assert_eq!((&error["exit"], &error["stderr"]), (&json!({"code": 3}), &json!(["boom: missing API key"])));
    }
}
