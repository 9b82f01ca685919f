//! HTTP/1.1: healthy responses, and response heads that no client should accept (H29).

use std::io::{self, Read, Write};

use serde_json::Value;

use super::FaultCount;
use super::endpoint::{AcceptedConnection, Endpoint};
use super::reply::healthy_reply;

/// Maximum bytes of a request head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Defect of a response head. The body is valid where its bounds are well-defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadFault {
    /// One header of 64 KiB.
    LongHeader,
    /// Ten thousand headers.
    ManyHeaders,
    /// A header line that never ends.
    Endless,
    /// Two `Content-Length` headers with different values.
    TwoLengths,
    /// Both `Transfer-Encoding: chunked` and `Content-Length`, with different ends of the body.
    LengthAndChunks,
    /// Not a status line.
    Garbage,
}

/// Serves responses with this defect; healthy after `times` connections.
pub fn serve(fault: HeadFault, times: FaultCount) -> io::Result<Endpoint> {
    Endpoint::start(
        move |guest| if times.applies_to(guest.number()) { serve_faulty(guest, fault) } else { serve_healthy(guest) },
    )
}

/// Serves a plain connection without faults.
pub(super) fn serve_healthy(mut guest: AcceptedConnection) {
    serve_requests(&mut guest, AcceptedConnection::count_request);
    guest.finish();
}

/// Answers requests until the peer disconnects or sends `Connection: close`. Counts requests with a body.
pub(super) fn serve_requests<S: Read + Write>(stream: &mut S, delivered: impl Fn(&S)) {
    while let Ok(Some(request)) = read_request(stream) {
        if !request.body.is_empty() {
            delivered(stream);
        }
        let last = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if write_reply(stream, &request.body).is_err() || last {
            return;
        }
    }
}

fn serve_faulty(mut guest: AcceptedConnection, fault: HeadFault) {
    let Ok(Some(request)) = read_request(&mut guest) else { return };
    guest.count_request();
    // The client may disconnect at any point, as it should.
    if write_faulty(&mut guest, fault, &healthy_reply(&request.body).body).is_ok() {
        guest.finish();
    }
}

fn write_faulty(stream: &mut impl Write, fault: HeadFault, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = match fault {
        HeadFault::LongHeader => format!("X-Long: {}\r\nContent-Length: {length}\r\n", "a".repeat(64 << 10)),
        HeadFault::ManyHeaders => {
            let many: String = (0..10_000).map(|number| format!("X-{number}: a\r\n")).collect();
            format!("{many}Content-Length: {length}\r\n")
        }
        HeadFault::Endless => return write_endless(stream),
        HeadFault::TwoLengths => format!("Content-Length: {length}\r\nContent-Length: {}\r\n", length - 1),
        HeadFault::LengthAndChunks => {
            let chunked = [format!("{length:x}\r\n").as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
            let head = format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n");
            return write_with(stream, &head, &chunked);
        }
        HeadFault::Garbage => return stream.write_all(b"220 mail.example ESMTP ready\r\n\r\n"),
    };
    write_with(stream, &head, body)
}

fn write_with(stream: &mut impl Write, head: &str, body: &[u8]) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}\r\n")?;
    stream.write_all(body)
}

fn write_endless(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nX-Endless: ")?;
    loop {
        stream.write_all(&[b'a'; 4096])?;
    }
}

/// A complete request: its head as text, and its body of `Content-Length` bytes.
#[derive(Clone, Debug)]
pub struct Http1Request {
    pub head: String,
    pub body: Vec<u8>,
}

impl Http1Request {
    /// Returns the method of the first line.
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// Returns the path of the first line.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns a header, ignoring case in its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Reads one request; returns `None` if the peer closed before it.
pub fn read_request(stream: &mut impl Read) -> io::Result<Option<Http1Request>> {
    let Some(head) = read_head(stream)? else { return Ok(None) };
    let mut request = Http1Request { head, body: Vec::new() };
    let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    stream.take(length).read_to_end(&mut request.body)?;
    if (request.body.len() as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(Some(request)) }
}

/// Reads up to and including the empty line, and no further.
pub(super) fn read_head(stream: &mut impl Read) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

/// Writes a healthy response.
fn write_reply(stream: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let reply = healthy_reply(body);
    let (status, length) = (reply.status, reply.body.len());
    let head =
        format!("HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), &reply.body].concat())?;
    stream.flush()
}
