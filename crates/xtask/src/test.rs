//! `cargo xtask test`: builds everything, runs all tests and the public conformance suite, and fails if a process is
//! left over.
//!
//! Every process started here has an environment variable with the id of the run, inherited by its children unless they
//! remove it. After the tests no process may have it.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::run::{TaskResult, cargo, command_line, run, say, start_error};
use crate::{conformance, peers};

const RUN_MARKER: &str = "WHARF_TEST_RUN";

/// Grace period for processes that are exiting.
const EXIT_GRACE: Duration = Duration::from_secs(2);

pub fn test() -> TaskResult {
    let home = peers::install()?;
    let name = new_run_id();
    let mut build = cargo();
    build.args(["build", "--workspace", "--all-targets"]).env("WHARF_PEERS", &home);
    run(build.env(RUN_MARKER, &name))?;
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]).env("WHARF_PEERS", &home);
    let mut tally = run_counting(tests.env(RUN_MARKER, &name))?;
    tally += conformance::run_all(&[(RUN_MARKER, &name)]).unwrap_or_else(|failure| {
        say!("the conformance suite: {failure}");
        TestCounts { passed: 0, failed: 1 }
    });
    tally += conformance::run_server_cases(&[(RUN_MARKER, &name)]).unwrap_or_else(|failure| {
        say!("the conformance suite against the gateway: {failure}");
        TestCounts { passed: 0, failed: 1 }
    });
    let leftovers = leftover_processes(&name);
    for leftover in &leftovers {
        say!("left running: {leftover}");
    }
    tally.failed += leftovers.len();
    println!("{} passed, {} failed", tally.passed, tally.failed);
    match (tally.failed, tally.passed) {
        (0, 0) => Err("no tests ran".into()),
        (0, _) => Ok(()),
        _ => Err("the tests failed".into()),
    }
}

fn new_run_id() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Number of passed and failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TestCounts {
    pub passed: usize,
    pub failed: usize,
}

impl AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Runs the tests with output passed through, and sums their counts.
fn run_counting(command: &mut Command) -> TaskResult<TestCounts> {
    say!("{}", command_line(command));
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|error| start_error(command, error))?;
    let mut tally = TestCounts::default();
    if let Some(output) = child.stdout.take() {
        pass_through(BufReader::new(output), &mut tally)?;
    }
    let status = child.wait()?;
    if !status.success() && tally.failed == 0 {
        // A build failed, or a test binary died before its summary.
        say!("{} exited with {status}", command_line(command));
        tally.failed = 1;
    }
    Ok(tally)
}

fn pass_through(mut output: impl BufRead, tally: &mut TestCounts) -> TaskResult {
    let mut stdout = std::io::stdout();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        stdout.write_all(&line)?;
        stdout.flush()?;
        if let Some(counted) = parse_counts(&String::from_utf8_lossy(&line)) {
            *tally += counted;
        }
        line.clear();
    }
    Ok(())
}

/// Parses a closing line: the standard harness's, or the plain `3 passed, 0 failed`, with an optional `name: ` before
/// and `, 1 skipped` after.
fn parse_counts(line: &str) -> Option<TestCounts> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("test result: ") {
        let (_verdict, counts) = rest.split_once(". ")?;
        let mut counts = counts.split("; ");
        return test_counts(counts.next()?, counts.next()?);
    }
    let counts = match line.split_once(": ") {
        Some((word, counts)) if !word.contains(' ') => counts,
        Some(_) => return None,
        None => line,
    };
    let mut counts = counts.split(", ");
    let counted = test_counts(counts.next()?, counts.next()?);
    counts.all(|rest| rest.ends_with(" skipped")).then_some(counted)?
}

fn test_counts(passed: &str, failed: &str) -> Option<TestCounts> {
    Some(TestCounts {
        passed: passed.strip_suffix(" passed")?.parse().ok()?,
        failed: failed.strip_suffix(" failed")?.parse().ok()?,
    })
}

/// Returns the processes that still have the run's marker after the grace period, as `pid command`.
fn leftover_processes(name: &str) -> Vec<String> {
    let wanted = format!("{RUN_MARKER}={name}");
    let end = Instant::now() + EXIT_GRACE;
    loop {
        let found = processes_with_marker(wanted.as_bytes());
        if found.is_empty() || Instant::now() >= end {
            return found;
        }
        sleep(Duration::from_millis(50));
    }
}

fn processes_with_marker(wanted: &[u8]) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        })
        .map(|process| {
            let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            format!("{} {}", process.file_name().display(), command.trim_end())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_result_lines_are_counted() {
        let both = |passed, failed| Some(TestCounts { passed, failed });
        for (line, expected) in [
            (
                "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
                both(5, 0),
            ),
            ("test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", both(5, 2)),
            ("61 passed, 3 failed\n", both(61, 3)),
            ("faults: 61 passed, 3 failed, 2 skipped", both(61, 3)),
            ("we saw: 61 passed, 3 failed", None),
            ("61 passed, 3 failed, 2 odd", None),
            ("running 5 tests", None),
            ("test two ... ok", None),
            ("", None),
        ] {
            assert_eq!(parse_counts(line), expected, "{line}");
        }
    }

    #[test]
    fn marked_processes_are_found() {
        let mut child = Command::new("sleep").arg("60").env(RUN_MARKER, "probe").spawn().unwrap();
        let wanted = format!("{RUN_MARKER}=probe");
        // The kernel exposes a new program's environment shortly after `spawn` returns.
        let end = Instant::now() + Duration::from_secs(10);
        let mut found = Vec::new();
        while found.is_empty() && Instant::now() < end {
            found = processes_with_marker(wanted.as_bytes());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [format!("{} sleep 60", child.id())]);
        assert!(processes_with_marker(wanted.as_bytes()).is_empty());
    }
}
