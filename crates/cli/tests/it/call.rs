//! `call`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use wharf_testkit::test_home::CommandOutput;

use crate::support::{REVISIONS, assert_harmless, demo, home, run, wharf};

fn call(words: &[&str]) -> CommandOutput {
    let server = demo("2026-07-28");
    run(["call"].iter().chain(words).copied().chain(["--stdio", &server]))
}

#[test]
fn call_succeeds_in_every_revision() {
    for revision in REVISIONS {
        let ran = run(["call", "echo", "text=ahoy there", "--stdio", &demo(revision)]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "ahoy there\n", ""));
    }
}

#[test]
fn json_output_has_the_documented_shape() {
    let mut document = call(&["add", "a=1", "b=2.5", "--json"]).json();
    assert!(document["duration_ms"].take().is_u64());
    let expected = json!({
        "schema": 1, "ok": true, "success": true, "output": "3.5", "data": {"sum": 3.5}, "error": null,
        "content": [{"type": "text", "text": "3.5"}], "server": "wharf", "tool": "add", "duration_ms": null,
    });
    assert_eq!(document, expected);
}

#[test]
fn arguments_are_typed_by_the_schema() {
    let ran = call(&["json_response", "n=7", "list:=[1,{\"a\":null}]", "--json"]);
    assert_eq!(ran.json()["data"]["received"], json!({"n": "7", "list": [1, {"a": null}]}));
    for (words, message) in [
        (&["add", "a=1", "b=x"][..], "error: wharf: `b` must be a number, not `x`.\n"),
        (&["add", "a=1"], "error: wharf: the tool `add` needs `b`.\n  hint: arguments: a=number b=number\n"),
        (&["echo", "txt=a"], "error: wharf: the tool `echo` takes no argument `txt`.\n  hint: did you mean `text`?\n"),
        (&["ecko"], "error: wharf: no tool named `ecko`.\n  hint: did you mean `echo`?\n"),
        (&["echo", "text"], "error: `text` is not an argument.\n"),
        (&["echo", "--args", "[1]"], "error: --args must be a JSON object"),
        (&["echo", "text=@nowhere"], "error: cannot read the file `"),
    ] {
        let ran = call(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.starts_with(message), "{ran:?}");
    }
    assert_eq!(call(&["nothing-like-it", "--json"]).json()["error"]["kind"], "usage");
}

#[test]
fn arguments_are_read_from_files_and_stdin() {
    std::fs::write(home().join("text.txt"), "from a file\n").unwrap();
    assert_eq!(call(&["echo", "text=@text.txt"]).stdout, "from a file\n");
    let server = demo("2025-06-18");
    let mut command = wharf(["call", "json_response", "a=typed", "--args", "-", "--json", "--stdio", &server]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\n \"a\": 1,\n \"b\": [true]\n}\n").unwrap();
    let document = CommandOutput::from(child.wait_with_output().unwrap()).json();
    assert_eq!(document["data"]["received"], json!({"a": "typed", "b": [true]}));
}

#[test]
fn failed_tool_returns_its_output_and_exit_code_6() {
    let ran = call(&["fail"]);
    assert_eq!(ran.code, Some(6));
    assert_eq!(ran.stdout, "This tool always fails; that is what it is for.\n");
    assert_eq!(ran.stderr, "error: wharf: the tool `fail` returned an error.\n");
    let ran = call(&["fail", "--json"]);
    let document = ran.json();
    assert_eq!(
        (ran.code, &document["success"], &document["error"]["kind"]),
        (Some(6), &json!(false), &json!("tool_error"))
    );
    assert_eq!(document["content"][0]["type"], "text");
}

#[test]
fn non_text_content_is_a_reference_with_embedded_text() {
    let ran = call(&["mixed"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[1], "[image: image/png, 120 bytes]");
    assert_eq!(
        lines[3..],
        [
            "[resource link: demo://greeting, text/plain]",
            "[resource: demo://greeting, text/plain, 39 bytes]",
            "Ahoy! Welcome to the Wharf demo server.",
        ]
    );
    assert_eq!(call(&["mixed", "--json"]).json()["content"].as_array().unwrap().len(), 5);
}

#[test]
fn call_timeout_has_exit_code_7() {
    let ran = call(&["slow", "seconds=60", "steps=1", "--timeout", "2"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), ""));
    assert!(
        ran.stderr.starts_with("error: wharf: no response within 2 s.\n  hint: the call was cancelled; --timeout"),
        "{ran:?}"
    );
}

#[test]
fn crashed_server_reports_exit_code_and_stderr() {
    let ran = call(&["crash", "exit_code=9"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("server exited with code 9.") && ran.stderr.contains("  │ demo: fatal"), "{ran:?}");
    let error = call(&["crash", "--json"]).json()["error"].take();
    assert_eq!((&error["exit"], &error["server"]), (&json!({"code": 3}), &json!("wharf")));
    assert!(error["stderr"][0].as_str().unwrap().contains("fatal"), "{error}");
}

#[test]
fn control_characters_in_results_are_escaped() {
    let evil = "text=a\u{1b}[2J\u{9b}31m\u{202e}b\rc\u{7}";
    let ran = call(&["echo", evil]);
    assert_harmless(&ran.stdout);
    assert_eq!(ran.stdout, "a\\u{1b}[2J\\u{9b}31m\\u{202e}b\\rc\\u{7}\n");
    let ran = call(&["echo", evil, "--json"]);
    assert!(!ran.stdout.contains(['\u{1b}', '\r', '\u{7}']));
    assert_eq!(ran.json()["output"], evil.strip_prefix("text=").unwrap());
}

#[test]
fn piped_progress_is_shown_only_with_debug() {
    assert_eq!(call(&["slow", "seconds=0", "steps=2"]).stderr, "");
    let ran = call(&["slow", "seconds=0.2", "steps=2", "--debug"]);
    assert!(ran.stderr.contains("wharf · slow  50% step 1 of 2\n"), "{ran:?}");
}

#[test]
fn trace_contains_every_message() {
    let trace = home().join("trace.jsonl");
    call(&["echo", "text=traced", "--trace", trace.to_str().unwrap()]);
    let lines: Vec<Value> =
        std::fs::read_to_string(trace).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<&str> = lines.iter().filter_map(|line| line["message"]["method"].as_str()).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/list", "tools/call"]);
    assert_eq!((&lines[0]["direction"], &lines[1]["direction"]), (&json!("sent"), &json!("received")));
    assert!(lines[0]["time"].as_str().unwrap().ends_with('Z') && lines[0]["server"] == "wharf");
}

#[test]
fn server_environment_has_only_named_variables() {
    let server = demo("2026-07-28");
    let base = ["call", "environment", "--stdio", &server];
    let names = |more: &[&str]| {
        let mut command = wharf(base.iter().chain(more));
        command.env("TOKEN", "x").env("OTHER", "y");
        CommandOutput::from(command.output().unwrap()).stdout
    };
    let has = |names: &str, name: &str| names.lines().any(|line| line == name);
    let plain = names(&[]);
    assert!(has(&plain, "PATH") && has(&plain, "HOME") && !has(&plain, "TOKEN"), "{plain}");
    let named = names(&["--env", "TOKEN", "--env", "NEW=1"]);
    assert!(has(&named, "TOKEN") && has(&named, "NEW") && !has(&named, "OTHER"), "{named}");
    assert!(has(&names(&["--inherit-env"]), "OTHER"));
}
