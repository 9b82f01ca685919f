//! The forms that arguments of `call` have, and what is said where they are wrong.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use wharf_testkit::test_home::CommandOutput;

use crate::support::{demo, home, run, wharf};

fn call(words: &[&str]) -> CommandOutput {
    let server = demo("2026-07-28");
    run(["call", "--stdio", &server].iter().chain(words).copied())
}

/// What a tool that takes anything received.
#[track_caller]
fn check(words: &[&str], expected: &Value) {
    let ran = call(&["json_response"].iter().chain(words).copied().chain(["--json"]).collect::<Vec<_>>());
    assert_eq!(ran.json()["data"]["received"], *expected, "{ran:?}");
}

#[test]
fn every_argument_form_is_accepted() {
    std::fs::write(home().join("form.txt"), "from a file").unwrap();
    check(&["a=1", "b:=1", "c:x", "--d", "y", "--e=z"], &json!({"a": "1", "b": 1, "c": "x", "d": "y", "e": "z"}));
    check(&["a=@form.txt", "--b", "@form.txt"], &json!({"a": "from a file", "b": "from a file"}));
    check(&["--params", r#"{"a": [1, {"b": null}]}"#, "c=d"], &json!({"a": [1, {"b": null}], "c": "d"}));
    let ran = call(&["json_response", "--json", "--", "--timeout", "x", "--args=1"]);
    assert_eq!(ran.json()["data"]["received"], json!({"timeout": "x", "args": "1"}), "{ran:?}");
    let ran = call(&[r#"json_response(a: 1, b: "x, y", c: [true], d: word)"#, "--json"]);
    assert_eq!(ran.json()["data"]["received"], json!({"a": 1, "b": "x, y", "c": [true], "d": "word"}), "{ran:?}");
}

#[test]
fn flags_and_numbers_are_typed_by_the_schema() {
    let ran = call(&["unload_ship", "--interval-ms", "10", "--containers", "2", "--ask", "--answer", "name=Ada"]);
    assert_eq!(ran.stdout, "Unloaded 2 containers, signed for by \"Ada\".\n", "{ran:?}");
}

#[test]
fn stdin_provides_an_object() {
    let server = demo("2025-06-18");
    for words in [&["json_response", "-"][..], &["json_response", "--args", "-"]] {
        let mut command = wharf(["call"].iter().chain(words).copied().chain(["--json", "--stdio", &server]));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"{\"a\": [7]}").unwrap();
        let ran = CommandOutput::from(child.wait_with_output().unwrap());
        assert_eq!(ran.json()["data"]["received"], json!({"a": [7]}), "{ran:?}");
    }
}

#[test]
fn argument_errors_are_reported_together_before_the_call() {
    let trace = home().join("mistakes.jsonl");
    let ran = call(&["add", "a=x", "c=1", "--trace", trace.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    let expected = "error: wharf: `a` must be a number, not `x`; the tool `add` takes no argument `c`; \
                    the tool `add` needs `b`.\n";
    assert!(ran.stderr.starts_with(expected), "{ran:?}");
    assert!(ran.stderr.contains("  hint: for example: wharf call add a=1 b=1\n"), "{ran:?}");
    assert!(!std::fs::read_to_string(trace).unwrap().contains("tools/call"));
    for (words, message) in [
        (&["add", "--a"][..], "error: `--a` needs a value.\n"),
        (&["add(a: [1, b: 2)"], "error: syntax error in the call at `[1, b: 2`.\n"),
        (&["add", "--args", r#"{"a": "1", "b": 2}"#], "error: wharf: `a` must be a number, not `\"1\"`.\n"),
    ] {
        let ran = call(words);
        assert!(ran.code == Some(2) && ran.stderr.starts_with(message), "{ran:?}");
    }
}

#[test]
fn tool_help_is_generated_from_the_schema() {
    let ran = call(&["echo", "--help"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["Repeats a text.", "Usage: wharf call echo [ARGUMENT]...", "  text  (string, required)", "echo text="]
    {
        assert!(ran.stdout.contains(part), "{part} is missing in {ran:?}");
    }
    assert!(run(["call", "--help"]).stdout.contains("argument to the tool, write name=value"));
}

#[test]
fn binary_content_is_saved_without_overwriting() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("saved");
    let save = ["mixed", "--save", directory.to_str().unwrap()];
    let first = directory.join("wharf-mixed-1.png");
    let ran = call(&save);
    let line = format!("[image: image/png, 120 bytes, saved as {}]", first.display());
    assert_eq!(ran.stdout.lines().nth(1), Some(line.as_str()), "{ran:?}");
    assert_eq!(std::fs::read(&first).unwrap()[1..4], *b"PNG");
    let saved = call(&[&save[..], &["--json"]].concat()).json()["saved"].take();
    let names: Vec<&str> = saved.as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(!names.is_empty() && !names.contains(&first.to_str().unwrap()), "{saved}");
    let server = demo("2025-11-25");
    let ran = run(["read", "demo://logo", "--stdio", &server, "--save", directory.to_str().unwrap()]);
    let path = directory.join("wharf-1.png");
    assert_eq!(ran.stdout, format!("[binary: demo://logo, image/png, 120 bytes, saved as {}]\n", path.display()));
    assert_eq!(std::fs::read(path).unwrap().len(), 120);
}
