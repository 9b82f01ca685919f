//! A host process with its servers: started, brought to one of its ends, and cleaned up after.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wharf_testkit::oracle::{self, MarkedProcess};

use crate::fleet;

const WHARF: &str = env!("CARGO_BIN_EXE_wharf");
/// What `cargo xtask test` looks for when it looks for leftovers.
const TEST_RUN: &str = "WHARF_TEST_RUN";
/// Longer than any host waits for its servers.
const READY_WITHIN: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Wharf,
    Embedder,
    Unguarded,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Wharf, Kind::Embedder, Kind::Unguarded];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Wharf => "wharf",
            Kind::Embedder => "embedder",
            Kind::Unguarded => "embedder-without-guard",
        }
    }

    pub fn guards(self) -> usize {
        if self == Kind::Unguarded { 0 } else { fleet::SERVERS }
    }

    fn command(self) -> Command {
        match self {
            Kind::Wharf => {
                let mut command = Command::new(WHARF);
                command.arg("hold");
                command.args(fleet::commands().iter().flat_map(|line| ["--stdio", line]));
                command
            }
            Kind::Embedder => {
                let mut command = Command::new(embedder());
                command.args(fleet::commands());
                command
            }
            Kind::Unguarded => {
                let mut command = Kind::Embedder.command();
                command.arg("--no-guard");
                command
            }
        }
    }

    /// What it says once all servers are there.
    fn greeting(self) -> String {
        let ready = format!("ready {}", fleet::SERVERS);
        match self {
            Kind::Wharf => ready,
            Kind::Embedder => ready + " containment guard",
            Kind::Unguarded => ready + " containment group",
        }
    }

    /// Whether this end leaves the host time to close its servers.
    pub fn is_graceful(self, end: End) -> bool {
        match end {
            End::Close => true,
            End::Signal(signal) => self == Kind::Wharf && signal != Signal::KILL,
            End::Panic => false,
        }
    }

    /// The exit code, or the negative number of the signal, with which this end shows.
    fn status(self, end: End) -> i32 {
        match end {
            End::Close => 0,
            End::Panic => 101,
            End::Signal(_) if self.is_graceful(end) => 130,
            End::Signal(signal) => -signal.as_raw(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Close,
    Signal(Signal),
    Panic,
}

impl End {
    pub const ALL: [End; 6] = [
        End::Close,
        End::Signal(Signal::INT),
        End::Signal(Signal::TERM),
        End::Signal(Signal::HUP),
        End::Signal(Signal::KILL),
        End::Panic,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            End::Close => "close",
            End::Signal(Signal::INT) => "SIGINT",
            End::Signal(Signal::TERM) => "SIGTERM",
            End::Signal(Signal::HUP) => "SIGHUP",
            End::Signal(_) => "SIGKILL",
            End::Panic => "panic",
        }
    }
}

/// A host whose servers are all ready. Dropping it ends it and everything that is left of them.
pub struct Host {
    kind: Kind,
    child: Child,
    marker: String,
    talk: PathBuf,
    guards: Vec<i32>,
}

impl Host {
    pub fn start(kind: Kind, marker: String) -> Result<Host, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let talk = folder.join(format!("{marker}.stderr"));
        let mut command = kind.command();
        command.args(["--env", &format!("{}={marker}", oracle::MARKER)]);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder).current_dir(folder);
        if let Ok(run) = std::env::var(TEST_RUN) {
            command.args(["--env", &format!("{TEST_RUN}={run}")]).env(TEST_RUN, run);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&talk).unwrap());
        heed_signals(&mut command);
        let child = command.spawn().map_err(|error| format!("{}: {error}", kind.as_str()))?;
        let mut host = Host { kind, child, marker, talk, guards: Vec::new() };
        host.await_servers().map_err(|problem| host.explain(&problem))?;
        Ok(host)
    }

    fn await_servers(&mut self) -> Result<(), String> {
        let stdout = self.child.stdout.take().unwrap();
        match first_line(stdout).recv_timeout(READY_WITHIN) {
            Ok(line) if line.trim_end() == self.kind.greeting() => {}
            Ok(line) => return Err(format!("it said {line:?}")),
            Err(_) => return Err("it did not get ready".to_owned()),
        }
        // A process that is just being executed has no environment yet, so the last of them may show a little later.
        if !oracle::poll_until(Duration::from_secs(5), || fleet::missing(&self.marked()).is_none()) {
            return Err(fleet::missing(&self.marked()).unwrap_or_default());
        }
        self.guards =
            oracle::children_of(self.child.id().cast_signed()).into_iter().filter(|pid| is_guard(*pid)).collect();
        if self.guards.len() != self.kind.guards() {
            return Err(format!("{} guards", self.guards.len()));
        }
        match self.marked().iter().filter(|process| blocks_terminate(process.pid)).count() {
            0 => Ok(()),
            // They would all seem deaf, and what is said of the others would not be shown.
            blocked => Err(format!("{blocked} processes of its servers run with SIGTERM blocked")),
        }
    }

    pub fn processes(&self) -> usize {
        self.marked().len() + self.guards.len()
    }

    pub fn apply(&mut self, end: End) {
        match end {
            End::Close => self.order("close\n"),
            End::Panic => self.order("panic\n"),
            End::Signal(signal) => kill_process(Pid::from_child(&self.child), signal).unwrap(),
        }
    }

    fn order(&mut self, line: &str) {
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its servers' processes.
    pub fn marked(&self) -> Vec<MarkedProcess> {
        oracle::marked_processes(&self.marker)
    }

    pub fn guards_left(&self) -> Vec<i32> {
        self.guards.iter().copied().filter(|pid| is_guard(*pid)).collect()
    }

    /// What is wrong with how it ended, if anything.
    pub fn misbehaviour(&mut self, end: End) -> Option<String> {
        let Ok(Some(status)) = self.child.try_wait() else {
            return Some(self.explain("the host itself is still there"));
        };
        let (found, wanted) = (status.code().or(status.signal().map(|signal| -signal)), self.kind.status(end));
        (found != Some(wanted)).then(|| self.explain(&format!("it ended with {status} and not {wanted}")))
    }

    /// A problem with what the host had to say about it.
    fn explain(&self, problem: &str) -> String {
        let talk = std::fs::read_to_string(&self.talk).unwrap_or_default();
        format!("{problem}\n{}", talk.trim_end()).trim_end().to_owned()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        oracle::poll_until(Duration::from_secs(5), || {
            let left = self.marked().into_iter().map(|process| process.pid).chain(self.guards_left());
            let left: Vec<Pid> = left.filter_map(Pid::from_raw).collect();
            for pid in &left {
                let _ = kill_process(*pid, Signal::KILL);
            }
            left.is_empty()
        });
        let _ = std::fs::remove_file(&self.talk);
    }
}

/// The client's example `embed`.
fn embedder() -> PathBuf {
    Path::new(WHARF).with_file_name("examples").join("embed")
}

/// Builds the example if anything has changed: an old one would prove nothing.
pub fn build_embedder() -> Result<(), String> {
    let profile = Path::new(WHARF).parent().unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "wharf-client", "--example", "embed"]);
    build.env("CARGO_TARGET_DIR", profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the example does not build".to_owned()) }
}

/// Whoever runs the tests in the background may have its children ignore or block signals.
#[expect(unsafe_code, reason = "no safe API sets what a child does with signals")]
fn heed_signals(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec; it makes async-signal-safe calls, on a set of its own.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            Ok(())
        });
    }
}

/// Reads one line on a thread of its own, so that the wait for it can end; keeps reading so that nobody blocks.
fn first_line(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines();
        let _ = sender.send(lines.next().and_then(Result::ok).unwrap_or_default());
        lines.map_while(Result::ok).for_each(drop);
    });
    receiver
}

/// A guard's own name is all it says; a dead one that nobody has waited for says nothing.
fn is_guard(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|cmdline| cmdline.starts_with(b"wharf-guard\0"))
}

/// Whether a process has SIGTERM in its mask, which is not its own doing but came from whoever started it.
fn blocks_terminate(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (libc::SIGTERM - 1)) != 0
}
