//! `hold`, the hidden command of the proofs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use crate::signals::send;
use crate::support::{demo, run, wharf};

fn ready() -> Child {
    let (north, west) = (demo("2026-07-28"), demo("2024-11-05"));
    let mut command = wharf(["hold", "--stdio", &north, "--stdio", &west]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready 2\n");
    child
}

#[test]
fn commands_are_read_line_by_line() {
    for (order, code) in [("close\n", 0), ("what?\nclose\n", 0), ("panic\n", 101)] {
        let mut child = ready();
        child.stdin.as_mut().unwrap().write_all(order.as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{order:?}");
    }
}

#[test]
fn eof_on_stdin_is_not_a_command() {
    let mut child = ready();
    drop(child.stdin.take());
    send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn then_option_needs_no_stdin() {
    let server = demo("2025-11-25");
    let ran = run(["hold", "--then", "close", "--stdio", &server]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ready 1\n"));
    let ran = run(["hold", "--then", "panic", "--stdio", &server]);
    assert_eq!(ran.code, Some(101));
    // What happened and what to do about it: no stack trace.
    assert_eq!(ran.stderr.lines().count(), 2, "{ran:?}");
}
