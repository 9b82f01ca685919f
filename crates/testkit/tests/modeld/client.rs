//! The plainest client there is: one connection per request, everything by hand.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::modeld::{ModelApiFormat, Modeld};

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(10);

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What is said in a refusal.
    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }
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
    let mut body = String::new();
    stream.read_to_string(&mut body).ok()?;
    Some(Reply { status: head.split(' ').nth(1)?.parse().ok()?, body })
}

/// The headers that each API wants.
const KEYS: [(&str, &str); 3] =
    [("x-api-key", "sk-test"), ("anthropic-version", "2023-06-01"), ("Authorization", "Bearer sk-test")];

pub fn ask(modeld: &Modeld, format: ModelApiFormat, body: &Value) -> Reply {
    receive(send(&modeld.url(), format.path(), &KEYS, &body.to_string())).unwrap()
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
