//! The plainest client there is: one connection per request, everything by hand.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::modeld::{ModelApiFormat, Modeld};

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(10);

/// An answer, as far as it came.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
    /// The body came to the end that was announced.
    pub is_whole: bool,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What is said in a refusal.
    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The events of a stream; `[DONE]` is a string.
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream; charset=utf-8"), "{self:?}");
        self.body.split("\n\n").filter(|event| !event.is_empty()).map(event).collect()
    }
}

/// The data of an event, whose type is its name where it has one.
fn event(text: &str) -> Value {
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let value: Value = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
    if let Some(name) = text.lines().find_map(|line| line.strip_prefix("event: ")) {
        assert_eq!(value["type"], name);
    }
    value
}

/// Opens a connection and sends a request on it.
pub fn send(url: &str, path: &str, headers: &[(&str, &str)], body: &str) -> BufReader<TcpStream> {
    let authority = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
    let head = format!("POST {path} HTTP/1.1\r\nHost: {authority}\r\n{length}{headers}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Reads an answer until the connection ends; nothing where it ends before the head does.
pub fn receive(mut stream: impl BufRead) -> Option<Reply> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    let mut reply = Reply { status: head.split(' ').nth(1)?.parse().ok()?, head, body: String::new(), is_whole: false };
    let announced = reply.header("content-length").map(|length| length.parse::<usize>().unwrap());
    let (body, is_whole) = announced.map_or_else(|| joined(&bytes), |length| (bytes.clone(), bytes.len() == length));
    (reply.body, reply.is_whole) = (String::from_utf8_lossy(&body).into_owned(), is_whole);
    Some(reply)
}

/// What chunks contain, and whether the last of them came.
fn joined(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap().trim(), 16).unwrap();
        let rest = &bytes[end + 1..];
        body.extend_from_slice(&rest[..length]);
        if length == 0 {
            return (body, true);
        }
        bytes = &rest[length + 2..];
    }
    (body, false)
}

/// The headers that each API wants.
pub const KEYS: [(&str, &str); 3] =
    [("x-api-key", "sk-test"), ("anthropic-version", "2023-06-01"), ("Authorization", "Bearer sk-test")];

pub fn open(modeld: &Modeld, format: ModelApiFormat, body: &Value) -> BufReader<TcpStream> {
    send(&modeld.url(), format.path(), &KEYS, &body.to_string())
}

pub fn ask(modeld: &Modeld, format: ModelApiFormat, body: &Value) -> Reply {
    receive(open(modeld, format, body)).unwrap()
}

/// Asks for a stream, and checks that it came whole.
pub fn stream(modeld: &Modeld, format: ModelApiFormat, body: &Value) -> Vec<Value> {
    let mut body = body.clone();
    body["stream"] = json!(true);
    let reply = ask(modeld, format, &body);
    assert!(reply.status == 200 && reply.is_whole, "{reply:?}");
    reply.events()
}

/// The smallest request in which the user says this.
pub fn saying(format: ModelApiFormat, text: &str) -> Value {
    conversation(format, &json!([{ "role": "user", "content": text }]))
}

/// The smallest request around messages or items.
pub fn conversation(format: ModelApiFormat, entries: &Value) -> Value {
    match format {
        ModelApiFormat::Anthropic => json!({ "model": "m", "max_tokens": 4096, "messages": entries }),
        ModelApiFormat::ChatCompletions => json!({ "model": "m", "messages": entries }),
        ModelApiFormat::Responses => json!({ "model": "m", "input": entries }),
    }
}

/// A tool as each API defines it.
pub fn tool(format: ModelApiFormat, name: &str, schema: &Value) -> Value {
    match format {
        ModelApiFormat::Anthropic => json!({ "name": name, "input_schema": schema }),
        ModelApiFormat::ChatCompletions => {
            json!({ "type": "function", "function": { "name": name, "parameters": schema } })
        }
        ModelApiFormat::Responses => json!({ "type": "function", "name": name, "parameters": schema }),
    }
}

/// The types of events, in order.
pub fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The text that the deltas of a kind come to.
pub fn text(events: &[Value], kind: &str, pointer: &str) -> String {
    let deltas = events.iter().filter(|event| kind.is_empty() || event["type"] == kind);
    deltas.filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}
