//! Servers that do not get ready: what was tried, what was seen, what to do.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use wharf_testkit::test_home::CommandOutput;

use crate::support::{assert_harmless, faultd, home, run};

fn tools(server: &str) -> CommandOutput {
    run(["tools", "--stdio", server])
}

#[track_caller]
fn check(ran: &CommandOutput, code: i32, parts: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "{part:?} is missing in {ran:?}");
    }
    assert_harmless(&ran.stderr);
}

#[test]
fn missing_command_is_reported() {
    let expected = "error: no-such-server: command `no-such-server` not found in PATH.\n  failed at step: resolve\n  \
                    hint: check the spelling or give a full path\n  hint: searched in /usr/bin, /bin\n";
    let ran = tools("no-such-server --flag");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(3), "", expected));
    let document = run(["tools", "--json", "--stdio", "no-such-server"]).json();
    let expected = json!({"schema": 1, "ok": false, "success": false, "error": {
        "kind": "unreachable", "message": "command `no-such-server` not found in PATH", "server": "no-such-server",
        "step": "resolve", "exit": null, "stderr": [],
        "hints": ["check the spelling or give a full path", "searched in /usr/bin, /bin"],
    }});
    assert_eq!(document, expected);
}

#[test]
fn non_executable_files_are_reported() {
    let file = home().join("plain-file");
    std::fs::write(&file, "hello").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    check(&tools("./plain-file"), 3, &["cannot be executed: permission denied", "hint: make it executable (chmod +x "]);
    check(&tools("./nowhere"), 3, &["cannot be executed", "hint: check the path"]);
    check(
        &run(["tools", "--cwd", "/nowhere", "--stdio", "cat"]),
        3,
        &["working directory `/nowhere`", "hint: create the directory"],
    );
}

#[test]
fn exiting_server_is_reported() {
    let ran = tools(r"sh -c 'printf \\033[31mno-API-key >&2; exit 4'");
    let parts = [
        "server exited with code 4.",
        "failed at step: ",
        r"  │ \u{1b}[31mno-API-key",
        "`env` in its entry, --env NAME",
    ];
    check(&ran, 3, &parts);
    let error = run(["tools", "--json", "--stdio", "sh -c 'echo sorry >&2; exit 4'"]).json()["error"].take();
    assert_eq!((&error["exit"], &error["stderr"]), (&json!({"code": 4}), &json!(["sorry"])));
    check(&tools("sh -c 'kill -9 $$'"), 3, &["killed by signal 9 (SIGKILL)", "hint: the process was killed"]);
}

#[test]
fn non_mcp_program_is_reported() {
    check(&tools("sh -c 'echo Hello; echo World'"), 3, &["hint: check that this is an MCP server over stdio"]);
}

/// G4.
#[test]
fn log_text_on_stdout_is_one_warning_and_a_total() {
    let server = "sh -c 'echo one; echo two; echo three; cat >/dev/null'";
    let ran = run(["tools", "--timeout", "700ms", "--stdio", server]);
    check(&ran, 7, &["hint: check that this is an MCP server over stdio"]);
    let warnings: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    let [first, total] = warnings[..] else { panic!("{ran:?}") };
    assert!(first.contains("not a message: one"), "{first}");
    assert!(total.contains("lines to stdout that are not messages (total: 3)"), "{total}");
}

#[test]
fn silent_server_times_out() {
    let ran = run(["tools", "--timeout", "700ms", "--stdio", &faultd("S10-mute")]);
    check(&ran, 7, &["server not ready within 700 ms", "hint: --timeout 1400ms"]);
}

#[test]
fn unsupported_revision_is_reported() {
    check(&tools(&faultd("32022-disjoint")), 3, &["no common protocol revision: server supports 2031-01-01"]);
}

#[test]
fn invalid_command_lines_are_rejected() {
    check(&tools("'unclosed"), 2, &["unclosed quote"]);
    check(&tools("  "), 2, &["--stdio is empty"]);
    check(&run(["tools"]), 2, &["no servers are configured, and none was given", "--stdio \"COMMAND\""]);
    check(&run(["tools", "--timeout", "soon", "--stdio", "cat"]), 2, &["write a time as"]);
    check(&run(["tools", "--env", "=x", "--stdio", "cat"]), 2, &["--env needs a name"]);
    check(&run(["tools", "--trace", "/nowhere/trace", "--stdio", "cat"]), 2, &["the trace file `/nowhere/trace`"]);
}

#[test]
fn command_is_never_run_by_a_shell() {
    let ran = tools("no-such-server; touch broken");
    check(&ran, 3, &["command `no-such-server;` not found"]);
    assert!(!home().join("broken").exists());
}
