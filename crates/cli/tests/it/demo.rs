//! `demo`.

use crate::support::run;

const STEPS: [&str; 12] = [
    "connect",
    "tools",
    "call",
    "progress",
    "parallel",
    "error",
    "cancel",
    "environment",
    "read",
    "crash",
    "missing",
    "close",
];

#[test]
fn the_tour_goes_well() {
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

#[test]
fn it_reads_well_in_a_pipe() {
    let ran = run(["demo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    for part in [
        "north 2026-07-28",
        "east  2025-11-25",
        "west  2024-11-05",
        "echo text=Ahoy!  →  Ahoy!",
        "25%, 50%, 75%, 100%",
        "east: the server went before it answered",
        "it exited with code 3",
        "│ demo: fatal",
        "north: all well here",
        "command `no-such-server` not found in PATH",
        "none is left",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is missing in {ran:?}");
    }
    assert_eq!(ran.stdout.matches("✓ as it should be").count(), STEPS.len());
}
