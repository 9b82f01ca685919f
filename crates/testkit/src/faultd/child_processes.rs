//! Child processes of the server: this same program, so that they inherit the environment with the oracle's marker.

use std::process::{Child, Command, Stdio, exit};
use std::time::{Duration, Instant};

use rustix::process::setsid;

use super::server::{StdioFaultServer, linger_until_killed};

/// Entry point of a child process: `kin sleep`, `kin sleep-apart`, `kin fork` or `kin exit`.
pub fn run(mut args: impl Iterator<Item = String>) -> ! {
    match args.next().as_deref() {
        Some("sleep") => linger_until_killed(),
        Some("sleep-apart") => {
            setsid().ok();
            linger_until_killed()
        }
        Some("fork") => {
            setsid().ok();
            start(&mut detached_command("sleep"));
            exit(0)
        }
        _ => exit(0),
    }
}

/// Starts a sleeper in its own session, and a double-forked one.
pub fn start_daemons() {
    start(&mut detached_command("sleep-apart"));
    if let Some(mut middle) = start(&mut detached_command("fork")) {
        middle.wait().ok();
    }
}

/// Starts a sleeper in this process group that holds all three pipes.
pub fn start_holder() {
    start(&mut self_command(&["kin", "sleep"]));
}

/// Starts a sleeper outside of this process group that holds stdout.
pub fn start_stdout_holder() {
    start(self_command(&["kin", "sleep-apart"]).stdin(Stdio::null()).stderr(Stdio::null()));
}

/// Starts a process that has exited but is not reaped when this returns.
pub fn start_zombie() {
    let Some(child) = start(&mut detached_command("exit")) else { return };
    let stat = format!("/proc/{}/stat", child.id());
    wait_until(|| std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(") Z ")));
}

/// Starts a healthy server on this process's pipes; it keeps running after stdin ends.
pub fn start_server(server: &StdioFaultServer) -> Option<Child> {
    let mut command = self_command(&["stdio", "ok", "--linger", "--era", server.options.era.as_str()]);
    if let Some(ledger) = &server.options.ledger {
        command.arg("--ledger").arg(ledger);
    }
    start(&mut command)
}

/// Starts a process, and waits until a `sleep-apart` process has its own session.
fn start(command: &mut Command) -> Option<Child> {
    let apart = command.get_args().any(|argument| argument == "sleep-apart");
    let child = command.spawn().inspect_err(|error| eprintln!("faultd: kin: {error}")).ok()?;
    if apart {
        wait_until(|| session_of(child.id()) == Some(child.id()));
    }
    Some(child)
}

/// Returns the session id from `/proc`, because a session led from outside this PID namespace has the number 0, which
/// the typed call cannot express.
fn session_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(3)?.parse().ok()
}

fn detached_command(role: &str) -> Command {
    let mut command = self_command(&["kin", role]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns a command for this program; keeps `faultd` as the first argument if a test binary was started with it.
fn self_command(args: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    if std::env::args().nth(1).as_deref() == Some("faultd") {
        command.arg("faultd");
    }
    command.args(args);
    command
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() && since.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
