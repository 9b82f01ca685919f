//! A demo server over HTTP, and just enough of a client to see its bytes.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::wharf;

pub const MODERN: &str = "2026-07-28";

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A demo server; it is ended with the test.
pub struct Demo {
    pub child: Child,
    /// Such as `127.0.0.1:8080`.
    pub address: String,
    pub path: String,
    _talk: BufReader<ChildStderr>,
}

impl Demo {
    /// Starts one with `--http 127.0.0.1:0`, or whatever `flags` say, and waits until it listens.
    pub fn start(flags: &[&str]) -> Self {
        let mut child = wharf(["demo-server", "--until-stdin-closes"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line:?}"));
        let (address, path) = url.split_once('/').unwrap();
        Self { address: address.to_owned(), path: format!("/{path}"), child, _talk: talk }
    }

    pub fn streamable() -> Self {
        Self::start(&["--http", "127.0.0.1:0"])
    }

    /// Sends one request and reads the head of its answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let host = [("Host", self.address.as_str())];
        let host = if headers.iter().any(|(name, _)| *name == "Host") { &[][..] } else { &host };
        let lines: String = host.iter().chain(headers).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("{method} {path} HTTP/1.1\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
        self.send_raw(&(head + body))
    }

    /// Sends bytes, whatever they are.
    pub fn send_raw(&self, bytes: &str) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        Response { stream: BufReader::new(stream), head: None }
    }

    /// Posts a message with the headers that every message has, and others.
    pub fn post(&self, headers: &[(&str, &str)], body: &Value) -> Response {
        let mut all = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        all.extend(headers);
        self.send("POST", &self.path, &all, &body.to_string())
    }

    /// Posts a request of the stateless era, whose headers are as they should be.
    pub fn request(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> Response {
        let body = described(method, params);
        let name = ["name", "uri", "taskId"].iter().find_map(|field| body["params"][*field].as_str());
        let mut all = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        all.extend(name.map(|name| ("Mcp-Name", name)));
        all.extend(headers);
        self.post(&all, &body)
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Response {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}), &[])
    }

    /// Waits until as many calls are under way as expected; each has a thread of that name.
    #[track_caller]
    pub fn await_calls(&self, expected: usize) {
        let started = Instant::now();
        while self.calls() != expected {
            assert!(started.elapsed() < PATIENCE, "{} calls are under way", self.calls());
            std::thread::yield_now();
        }
    }

    fn calls(&self) -> usize {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let name =
            |thread: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok();
        threads.filter_map(name).filter(|name| name == "demo-call\n").count()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request of the stateless era, with the id 1.
pub fn described(method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    if params["_meta"].get("io.modelcontextprotocol/clientCapabilities").is_none() {
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// An answer, of which nothing is read before somebody asks. Dropped, it closes the connection.
pub struct Response {
    stream: BufReader<TcpStream>,
    head: Option<Head>,
}

pub struct Head {
    pub status: u16,
    headers: Vec<(String, String)>,
}

/// One server-sent event.
#[derive(Debug, Default, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: String,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Event {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Response {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn head(&mut self) -> &Head {
        if self.head.is_none() {
            let status = self.line().split(' ').nth(1).expect("a status").parse().unwrap();
            let lines = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty()));
            let headers = lines.map(|line| line.split_once(": ").map(|(name, value)| (name.into(), value.into())));
            let headers = headers.map(Option::unwrap).collect();
            self.head = Some(Head { status, headers });
        }
        self.head.as_ref().unwrap()
    }

    pub fn status(&mut self) -> u16 {
        self.head().status
    }

    /// The status, and the body as JSON; null if missing.
    #[track_caller]
    pub fn json(&mut self) -> (u16, Value) {
        let head = self.head();
        let (status, length) = (head.status, head.header("content-length").expect("a length").parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The next piece of a chunked body; the server writes every event as one. Nothing at the end.
    fn chunk(&mut self) -> Option<String> {
        assert_eq!(self.head().header("content-type"), Some("text/event-stream"));
        let length = usize::from_str_radix(&self.line(), 16).expect("the length of a chunk");
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk).unwrap();
        chunk.truncate(length);
        (length > 0).then(|| String::from_utf8(chunk).unwrap())
    }

    /// The next event, or nothing at the end of the stream.
    pub fn event(&mut self) -> Option<Event> {
        let chunk = self.chunk()?;
        let mut event = Event::default();
        for line in chunk.strip_suffix("\n\n").expect("a whole event").lines() {
            match line.split_once(": ").unwrap_or_else(|| panic!("{line:?}")) {
                ("event", name) => event.name = name.to_owned(),
                ("id", id) => event.id = id.to_owned(),
                ("data", data) => event.data = data.to_owned(),
                _ => panic!("{line:?}"),
            }
        }
        Some(event)
    }

    /// The next event, which carries a message.
    #[track_caller]
    pub fn message(&mut self) -> Value {
        self.event().expect("an event").json()
    }
}
