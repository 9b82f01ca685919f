//! The forms of a program, and one run of each.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wharf_testkit::oracle;

use crate::programs::FormPrograms;

/// Time for a program to get ready. A correct one needs a fraction of a second.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for all processes to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// The line of a program whose server is guarded and has answered.
const READY_LINE: &str = "ready guard heard";

/// A form of a program that embeds a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    MultiThread,
    CurrentThread,
    PlainMain,
    Test,
    TokioTest,
    Symlink,
    OtherName,
    Replaced,
}

/// The way a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Kill,
    Close,
}

impl Form {
    pub const ALL: [Form; 8] = [
        Form::MultiThread,
        Form::CurrentThread,
        Form::PlainMain,
        Form::Test,
        Form::TokioTest,
        Form::Symlink,
        Form::OtherName,
        Form::Replaced,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Form::MultiThread => "tokio-main",
            Form::CurrentThread => "tokio-main-current-thread",
            Form::PlainMain => "plain-main",
            Form::Test => "test",
            Form::TokioTest => "tokio-test",
            Form::Symlink => "symlink",
            Form::OtherName => "other-argv0",
            Form::Replaced => "replaced-file",
        }
    }

    /// The description in the table.
    pub fn title(self) -> &'static str {
        match self {
            Form::MultiThread => "`#[tokio::main]`",
            Form::CurrentThread => "`#[tokio::main(flavor = \"current_thread\")]`",
            Form::PlainMain => "`fn main` that builds a runtime",
            Form::Test => "`#[test]` that builds a runtime",
            Form::TokioTest => "`#[tokio::test]`",
            Form::Symlink => "`#[tokio::main]`, started through a symbolic link",
            Form::OtherName => "`#[tokio::main]`, started with another `argv[0]`",
            Form::Replaced => "`#[tokio::main]`, its file deleted after the start",
        }
    }

    fn command(self, programs: &FormPrograms, folder: &Path) -> Result<Command, String> {
        let text = |error: std::io::Error| error.to_string();
        let multi_thread = programs.path("embedding_multi_thread")?;
        let in_test = |name: &str| {
            let mut command = Command::new(programs.path("embedding_in_tests")?);
            command.args(["--ignored", "--exact", "--nocapture", name]);
            Ok::<_, String>(command)
        };
        Ok(match self {
            Form::MultiThread => Command::new(multi_thread),
            Form::CurrentThread => Command::new(programs.path("embedding_current_thread")?),
            Form::PlainMain => Command::new(programs.path("embedding_plain_main")?),
            Form::Test => in_test("plain_test")?,
            Form::TokioTest => in_test("tokio_test")?,
            Form::Symlink => {
                let link = folder.join("another-name");
                std::os::unix::fs::symlink(multi_thread, &link).map_err(text)?;
                Command::new(link)
            }
            Form::OtherName => {
                let mut command = Command::new(multi_thread);
                command.arg0("another name");
                command
            }
            Form::Replaced => {
                let copy = folder.join("copy");
                std::fs::hard_link(multi_thread, &copy)
                    .or_else(|_| std::fs::copy(multi_thread, &copy).map(drop))
                    .map_err(text)?;
                Command::new(copy)
            }
        })
    }
}

/// Starts a form, waits for its call, ends it, and checks that no process is left.
pub fn run(form: Form, programs: &FormPrograms, round: usize, end: End) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let marker = format!("embedding-{}-{}-{round}", std::process::id(), form.name());
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = form.command(programs, folder.path())?;
    command
        .env(oracle::MARKER, &marker)
        .env("EMBEDDING_SERVER", format!("{} faultd stdio S41 --phase before", own.display()));
    command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| error.to_string())?;
    let mut program = RunningForm { child, marker, guard: None };
    if form == Form::Replaced {
        std::fs::remove_file(folder.path().join("copy")).map_err(|error| error.to_string())?;
    }
    let outcome = program.wait_until_ready().and_then(|()| program.end(end));
    outcome.map_err(|problem| format!("{problem}\n{}", program.stderr()))
}

fn is_guard(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"wharf-guard\0"))
}

/// A started program. Dropping it ends everything that is left.
struct RunningForm {
    child: Child,
    marker: String,
    guard: Option<i32>,
}

impl RunningForm {
    fn wait_until_ready(&mut self) -> Result<(), String> {
        let stdout = self.child.stdout.take().ok_or("no stdout")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A harness prints on the same line, and reads on so that nobody blocks.
                if line.contains("ready ") {
                    let _ = sender.send(line);
                }
            }
        });
        match lines.recv_timeout(READY_TIMEOUT) {
            Ok(line) if line.ends_with(READY_LINE) => self.find_guard(),
            Ok(line) => Err(format!("it printed {line:?}")),
            Err(_) => Err("it did not get ready".to_owned()),
        }
    }

    /// The program must have one child, the guard: a second instance of the program itself would be another.
    fn find_guard(&mut self) -> Result<(), String> {
        match oracle::children_of(self.child.id().cast_signed()).as_slice() {
            [one] if is_guard(*one) => self.guard = Some(*one),
            others => return Err(format!("{} children, expected one guard", others.len())),
        }
        Ok(())
    }

    fn is_all_gone(&self) -> bool {
        oracle::marked_processes(&self.marker).is_empty() && !self.guard.is_some_and(is_guard)
    }

    fn end(&mut self, end: End) -> Result<(), String> {
        match end {
            End::Kill => kill_process(Pid::from_child(&self.child), Signal::KILL).map_err(|error| error.to_string())?,
            End::Close => drop(self.child.stdin.take()),
        }
        if !oracle::poll_until(END_TIMEOUT, || !matches!(self.child.try_wait(), Ok(None))) {
            return Err("the program did not end".to_owned());
        }
        if end == End::Close && !self.child.wait().is_ok_and(|status| status.success()) {
            return Err("the program failed".to_owned());
        }
        match oracle::poll_until(END_TIMEOUT, || self.is_all_gone()) {
            true => Ok(()),
            false => Err(format!("left behind: {:?}", oracle::marked_processes(&self.marker))),
        }
    }

    fn stderr(&mut self) -> String {
        let _ = self.child.kill();
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for RunningForm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        oracle::poll_until(END_TIMEOUT, || {
            let left: Vec<i32> =
                oracle::marked_processes(&self.marker).into_iter().map(|process| process.pid).collect();
            for pid in left.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                let _ = kill_process(pid, Signal::KILL);
            }
            left.is_empty()
        });
    }
}
