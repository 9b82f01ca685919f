//! The HTTP echo server as a child of the measured client, so that both run on the same cores.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::BenchOptions;

/// A running echo server.
pub struct HttpEchoServer {
    pub url: String,
    child: Child,
    output: BufReader<ChildStdout>,
}

/// Connections and requests seen by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTraffic {
    /// Connections opened.
    pub connections: usize,
    /// Requests of any kind.
    pub requests: usize,
}

impl HttpEchoServer {
    /// Starts the server and waits for its address.
    pub fn start(options: &BenchOptions) -> Self {
        let mut child = Command::new(&options.server)
            .args(["--answers", options.answers.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening ").expect("the server says where it is").to_owned();
        Self { url, child, output }
    }

    /// Stops the server and returns its counts.
    pub fn stop(mut self) -> ServerTraffic {
        drop(self.child.stdin.take());
        let mut farewell = String::new();
        self.output.read_to_string(&mut farewell).unwrap();
        self.child.wait().unwrap();
        let count = |what: &str| {
            let found = farewell.lines().find_map(|line| line.strip_prefix(what)?.trim().parse().ok());
            found.unwrap_or_else(|| panic!("the server says how many {what} there were"))
        };
        ServerTraffic { connections: count("connections"), requests: count("requests") }
    }
}
