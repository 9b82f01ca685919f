//! Minimal client that calls a tool over stdio: starts the server, initializes, calls `echo`, prints the result and
//! waits for the server's exit. No host, no guard, no limits.
//!
//! `bench-cli-bare TEXT PROGRAM [ARGUMENT…]`

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark panics on errors and prints")]

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

fn main() {
    let mut words = std::env::args_os().skip(1);
    let text = words.next().unwrap().into_string().unwrap();
    let mut server = Command::new(words.next().unwrap());
    let mut server = server.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line =
        ServerPipes { out: server.stdin.take().unwrap(), back: BufReader::new(server.stdout.take().unwrap()) };
    let client = json!({ "name": "bare", "version": "1" });
    line.request(1, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }));
    line.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let result = line.request(2, "tools/call", json!({ "name": "echo", "arguments": { "text": text } }));
    println!("{}", result["content"][0]["text"].as_str().unwrap());
    drop(line);
    server.wait().unwrap();
}

/// Both pipes of a server.
struct ServerPipes {
    out: ChildStdin,
    back: BufReader<ChildStdout>,
}

impl ServerPipes {
    fn send(&mut self, message: &Value) {
        self.out.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a request and reads until its response.
    fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.back.read_line(&mut line).unwrap() > 0, "the server closed its output");
            let mut message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].take();
            }
        }
    }
}
