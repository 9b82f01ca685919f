//! A server that turns against its guard: none of the processes it has started is left, however they were started.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wharf_testkit::oracle::poll_until;
use wharf_testkit::test_home::TestHome;

use crate::support::{WHARF, named_pipe, quoted};

/// Longer than the host takes for anything asserted here.
const SOON: Duration = Duration::from_secs(30);

/// Starts grandchildren in every way, waits for an order in the background, and becomes an honest server.
const SERVER: &str = r#"
cd "$1"
echo $PPID > guard
sleep 1000 & echo $! > plain
env -i sleep 1000 & echo $! > cleared
setsid sh -c 'sleep 1000 & echo $! > apart'
env -i setsid sh -c 'sleep 1000 & echo $! > all'
guard=$PPID
( read -r signal < order; kill "-$signal" "$guard"; echo done > obeyed ) </dev/null >/dev/null 2>&1 &
exec "$2" demo-server --stdio
"#;

/// A host with one such server. Dropping it kills whatever is left.
struct GuardedServer {
    home: TestHome,
    host: Child,
}

impl GuardedServer {
    fn open() -> Self {
        let home = TestHome::new();
        let server = home.write("server.sh", SERVER);
        named_pipe(&home.path("order"));
        let words = [&server, home.root(), Path::new(WHARF)].map(quoted);
        let mut command = home.command(["hold", "--stdio", &format!("sh {}", words.join(" "))]);
        let mut host = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(host.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let server = Self { home, host };
        assert_eq!(line, "ready 1\n");
        let names = ["plain", "cleared", "apart", "all", "guard"];
        assert!(
            poll_until(SOON, || names.iter().all(|name| server.process(name).is_some())),
            "the processes are started"
        );
        assert!(!server.is_empty());
        server
    }

    /// A process by the file that holds its id.
    fn process(&self, name: &str) -> Option<Pid> {
        fs::read_to_string(self.home.path(name)).ok()?.trim().parse().ok().and_then(Pid::from_raw)
    }

    /// The server sends its guard this signal.
    fn order(&self, signal: &str) {
        fs::write(self.home.path("order"), format!("{signal}\n")).unwrap();
    }

    /// The server has stopped its guard.
    fn stop_guard(&self) {
        self.order("STOP");
        assert!(poll_until(SOON, || self.home.path("obeyed").exists()), "the guard was stopped");
    }

    fn close(&mut self) {
        self.host.stdin.as_mut().unwrap().write_all(b"close\n").unwrap();
    }

    fn is_closed(&mut self) -> bool {
        matches!(self.host.try_wait(), Ok(Some(_)))
    }

    fn left(&self) -> Vec<&'static str> {
        ["plain", "cleared", "apart", "all"].into_iter().filter(|name| is_alive(self.process(name))).collect()
    }

    fn is_empty(&self) -> bool {
        self.left().is_empty()
    }
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        let _ = self.host.kill();
        let _ = self.host.wait();
        for name in ["guard", "plain", "cleared", "apart", "all"] {
            if let Some(pid) = self.process(name).filter(|pid| is_alive(Some(*pid))) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// The state of a process, as in `/proc/<pid>/stat`.
fn state_of(process: Option<Pid>) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process?.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn is_alive(process: Option<Pid>) -> bool {
    state_of(process).is_some_and(|state| state != 'Z')
}

#[test]
fn server_killing_its_guard_leaves_no_process() {
    let mut server = GuardedServer::open();
    server.order("KILL");
    assert!(poll_until(SOON, || server.is_empty()), "left: {:?}", server.left());
    server.close();
    assert!(poll_until(SOON, || server.is_closed()), "the host ends");
}

#[test]
fn server_stopping_its_guard_does_not_block_close() {
    let mut server = GuardedServer::open();
    server.stop_guard();
    server.close();
    assert!(poll_until(SOON, || server.is_closed()), "the host ends");
    assert!(poll_until(SOON, || server.is_empty()), "left: {:?}", server.left());
}

#[test]
fn stopped_guard_is_continued_while_its_server_runs() {
    let server = GuardedServer::open();
    server.stop_guard();
    assert!(poll_until(SOON, || is_alive(server.process("guard")) && state_of(server.process("guard")) != Some('T')));
    assert!(!server.is_empty(), "its server runs on");
}

#[test]
fn stopped_guard_ends_its_server_after_host_death() {
    let mut server = GuardedServer::open();
    server.stop_guard();
    server.host.kill().unwrap();
    assert!(poll_until(SOON, || server.is_empty()), "left: {:?}", server.left());
    assert!(poll_until(SOON, || !is_alive(server.process("guard"))));
}
