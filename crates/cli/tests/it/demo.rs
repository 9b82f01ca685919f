//! `demo`.

use wharf_testkit::pty::Terminal;
use wharf_testkit::test_home::TestHome;

use crate::support::{run, wharf};

const STEPS: [&str; 17] = [
    "connect",
    "tools",
    "call",
    "progress",
    "parallel",
    "network",
    "error",
    "cancel",
    "question",
    "watch",
    "task",
    "environment",
    "read",
    "crash",
    "missing",
    "many",
    "close",
];

#[test]
fn every_demo_step_succeeds() {
    let ran = run(["demo", "--json"]);
    let document = ran.json();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{document}");
    assert_eq!((&document["schema"], &document["success"]), (&1.into(), &true.into()));
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| step["name"].as_str().unwrap()).collect::<Vec<_>>(), STEPS);
    for step in steps {
        assert!(step["ok"] == true && step["duration_ms"].is_u64() && step["detail"].is_string(), "{step}");
    }
}

/// Plain HTTP on loopback needs no certificates.
#[test]
fn every_demo_step_succeeds_without_ca_certificates() {
    let home = TestHome::new();
    let none = home.path("none");
    let home = home.with_env("SSL_CERT_FILE", &none).with_env("SSL_CERT_DIR", &none);
    let ran = home.run(["demo", "--json"]);
    let document = ran.json();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{document}");
    assert_eq!(document["success"], true, "{document}");
}

#[test]
fn piped_demo_has_plain_output() {
    let ran = run(["demo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    for part in [
        "north 2026-07-28",
        "east  2025-11-25",
        "west  2024-11-05",
        "echo text=Ahoy!  →  Ahoy!",
        "25%, 50%, 75%, 100%",
        "stateless 2026-07-28  wharf call echo text=Ahoy! --url http://127.0.0.1:",
        "Cleared for \"north\"; the header Mcp-Param-Region said \"north\".",
        "session   2025-11-25",
        "stream    ",
        "book_berth  →  north asks: Which berth shall it be? (10 fields)",
        "the tour answers with the server's defaults and an email address; use --ask to answer yourself",
        "→  Booked: {\"email\":\"ada@harbour.example\",\"flag\":\"no\",",
        "north: raise_tide  →  harbour://tide changed  →  The tide stands at 10 cm.",
        "west: raise_tide  →  harbour://tide changed  →  The tide stands at 10 cm.",
        "unload_ship containers=3  →  The work has begun, ",
        ", The work is over  →  Unloaded 3 containers",
        "east: connection lost before the response",
        "server exited with code 3",
        "│ demo: fatal",
        "north: all well here",
        "command `no-such-server` not found in PATH",
        "and their guards have exited",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is missing in {ran:?}");
    }
    assert_eq!(ran.stdout.matches("✓ passed").count(), STEPS.len());
}

#[test]
fn demo_question_can_be_answered_on_a_terminal() {
    let mut terminal = Terminal::start_piped(wharf(["demo", "--ask"]).env("NO_COLOR", "1"));
    terminal.expect("north asks you:");
    terminal.answer("Cargo [skip]: ", ":decline");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("→  No berth was booked: the form was declined."), "{ended:?}");
    assert!(!ended.stdout.contains("the tour answers"), "{ended:?}");
    let ran = run(["demo", "--ask"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: --ask needs a terminal.\n"), "{ran:?}");
}
