//! A client that starts `wharf serve` and speaks MCP with it, as other programs do.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use wharf_testkit::test_home::TestHome;

pub struct PipeClient {
    pub child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    last_id: u64,
    /// `_meta` of every request.
    pub meta: Value,
}

/// The end of a `wharf serve`.
#[derive(Debug)]
pub struct ClientEnd {
    pub code: Option<i32>,
    pub stderr: String,
}

impl PipeClient {
    /// Starts `wharf serve` in a directory of the home.
    pub fn start(home: &TestHome, directory: &str, words: &[&str]) -> Self {
        let mut command = home.command(["serve"].iter().chain(words));
        command.current_dir(home.path(Path::new(directory)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, input, lines: BufReader::new(output).lines(), last_id: 0, meta: Value::Null }
    }

    /// Starts `wharf serve` and initializes a session.
    pub fn initialized(home: &TestHome, directory: &str, words: &[&str]) -> Self {
        Self::start(home, directory, words).initialize(&json!({}))
    }

    /// Initializes a session of a client with these capabilities.
    pub fn initialize(mut self, capabilities: &Value) -> Self {
        let client = &mut self;
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let opened = client.request("initialize", &params);
        assert_eq!(opened["result"]["serverInfo"]["name"], "wharf", "{opened}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns its id.
    pub fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let mut params = params.clone();
        if self.meta.is_object() {
            params["_meta"] = self.meta.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    /// Waits for the response to a request.
    pub fn response(&mut self, id: u64) -> Value {
        for line in &mut self.lines {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        panic!("no response to request {id}: {stderr}");
    }

    /// Waits for a notification. Messages before it are skipped.
    pub fn wait_for_notification(&mut self, method: &str) {
        let is_it =
            |line: std::io::Result<String>| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["method"] == method;
        assert!(self.lines.any(is_it), "no {method}");
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        self.response(id)
    }

    /// Calls a tool and returns the text of its result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let called = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        called["result"]["content"][0]["text"].as_str().map_or_else(|| called.to_string(), str::to_owned)
    }

    pub fn tool_names(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends the input, as a client that is done, and waits for the process.
    pub fn finish(mut self) -> ClientEnd {
        drop(self.input.take());
        self.wait()
    }

    /// Waits for the process.
    pub fn wait(mut self) -> ClientEnd {
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        ClientEnd { code: self.child.wait().unwrap().code(), stderr }
    }
}

impl Drop for PipeClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
