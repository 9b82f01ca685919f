//! A client that is only as clever as these tests need: HTTP written and read by hand.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::http_cases::{Form, ServerEra};
use wharf_testkit::oracle::{Ledger, poll_until};

pub const SOON: Duration = Duration::from_secs(10);

/// The server's process.
pub struct Fixture {
    child: Child,
    /// Open as long as the server is to serve.
    input: Option<ChildStdin>,
    address: String,
    ledger: PathBuf,
    pub era: ServerEra,
}

impl Fixture {
    pub fn start(form: Form, era: ServerEra, args: &[&str]) -> Fixture {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let ledger = std::env::temp_dir().join(format!("faultd-http-{}-{number}", std::process::id()));
        let mut child = Command::new(env!("CARGO_BIN_EXE_faultd"))
            .arg(form.as_str())
            .args(args)
            .args(["--era", era.as_str(), "--ledger", ledger.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening ").unwrap().trim_end().to_owned();
        Fixture { input: child.stdin.take(), child, address, ledger, era }
    }

    pub fn connect(&self) -> Wire {
        self.connect_to(&self.address)
    }

    pub fn connect_to(&self, address: &str) -> Wire {
        Wire::new(TcpStream::connect(address).unwrap())
    }

    /// A connection on which the opening has been made.
    pub fn open(&self) -> Wire {
        let mut wire = self.connect();
        if self.era == ServerEra::Modern {
            assert!(wire.ask(self.era, 1, "server/discover", json!({}))["result"]["supportedVersions"].is_array());
            return wire;
        }
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        wire.post(self.era, &request(self.era, 1, "initialize", params));
        let (head, body) = wire.receive();
        assert!(body.contains("protocolVersion"), "{body}");
        wire.session = head.header("mcp-session-id").map(str::to_owned);
        wire.post(self.era, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(wire.receive().0.status, 202);
        wire
    }

    pub fn ledger(&self) -> Ledger {
        Ledger::read(&self.ledger).unwrap()
    }

    /// Whether the ledger has the line, or gets it soon.
    pub fn records(&self, line: &str) -> bool {
        poll_until(SOON, || self.ledger().lines.iter().any(|found| found == line))
    }

    /// Closes stdin; the server leaves, and has seen nothing that the protocol forbids.
    pub fn end(mut self) {
        assert!(self.ledger().violations().is_empty(), "{:?}", self.ledger().lines);
        drop(self.input.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().ok();
        std::fs::remove_file(&self.ledger).ok();
    }
}

/// One connection.
pub struct Wire {
    input: BufReader<TcpStream>,
    pub session: Option<String>,
    /// Set once a request met a reset while it was written. The kernel reports a reset once: the next read sees EOF.
    reset_while_writing: bool,
}

pub struct Head {
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Wire {
    pub fn new(stream: TcpStream) -> Wire {
        stream.set_read_timeout(Some(SOON)).unwrap();
        Wire { input: BufReader::new(stream), session: None, reset_while_writing: false }
    }

    /// Sends a request in one write. A server may reset the connection before it has read the whole request.
    pub fn send(&mut self, verb: &str, target: &str, headers: &str, body: &str) {
        let mut stream = self.input.get_ref();
        let session = self.session.iter().map(|id| format!("Mcp-Session-Id: {id}\r\n")).collect::<String>();
        let length = body.len();
        let head = format!("{verb} {target} HTTP/1.1\r\n{session}{headers}Content-Length: {length}\r\n\r\n");
        match stream.write_all(format!("{head}{body}").as_bytes()) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.reset_while_writing = true,
            written => written.unwrap(),
        }
    }

    pub fn post(&mut self, era: ServerEra, message: &Value) {
        self.post_with(era, "", message);
    }

    /// Posts as a client of the era does, with these headers besides.
    pub fn post_with(&mut self, era: ServerEra, extra: &str, message: &Value) {
        let mut headers =
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n".to_owned();
        let method = message["method"].as_str().unwrap();
        match era {
            ServerEra::Modern => {
                headers.push_str(&format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"))
            }
            _ if method == "initialize" => {}
            ServerEra::Legacy => headers.push_str("MCP-Protocol-Version: 2025-11-25\r\n"),
            ServerEra::Revision(revision) => headers.push_str(&format!("MCP-Protocol-Version: {revision}\r\n")),
        }
        if let (ServerEra::Modern, Some(name)) = (era, message["params"]["name"].as_str()) {
            headers.push_str(&format!("Mcp-Name: {name}\r\n"));
        }
        self.send("POST", "/mcp", &format!("{headers}{extra}"), &message.to_string());
    }

    /// Posts a request and reads its answer, from the JSON or from the last event.
    pub fn ask(&mut self, era: ServerEra, id: u64, method: &str, params: Value) -> Value {
        self.post(era, &request(era, id, method, params));
        let (head, body) = self.receive();
        match head.header("content-type") {
            Some("text/event-stream") => serde_json::from_str(&messages(&body).pop().unwrap()).unwrap(),
            _ => serde_json::from_str(&body).unwrap(),
        }
    }

    pub fn head(&mut self) -> Head {
        let status = self.line();
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("no status line: {status:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { return Head { status, headers } };
            headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// A whole answer.
    pub fn receive(&mut self) -> (Head, String) {
        let head = self.head();
        let mut body = Vec::new();
        if head.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        } else if let Some(length) = head.header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.input.read_exact(&mut body).unwrap();
        }
        (head, String::from_utf8(body).unwrap())
    }

    /// The next chunk; nothing after the last one.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        let mut bytes = vec![0; size + 2];
        self.input.read_exact(&mut bytes).unwrap();
        assert!(bytes.ends_with(b"\r\n"));
        bytes.truncate(size);
        (size > 0).then_some(bytes)
    }

    /// The next chunk as text.
    pub fn text(&mut self) -> String {
        String::from_utf8(self.chunk().unwrap()).unwrap()
    }

    /// The chunks until the last one, or until the connection ends.
    pub fn chunks(&mut self) -> String {
        let mut text = Vec::new();
        while !self.input.fill_buf().unwrap().is_empty()
            && let Some(chunk) = self.chunk()
        {
            text.extend(chunk);
        }
        String::from_utf8(text).unwrap()
    }

    /// Everything until the connection ends.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.input.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Whether the connection ends with a reset, met by a write or by a read, whatever comes before that.
    pub fn is_reset(&mut self) -> bool {
        let end = self.input.read_to_end(&mut Vec::new());
        self.reset_while_writing || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    }

    /// Reads without keeping it, up to `most` bytes, and says how much there was.
    pub fn drain(&mut self, most: u64) -> u64 {
        std::io::copy(&mut self.input.by_ref().take(most), &mut std::io::sink()).unwrap()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// A request as the era has it.
pub fn request(era: ServerEra, id: u64, method: &str, mut params: Value) -> Value {
    if era == ServerEra::Modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": id,
        });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn call(era: ServerEra, id: u64, tool: &str, arguments: Value) -> Value {
    request(era, id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// The data of every event in the text, where lines end with LF.
pub fn messages(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("data:")).map(|data| data.trim().to_owned()).collect()
}
