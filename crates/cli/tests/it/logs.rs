//! `wharf logs`: what servers wrote to stderr, kept for later.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wharf_testkit::test_home::{CommandOutput, TestHome};

use crate::support::assert_harmless;

/// A home whose state is in a directory of its own.
fn home_with_state() -> TestHome {
    let home = TestHome::new();
    let state = home.path("state");
    home.with_env("XDG_STATE_HOME", state)
}

/// Runs a server that executes this script and fails.
fn fail(home: &TestHome, name: &str, script: &str) {
    let program = home.write_program(name, &format!("#!/bin/sh\n{script}\n"));
    let ran = home.run(["tools", "--stdio", program.to_str().unwrap()]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

fn file(home: &TestHome, name: &str) -> PathBuf {
    home.path("state/wharf/logs").join(name)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The lines without their times and process numbers.
fn told(ran: &CommandOutput) -> Vec<String> {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_harmless(&ran.stdout);
    let plain = |line: &str| {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        rest.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned()
    };
    ran.stdout.lines().map(plain).collect()
}

#[test]
fn crashed_server_leaves_its_stderr_in_the_log() {
    let home = home_with_state();
    fail(&home, "boom", "printf 'boom: missing API key\\n\\033[31mred' >&2; exit 3");
    let log = home.run(["logs", "boom"]);
    let once = ["- started pid ", "| boom: missing API key", "| \\u{1b}[31mred", "- exited with code "];
    assert_eq!(told(&log), once);
    assert!(log.stdout.contains("- exited with code 3\n"));
    assert_eq!((mode(&file(&home, "boom.log")), mode(&file(&home, ""))), (0o600, 0o700));
    assert_eq!(told(&home.run(["logs", "boom", "-n", "2"])), ["| \\u{1b}[31mred", "- exited with code "]);
}

#[test]
fn logs_of_all_servers_are_merged_by_time() {
    let home = home_with_state();
    fail(&home, "one", "echo first >&2; exit 1");
    fail(&home, "two", "echo second >&2; exit 1");
    fail(&home, "one", "echo third >&2; exit 1");
    let lines = told(&home.run(["logs"]));
    let said: Vec<&str> = lines.iter().filter(|line| line.contains('|')).map(String::as_str).collect();
    assert_eq!(said, ["one | first", "two | second", "one | third"]);
    let document = home.run(["logs", "two", "--json"]).json();
    assert_eq!(document["schema"], 1);
    let texts: Vec<&Value> = document["items"].as_array().unwrap().iter().map(|item| &item["text"]).collect();
    assert_eq!(
        (texts[1], texts[2], &document["items"][0]["server"]),
        (&"second".into(), &"exited with code 1".into(), &"two".into())
    );
}

#[test]
fn unknown_server_log_suggests_a_similar_name() {
    let home = home_with_state();
    let empty = home.run(["logs"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""), "{empty:?}");
    assert!(empty.stderr.contains("no logs yet") && empty.stderr.contains("wharf/logs"), "{empty:?}");
    assert_eq!(home.run(["logs", "--json"]).json()["items"], serde_json::json!([]));
    fail(&home, "boom", "exit 1");
    let ran = home.run(["logs", "bomm"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for part in ["no log of a server `bomm`", "did you mean `boom`?", "hint: logs are in ", "wharf/logs"] {
        assert!(ran.stderr.contains(part), "{part:?} is missing in {ran:?}");
    }
}

#[test]
fn follow_continues_across_rotation() {
    let home = home_with_state();
    fail(&home, "boom", "echo first >&2; exit 1");
    let mut following = home.command(["logs", "boom", "--follow", "--json", "-n", "1"]).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["text"], "exited with code 1");
    std::fs::rename(file(&home, "boom.log"), file(&home, "boom.log.1")).unwrap();
    fail(&home, "boom", "echo second >&2; exit 4");
    let document = next();
    assert!(document["text"].as_str().unwrap().starts_with("started pid "), "{document}");
    assert_eq!((&document["schema"], &document["server"]), (&1.into(), &"boom".into()));
    assert_eq!(next()["text"], "second");
    assert_eq!(next()["text"], "exited with code 4");
    following.kill().unwrap();
    following.wait().unwrap();
}
