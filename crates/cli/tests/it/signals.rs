//! Signals: the call is withdrawn, the server ended, the exit code 130.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command};

use crate::support::{demo, home, wharf};

/// A call that lasts, followed until it has been sent; with the server's process.
fn underway(trace: &str) -> (Child, BufReader<ChildStderr>, String) {
    let server = demo("2026-07-28");
    let mut command = wharf(["call", "slow", "seconds=60", "steps=1", "--debug", "--trace", trace, "--stdio", &server]);
    let mut child = command.spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let (mut line, mut process) = (String::new(), String::new());
    while !line.contains("\"tools/call\"") {
        line.clear();
        assert_ne!(talk.read_line(&mut line).unwrap(), 0, "it ended early");
        if let Some((_, rest)) = line.split_once("process ") {
            process = rest.split(',').next().unwrap().to_owned();
        }
    }
    (child, talk, process)
}

pub fn send(signal: &str, process: u32) {
    let sent = Command::new("kill").args([format!("-{signal}"), process.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn each_signal_cancels_the_call_and_ends_the_server() {
    for signal in ["INT", "TERM", "HUP"] {
        let trace = home().join(format!("signal-{signal}.jsonl"));
        let (mut child, mut talk, process) = underway(trace.to_str().unwrap());
        send(signal, child.id());
        let mut rest = String::new();
        while talk.read_line(&mut rest).unwrap() > 0 {}
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}: {rest}");
        assert!(rest.ends_with("error: interrupted.\n"), "{rest}");
        let trace = std::fs::read_to_string(trace).unwrap();
        assert!(trace.contains("\"notifications/cancelled\""), "{trace}");
        assert!(!process.is_empty() && !std::fs::exists(format!("/proc/{process}")).unwrap(), "{process}");
    }
}

#[test]
fn signal_during_startup_ends_the_command() {
    let mut command = wharf(["tools", "--debug", "--stdio", "sleep 60"]);
    let mut child = command.spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("server/discover") {
        line.clear();
        assert_ne!(talk.read_line(&mut line).unwrap(), 0, "it ended early");
    }
    send("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
