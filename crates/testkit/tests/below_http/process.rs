//! A piece in a process of its own. The process is this test binary again, told to run [`entry`] alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use wharf_testkit::transport_faults::{CASES, run};

use super::{assert_healthy, call, connect, fate, post, rest};

/// Holds the arguments for the process, one in a line.
const ARGUMENTS: &str = "BELOW_ARGUMENTS";

#[test]
#[ignore = "the life of the processes that the other tests start"]
#[expect(clippy::disallowed_methods, clippy::exit, reason = "this is the whole of another process")]
fn entry() {
    let arguments = std::env::var(ARGUMENTS).unwrap();
    let arguments: Vec<String> = arguments.lines().map(str::to_owned).collect();
    std::process::exit(run(&arguments));
}

struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(arguments: &[&str]) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["process::entry", "--exact", "--ignored", "--nocapture"])
            .env(ARGUMENTS, arguments.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process { child, output }
    }

    /// The address announced; what the test harness says before it is skipped, and may share its line.
    fn address(&mut self) -> SocketAddr {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "ended without listening");
            if let Some((_, address)) = line.split_once("listening ") {
                return address.trim().parse().unwrap();
            }
        }
    }

    /// Closes stdin; what the process says then, and its exit code.
    fn finish(mut self) -> (String, Option<i32>) {
        drop(self.child.stdin.take());
        let mut last = String::new();
        self.output.read_to_string(&mut last).unwrap();
        (last, self.child.wait().unwrap().code())
    }
}

#[test]
fn every_case_listens_and_ends_with_stdin() {
    for case in CASES {
        let mut process = Process::start(&[case.name]);
        assert!(process.address().ip().is_loopback(), "{}", case.name);
        assert_eq!(process.finish().1, Some(0), "{}", case.name);
    }
}

#[test]
fn it_says_what_it_has_seen() {
    let mut process = Process::start(&["H02-reset", "--times", "1"]);
    let address = process.address();
    assert!(fate(address).is_err());
    assert_healthy(&mut connect(address), "second");
    assert_eq!(process.finish().0, "connections 2 requests 1\n");
}

#[test]
fn proxies_lead_where_they_are_told() {
    let mut server = Process::start(&["ok"]);
    let to = server.address().to_string();
    let mut proxy = Process::start(&["proxy", "--to", &to, "--rule", "connection 1 to-client before 0 cut"]);
    let address = proxy.address();
    let mut first = connect(address);
    first.write_all(post(&call("lost")).as_bytes()).unwrap();
    assert!(rest(&mut first).is_err());
    assert_healthy(&mut connect(address), "second");
    let (said, code) = proxy.finish();
    assert!(said.starts_with("connections 2 to-server "), "{said}");
    assert_eq!((server.finish().0.as_str(), code), ("connections 2 requests 2\n", Some(0)));
}

#[test]
fn certificates_are_left_where_the_options_say() {
    let folder = std::env::temp_dir().join(format!("below-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [ca, client] = ["ca.pem", "client.pem"].map(|name| folder.join(name));
    let paths = [ca.to_str().unwrap(), client.to_str().unwrap()];
    let mut process = Process::start(&["H03-client", "--ca", paths[0], "--client", paths[1]]);
    process.address();
    assert!(std::fs::read_to_string(&ca).unwrap().contains("BEGIN CERTIFICATE"));
    assert!(std::fs::read_to_string(&client).unwrap().contains("PRIVATE KEY"));
    process.finish();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_arguments_end_it_at_once() {
    for wrong in [&["no-such-case"][..], &["ok", "--times"], &["ok", "--times", "many"], &["ok", "--sulk", "1"]] {
        assert_eq!(Process::start(wrong).finish().1, Some(2), "{wrong:?}");
    }
}
