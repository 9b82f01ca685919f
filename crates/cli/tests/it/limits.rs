//! Limits of the system: processes and threads (L1), descriptors, file sizes and full disks (L5).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};
use wharf_testkit::modeld::Answer;
use wharf_testkit::test_home::{CommandOutput, PROJECT_CONFIG, TestHome};

use crate::run::Stage;
use crate::support::{WHARF, demo, shell, working};

/// Returns a command of this home under limits as `prlimit` and `timeout` set them.
fn limited(home: &TestHome, limit: &str, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", "prlimit", limit, WHARF]).args(words).env_clear();
    command.envs(home.variables()).current_dir(home.path("project"));
    command
}

/// Asserts that a command reports an error or succeeds: no panic, no hang, no signal.
#[track_caller]
fn assert_orderly(command: &mut Command, what: &str) -> CommandOutput {
    let output: CommandOutput = command.output().unwrap().into();
    assert!(matches!(output.code, Some(0..=7)), "{what}: {output:?}");
    assert!(!output.stderr.contains("bug in Wharf") && !output.stderr.contains("panicked"), "{what}: {output:?}");
    assert!(output.code == Some(0) || output.stderr.contains("error: ") || !output.stdout.is_empty(), "{what}");
    output
}

/// Gives a home to another user: the process limit does not hold for root.
fn give_to(home: &TestHome, user: u32) {
    for name in ["", "home", "project"] {
        chown(home.path(name), Some(user), Some(user)).unwrap();
        fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
}

fn six_servers() -> Value {
    Value::Object((0..6).map(|number| (format!("s{number}"), working())).collect::<Map<_, _>>())
}

#[test]
fn process_limit_is_an_error_and_never_a_panic() {
    if !rustix::process::geteuid().is_root() {
        // Only root can start a process of a user without other processes.
        return;
    }
    // A user without other processes, whose number is not used by a parallel run.
    let user = 1_000_000 + std::process::id();
    for words in [vec!["list"], vec!["list", "--probe"], vec!["call", "s0.echo", "text=a", "--timeout", "10"]] {
        for limit in [1, 2, 3, 4, 5, 6, 8, 10, 14] {
            let home = TestHome::with_servers(&six_servers());
            give_to(&home, user);
            let mut command = limited(&home, &format!("--nproc={limit}"), &words);
            assert_orderly(command.uid(user).gid(user), &format!("{words:?} with {limit} processes"));
        }
    }
}

/// `run` and a piped conversation end with the model's answer or with an error.
#[test]
fn conversation_at_the_process_limit_ends_with_an_answer_or_an_error() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let user = 2_000_000 + std::process::id();
    for (words, input) in [(&["run", "say ahoy"][..], ""), (&[], "say ahoy\n")] {
        for limit in [1, 2, 3, 4, 6, 8, 12, 18, 26] {
            let stage = Stage::among(&six_servers(), [Answer::text("Ahoy.")]);
            give_to(&stage.home, user);
            let mut command = limited(&stage.home, &format!("--nproc={limit}"), words);
            command.envs(stage.model_variables()).uid(user).gid(user);
            command.stdin(fs::File::open(stage.home.write("input", input)).unwrap());
            let what = format!("{words:?} with {limit} processes");
            let output = assert_orderly(&mut command, &what);
            assert!(output.code != Some(0) || output.stdout.contains("Ahoy."), "{what}: {output:?}");
        }
    }
}

#[test]
fn descriptor_limit_is_an_error_and_never_a_panic() {
    // Fewer are not enough for the program's own libraries.
    for limit in [5, 6, 8, 10, 12, 16, 20, 24, 32] {
        let home = TestHome::with_servers(&six_servers());
        let words = ["list", "--probe"];
        assert_orderly(&mut limited(&home, &format!("--nofile={limit}"), &words), &format!("{limit} descriptors"));
    }
}

/// Returns the names of all files below a directory.
fn files(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => names.extend(files(&entry.path())),
            false => names.push(entry.path().display().to_string()),
        }
    }
    names
}

#[test]
fn file_size_limit_is_an_error_that_changes_nothing() {
    // The configuration fits, the approval does not: it holds the digests of all files.
    for limit in [1, 40, 120, 260, 4096] {
        let home = TestHome::new();
        let limit = format!("--fsize={limit}");
        let mut command = limited(&home, &limit, &["add", "x", "--", "sh", "-c", "true"]);
        let output = assert_orderly(&mut command, &limit);
        let approved = files(home.root()).iter().any(|name| name.ends_with("approvals.json"));
        let written = home.path(PROJECT_CONFIG).exists();
        assert_eq!((written, approved), (output.code == Some(0), output.code == Some(0)), "{limit}: {output:?}");
        let left = files(home.root());
        assert!(!left.iter().any(|name| name.ends_with(".wharf-tmp")), "{limit}: {left:?}");
    }
}

#[test]
fn incomplete_trace_is_reported() {
    let home = TestHome::new();
    let output = home.run(["tools", "--trace", "/dev/full", "--stdio", &demo("2026-07-28")]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stderr.matches("warning: the trace file `/dev/full` is incomplete: ").count(), 1, "{output:?}");
}

#[test]
fn inherited_ignored_hangup_stays_ignored() {
    let home = TestHome::with_servers(&json!({"x": shell("sleep 60")}));
    let mut command = Command::new("sh");
    // As `nohup` does.
    command.args(["-c", "trap '' HUP; exec \"$0\" test x --debug --timeout 60", WHARF]).env_clear();
    command.envs(home.variables()).current_dir(home.path("project")).stderr(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut talk = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("server/discover") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut talk, &mut line).unwrap(), 0, "it ended early");
    }
    crate::signals::send("HUP", child.id());
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    assert!(
        status
            .lines()
            .any(|line| line.starts_with("SigIgn:") && line.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f'])),
        "{status}"
    );
    crate::signals::send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
