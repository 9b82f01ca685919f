//! The fault server as a process: healthy in both eras, faulty when asked, and leaving what it says it leaves.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::cases::{CASES, ServerEra};
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};

const SOON: Duration = Duration::from_secs(10);

struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    era: ServerEra,
}

impl Peer {
    fn start(era: ServerEra, marker: &str, args: &[&str]) -> Peer {
        let mut child = Command::new(env!("CARGO_BIN_EXE_faultd"))
            .args(["faultd", "stdio"])
            .args(args)
            .args(["--era", era.as_str()])
            .env(MARKER, marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Peer { child, input, output, era }
    }

    fn send(&mut self, id: u64, method: &str, mut params: Value) {
        if self.era == ServerEra::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{line}").unwrap();
    }

    fn receive(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(id, method, params);
        serde_json::from_str(&self.receive()).unwrap()
    }

    fn open(&mut self) -> Value {
        match self.era {
            ServerEra::Modern => self.ask(1, "server/discover", json!({})),
            _ => {
                let answer = self.ask(1, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
                writeln!(self.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
                answer
            }
        }
    }

    fn end(mut self) -> Option<i32> {
        drop(self.input);
        self.child.wait().unwrap().code()
    }
}

fn echo(text: &str) -> Value {
    json!({ "name": "echo", "arguments": { "text": text } })
}

#[test]
fn a_healthy_server_speaks_every_era() {
    for era in CASES[0].eras {
        let mut peer = Peer::start(*era, "healthy", &["ok"]);
        assert!(peer.open()["result"].is_object(), "{era:?}");
        let answer = peer.ask(2, "tools/call", echo("hello"));
        assert_eq!(answer["result"]["content"][0]["text"], "hello");
        assert_eq!(answer["result"]["resultType"].is_string(), *era == ServerEra::Modern);
        assert_eq!(peer.end(), Some(0));
    }
}

#[test]
fn an_answer_without_its_newline_is_the_last() {
    let mut peer = Peer::start(ServerEra::Modern, "S05", &["S05", "--phase", "during"]);
    peer.open();
    peer.send(2, "tools/call", echo("hello"));
    let line = peer.receive();
    assert!(line.contains("hello") && !line.ends_with('\n'));
    assert_eq!(peer.end(), Some(0));
}

#[test]
fn a_line_is_as_long_as_asked() {
    for (case, size) in [("S24-minus", 4095), ("S24-exact", 4096), ("S24-plus", 4097)] {
        let mut peer = Peer::start(ServerEra::Legacy, case, &[case, "--max", "4096"]);
        peer.open();
        peer.send(2, "tools/call", echo("hello"));
        assert_eq!(peer.receive().trim_end_matches('\n').len(), size, "{case}");
        peer.end();
    }
}

#[test]
fn daemons_outlive_the_server_and_are_found() {
    let marker = format!("S41-{}", std::process::id());
    let mut peer = Peer::start(ServerEra::Modern, &marker, &["S41", "--phase", "during"]);
    peer.open();
    peer.ask(2, "tools/call", echo("hello"));
    assert_eq!(peer.end(), Some(0));
    assert!(poll_until(SOON, || marked_processes(&marker).len() == 2));
    for survivor in marked_processes(&marker) {
        assert!(survivor.cmdline.contains("faultd kin sleep"), "{survivor:?}");
        Command::new("kill").args(["-KILL", &survivor.pid.to_string()]).status().unwrap();
    }
    assert!(poll_until(SOON, || marked_processes(&marker).is_empty()));
}

#[test]
fn the_fault_happens_on_the_first_start_only() {
    let state = std::env::temp_dir().join(format!("faultd-state-{}", std::process::id()));
    let path = state.to_str().unwrap();
    let mut first = Peer::start(ServerEra::Modern, "state", &["S03", "--phase", "during", "--state", path]);
    first.open();
    first.send(2, "tools/call", echo("hello"));
    assert_eq!(first.receive(), "");
    assert_eq!(first.end(), Some(1));
    let mut second = Peer::start(ServerEra::Modern, "state", &["S03", "--phase", "during", "--state", path]);
    second.open();
    assert!(second.ask(2, "tools/call", echo("hello"))["result"].is_object());
    assert_eq!(second.end(), Some(0));
    std::fs::remove_file(state).unwrap();
}
