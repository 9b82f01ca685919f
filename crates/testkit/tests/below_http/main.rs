//! The pieces below HTTP, each seen from the other end of a socket.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod connect;
mod heads;
mod http2;
mod ports;
mod process;
mod proxy;
mod tls;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(10);
/// Long enough to say that something does not happen.
const A_WHILE: Duration = Duration::from_millis(200);

fn connect(address: SocketAddr) -> TcpStream {
    try_connect(address).unwrap()
}

fn try_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, SOON)?;
    stream.set_read_timeout(Some(SOON))?;
    Ok(stream)
}

/// How a connection ends on which this side says nothing. A reset may be noticed by the connecting itself.
fn fate(address: SocketAddr) -> Result<Vec<u8>, ErrorKind> {
    try_connect(address).map_err(|error| error.kind()).and_then(|mut stream| rest(&mut stream))
}

/// A JSON-RPC request whose answer repeats `word`.
fn call(word: &str) -> String {
    let params = json!({ "name": "echo", "arguments": { "word": word } });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
}

fn post(body: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Reads one answer by its length; its status and body.
fn read_answer(stream: &mut impl Read) -> (u16, Vec<u8>) {
    let head = read_head(stream);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (status, body)
}

fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Sends a call and checks that its answer is the healthy one.
fn assert_healthy(stream: &mut (impl Read + Write), word: &str) {
    stream.write_all(post(&call(word)).as_bytes()).unwrap();
    let (status, body) = read_answer(stream);
    assert_eq!(status, 200);
    assert_answers(&body, word);
}

fn assert_answers(body: &[u8], word: &str) {
    let answer: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(answer["id"], 7);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({ "word": word }));
}

/// How a stream ends: everything up to FIN, or the error in its place.
fn rest(stream: &mut TcpStream) -> Result<Vec<u8>, ErrorKind> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.kind()),
    }
}

/// Checks that nothing comes for a while and that nobody hangs up either.
fn assert_silent(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(A_WHILE)).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(SOON)).unwrap();
}
