//! One request and its response: complete, as an event stream, or byte by byte for faults.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;

use super::server::HttpFaultServer;
use crate::faultd::frame::ClientMessage;
use crate::faultd::healthy::id_text;
use crate::faultd::options::{FaultOptions, MODERN};
use crate::faultd::request_context::RequestServer;
use crate::request::Request;

/// Polling interval of waits.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub struct FaultExchange<'a> {
    pub server: &'a Arc<HttpFaultServer>,
    pub request: &'a Request,
    /// The posted message; an empty response for a request without a body.
    pub message: ClientMessage,
    pub stateless: bool,
    stream: &'a TcpStream,
    /// Headers of every response to this request.
    extra: RefCell<String>,
    /// Set once the event stream has started.
    streaming: Cell<bool>,
    over: Cell<bool>,
    left: Cell<bool>,
}

impl<'a> FaultExchange<'a> {
    pub fn new(server: &'a Arc<HttpFaultServer>, request: &'a Request, stream: &'a TcpStream) -> FaultExchange<'a> {
        let message = ClientMessage::parse(&request.body);
        let message =
            message.unwrap_or(ClientMessage { id: None, method: String::new(), params: Value::Null, error: None });
        let version = message.meta("io.modelcontextprotocol/protocolVersion");
        FaultExchange {
            server,
            request,
            stateless: version.is_some() || request.header("mcp-protocol-version") == Some(MODERN),
            message,
            stream,
            extra: RefCell::default(),
            streaming: Cell::new(false),
            over: Cell::new(false),
            left: Cell::new(false),
        }
    }

    /// Reports whether the connection cannot serve another request.
    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Adds a header to the response.
    pub fn add_header(&self, name: &str, value: &str) {
        write!(self.extra.borrow_mut(), "{name}: {value}\r\n").ok();
    }

    /// Sends raw bytes. Returns false once a write fails.
    pub fn send_bytes(&self, bytes: &[u8]) -> bool {
        let mut stream = self.stream;
        let sent = !self.is_over() && stream.write_all(bytes).is_ok();
        if !sent {
            self.record_disconnect();
        }
        sent
    }

    /// Formats the status line and headers, without the terminating empty line.
    pub fn head(&self, status: u16, headers: &[(&str, &str)]) -> String {
        let mut head = format!("HTTP/1.1 {status} {}\r\n{}", reason(status), self.extra.borrow());
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").ok();
        }
        head
    }

    /// Sends a complete response.
    pub fn reply(&self, status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let mut bytes = format!("{}{length}\r\n", self.head(status, headers)).into_bytes();
        bytes.extend_from_slice(body);
        self.send_bytes(&bytes);
    }

    pub fn json(&self, status: u16, line: impl AsRef<[u8]>) {
        self.reply(status, &[("Content-Type", "application/json")], line);
    }

    /// Sends the healthy response: as the end of an open stream, or in the form given by `--answers`.
    pub fn deliver(&self, status: u16, line: &str) {
        if self.streaming.get() || (status == 200 && self.server.options.events) {
            self.event(line);
            self.end_events();
        } else {
            self.json(status, line);
        }
    }

    /// Starts the event stream, unless already started.
    pub fn begin_events(&self) {
        if !self.streaming.replace(true) {
            let headers = [
                ("Content-Type", "text/event-stream"),
                ("Cache-Control", "no-cache"),
                ("Transfer-Encoding", "chunked"),
            ];
            self.send_bytes(format!("{}\r\n", self.head(200, &headers)).as_bytes());
        }
    }

    /// Sends one message as an event.
    pub fn event(&self, data: &str) -> bool {
        self.chunk(format!("event: message\ndata: {data}\n\n"))
    }

    /// Sends bytes as a chunk of the stream, and starts the stream if needed.
    pub fn chunk(&self, bytes: impl AsRef<[u8]>) -> bool {
        self.begin_events();
        let bytes = bytes.as_ref();
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        self.send_bytes(&framed)
    }

    pub fn end_events(&self) {
        self.begin_events();
        self.send_bytes(b"0\r\n\r\n");
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.over.set(true);
        self.stream.shutdown(Shutdown::Both).ok();
    }

    /// Closes the connection with RST; it takes effect when the last handle is dropped.
    pub fn reset(&self) {
        self.over.set(true);
        set_socket_linger(self.stream, Some(Duration::ZERO)).ok();
    }

    /// Waits until the client disconnects.
    pub fn wait_for_disconnect(&self) {
        while !self.disconnects_within(Duration::from_secs(1)) {}
    }

    /// Waits up to `time`. Returns true as soon as the client has closed the connection, even with unread requests.
    pub fn disconnects_within(&self, time: Duration) -> bool {
        let timeout = Timespec::try_from(time).unwrap_or_default();
        let mut watched = [PollFd::new(self.stream, PollFlags::RDHUP)];
        let gone = self.left.get() || poll(&mut watched, Some(&timeout)).is_ok_and(|ready| ready > 0);
        if gone {
            self.record_disconnect();
        }
        gone
    }

    /// Records once that the client disconnected before it had the complete response.
    fn record_disconnect(&self) {
        if !self.is_over() && !self.left.replace(true) {
            self.server.options.record(&format!("closed {}", id_text(&self.message.id())));
        }
        self.over.set(true);
    }
}

impl RequestServer for FaultExchange<'_> {
    fn options(&self) -> &FaultOptions {
        &self.server.options
    }

    fn is_stateless(&self) -> bool {
        self.stateless
    }

    fn notify(&self, line: String) {
        self.event(&line);
    }

    /// In the stateless era, disconnecting cancels the request (2026-07-28, basic/transports); in earlier revisions it
    /// does not.
    fn cancelled_within(&self, id: &Value, time: Duration) -> bool {
        let since = Instant::now();
        while let Some(left) = time.checked_sub(since.elapsed()) {
            let gone = self.disconnects_within(left.min(POLL_INTERVAL));
            if (gone && self.stateless) || self.server.is_cancelled(id) {
                return true;
            }
            if gone {
                std::thread::sleep(left.min(POLL_INTERVAL));
            }
        }
        false
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Odd",
    }
}
