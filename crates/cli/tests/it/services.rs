//! What else a server is given: directories and an ear for its logs, and only if that was wanted.

use serde_json::Value;

use crate::support::{REVISIONS, assert_harmless, demo, home, run};

#[test]
fn roots_are_the_given_directories() {
    let directory = home().join("cargo hold #1");
    std::fs::create_dir_all(&directory).unwrap();
    let here = home().canonicalize().unwrap();
    for revision in REVISIONS {
        let server = demo(revision);
        let ran = run(["call", "show_roots", "--root", "cargo hold #1", "--root", ".", "--stdio", &server]);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(lines.len(), 2, "{ran:?}");
        assert!(lines[0].starts_with("file:///") && lines[0].ends_with("/cargo%20hold%20%231"), "{ran:?}");
        assert!(here.ends_with(lines[1].rsplit('/').next().unwrap()), "{ran:?}");
    }
    let ran = run(["call", "show_roots", "--root", "nowhere", "--stdio", &demo("2026-07-28")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("cannot use the root `") && ran.stderr.contains("hint: give an existing directory"));
}

/// What was declared: once in the handshake, or with every request.
fn declared(trace: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(trace).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["message"]["params"].take());
    let declared = lines.map(|mut params| match params["capabilities"].take() {
        Value::Null => params["_meta"]["io.modelcontextprotocol/clientCapabilities"].take(),
        capabilities => capabilities,
    });
    declared.filter(|capabilities| !capabilities.is_null()).collect()
}

#[test]
fn unavailable_capabilities_are_not_declared() {
    for revision in REVISIONS {
        let trace = home().join(format!("declared-{revision}.jsonl"));
        let trace = trace.to_str().unwrap();
        let server = demo(revision);
        let ran = run(["call", "show_roots", "--trace", trace, "--stdio", &server]);
        assert_eq!(ran.code, Some(6), "{ran:?}");
        let all = declared(trace);
        assert!(!all.is_empty());
        assert!(all.iter().all(|one| one["roots"].is_null() && one["sampling"].is_null()), "{all:?}");
        assert!(all.iter().all(|one| one["elicitation"].is_object()), "{all:?}");
        run(["call", "show_roots", "--root", ".", "--trace", trace, "--stdio", &server]);
        assert!(declared(trace).last().unwrap()["roots"].is_object());
        run(["tools", "--trace", trace, "--stdio", &server]);
        assert!(declared(trace).iter().all(|one| one["elicitation"].is_null()));
    }
}

#[test]
fn logs_are_shown_from_the_requested_level() {
    for revision in REVISIONS {
        let server = demo(revision);
        let log = |level: &str, more: &[&str]| {
            let level = format!("level={level}");
            let words = ["call", "log_something", &level, "message=man\u{1b}[2J over\nboard", "--stdio", &server];
            run(words.iter().chain(more))
        };
        let ran = log("warning", &["--log", "info"]);
        let line = "wharf · warning harbour: {\"message\":\"man\\u001b[2J over\\nboard\"}\n";
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Logged.\n", line), "{revision}");
        for more in [&["--log", "error"][..], &[]] {
            let ran = log("warning", more);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{revision}");
        }
        let ran = log("info", &["--debug"]);
        assert!(ran.stderr.contains("wharf · info harbour: "), "{ran:?}");
        assert_harmless(&ran.stderr);
        assert!(!log("debug", &["--debug"]).stderr.contains("wharf · debug "));
    }
    let ran = run(["call", "echo", "text=a", "--log", "loud", "--stdio", "cat"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("emergency"), "{ran:?}");
}
