//! No dead ends: a failure names the command, the option or the key that changes it, and its real cause.

use serde_json::json;
use wharf_testkit::modeld::Answer;
use wharf_testkit::test_home::TestHome;

use crate::run::Stage;
use crate::shell_server::write_shell_server;
use crate::support::{boom, working};

/// Commands that fail in a way that had no hint.
#[test]
fn failing_commands_name_a_next_step() {
    let mut denied = json!({ "mcpServers": { "demo": working() } });
    denied["permissions"] = json!([{ "tool": "mcp__demo__echo", "action": "deny" }]);
    let home = TestHome::new();
    home.write("home/.config/wharf/config.json", &denied.to_string());
    for line in [
        "call demo echo text=hi",
        "call demo no_such_tool",
        "read demo demo://no-such-resource",
        "prompt demo no_such_prompt",
        "logs no-such-server",
        "call no.json:demo echo",
        "tools --stdio /no/such/program",
        "tools --url ftp://127.0.0.1/",
        "call demo slow seconds=60 --timeout 300ms",
    ] {
        let failed = home.run_line(line);
        assert_ne!(failed.code, Some(0), "{line}: {failed:?}");
        assert!(failed.stderr.contains("  hint: "), "{line}: {failed:?}");
        let document = home.run_line(&format!("{line} --json")).json();
        let hints = document["error"]["hints"].as_array().unwrap();
        assert!(!hints.is_empty(), "{line}: {document}");
    }
}

/// F13: the model learns why a tool is missing.
#[test]
fn tool_of_a_failed_server_is_answered_with_the_failure() {
    let turns = [Answer::call("mcp__gone__look", json!({})), Answer::text("I see.")];
    let stage = Stage::among(&json!({ "gone": boom() }), turns);
    let ran = stage.run(&["run", "look"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = &stage.model.requests()[1].results()[0].text;
    assert!(told.contains("server `gone`") && told.contains("exited with code 3"), "{told}");
    assert!(!told.contains("unknown tool"), "{told}");
}

/// F13: a key without effect is reported.
#[test]
fn process_keys_of_an_http_entry_are_a_warning() {
    let entry = json!({ "url": "http://127.0.0.1:9/mcp", "env": { "TOKEN": "x" }, "cwd": "/" });
    let home = TestHome::with_servers(&json!({ "docs": entry }));
    let told = home.run_line("validate");
    let all = format!("{}{}", told.stdout, told.stderr);
    for key in ["`env` has no effect on an HTTP server", "`cwd` has no effect on an HTTP server"] {
        assert!(all.contains(key), "{told:?}");
    }
}

/// F12: calls belong to the trace of the environment, each as a span of its own.
#[test]
fn calls_carry_the_trace_context() {
    let trace_id = "0af7651916cd43dd8448eb211c80319c";
    let home = TestHome::with_servers(&json!({ "demo": working() }))
        .with_env("TRACEPARENT", format!("00-{trace_id}-b7ad6b7169203331-01"));
    home.run_ok(&["call", "demo", "echo", "text=hi", "--trace", "trace.jsonl"]);
    let trace = home.read("project/trace.jsonl");
    let call = trace.lines().find(|line| line.contains("tools/call")).unwrap();
    assert!(call.contains("traceparent") && call.contains(trace_id), "{call}");
    assert!(!call.contains("b7ad6b7169203331"), "{call}");
}

/// F13: a secret that a server puts into a definition stays out of the files.
#[test]
fn secret_in_a_definition_is_not_stored() {
    let secret = "hush-hush-token";
    let list = r#"answer '{"tools":[{"name":"clean","inputSchema":{"type":"object"}},{"name":"leaky","description":"Uses '"$API_TOKEN"'","inputSchema":{"type":"object"}}]}'"#;
    let methods = [("tools/list", list), ("tools/call", r#"answer '{"content":[]}'"#)];
    let stage = Stage::among(&json!({}), [Answer::call("leaky", json!({})), Answer::text("Done.")]);
    let file = write_shell_server(&stage.home, "leaky.sh", &methods);
    let entry = json!({ "command": "sh", "args": [file], "trust": true, "env": { "API_TOKEN": secret } });
    stage.home.configure(&json!({ "harbour": entry }));
    assert!(stage.run(&["run", "use it"]).stderr.contains("→ ok"));
    stage.home.run_ok(&["tools", "harbour"]);
    let state = stage.home.path("home/.local/state");
    let found = std::process::Command::new("grep").args(["-rl", secret]).arg(&state).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
    let cached = std::process::Command::new("grep").args(["-rl", "\"clean\""]).arg(&state).output().unwrap();
    assert_ne!(String::from_utf8(cached.stdout).unwrap(), "", "the other tool is cached");
}
