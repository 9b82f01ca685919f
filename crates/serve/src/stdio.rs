//! One client on two pipes: a message per line.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;
use wharf_wire::code;

use crate::message::{ClientMessage, MessageKind, error_reply};
use crate::service::{ClientConnection, Outbox, OutgoingMessage, Service};

/// Maximum length of a line. Longer lines are skipped and rejected.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of bytes waiting for a client that does not read. A single message may be larger.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// Maximum time for requests in progress when the client's input has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time for writing what waits when the client's input has ended.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Line that a server sends to a relay before it leaves, that the relay sends back after its last request, and that the
/// server sends again after its last response. JSON text has no such byte.
pub const LEAVE_LINE: &[u8] = b"\x01";

/// Serves one client of either era until its input ends. Requests in progress have a few seconds to finish then, and are
/// cancelled after that.
///
/// # Errors
///
/// Fails if a pipe fails, or if the client does not read its messages.
pub async fn serve_lines(
    service: &dyn Service,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    serve_relay(service, input, output, std::future::pending()).await
}

/// Serves a client whose messages a relay passes on. When `leaving` resolves, the relay gets the [`LEAVE_LINE`]. It
/// answers with the same line, sends no request after it, and is served until its requests are answered.
///
/// # Errors
///
/// Fails if a pipe fails, or if the client does not read its messages.
pub async fn serve_relay(
    service: &dyn Service,
    mut input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin,
    leaving: impl Future<Output = ()>,
) -> io::Result<()> {
    let lines = Arc::new(LineOutbox::default());
    let mut client = PipeClient { service, out: Arc::clone(&lines), pending: Arc::default(), connection: None };
    let mut writing = pin!(lines.write_lines(output));
    let announcing = async {
        leaving.await;
        lines.announce_leave();
        std::future::pending::<()>().await;
    };
    let served = tokio::select! {
        read = client.serve(&mut input) => Ok(read),
        written = &mut writing => Err(written),
        () = announcing => return Ok(()),
    };
    let read = match served {
        Ok(read) => read,
        Err(written) => {
            client.close();
            return written;
        }
    };
    client.close();
    lines.close();
    // Responses that are ready are still written.
    let written = timeout(FLUSH_TIMEOUT, writing).await.unwrap_or(Ok(()));
    read.and(written)
}

/// A client and its connection, which its first request opens.
struct PipeClient<'a> {
    service: &'a dyn Service,
    out: Arc<LineOutbox>,
    pending: Arc<PendingRequests>,
    connection: Option<PipeConnection>,
}

enum PipeConnection {
    Session(Arc<dyn ClientConnection>),
    Stateless(Arc<dyn ClientConnection>),
}

/// The reason to read no more lines.
enum ReadEnd {
    Input,
    /// A relay sends no more requests.
    Left,
}

impl PipeClient<'_> {
    /// Handles messages until no more requests come and those in progress are answered.
    async fn serve(&mut self, input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
        let pending = Arc::clone(&self.pending);
        if matches!(self.read_lines(input).await?, ReadEnd::Left) {
            // Answers to the server's own requests still come.
            tokio::select! {
                read = self.read_lines(input) => {
                    read?;
                }
                () = pending.wait_until_none() => {
                    self.out.announce_leave();
                    return Ok(());
                }
            }
        }
        let _ = timeout(DRAIN_TIMEOUT, pending.wait_until_none()).await;
        Ok(())
    }

    async fn read_lines(&mut self, input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<ReadEnd> {
        loop {
            match read_line(input, MAX_LINE_BYTES).await? {
                InputLine::End => return Ok(ReadEnd::Input),
                InputLine::Whole(line) if line == LEAVE_LINE && self.out.is_leaving() => return Ok(ReadEnd::Left),
                InputLine::TooLong => {
                    let complaint = format!("a line may have {MAX_LINE_BYTES} bytes at most");
                    self.out.send(error_reply(&Value::Null, code::INVALID_REQUEST, &complaint));
                }
                InputLine::Whole(line) if line.trim_ascii().is_empty() => {}
                InputLine::Whole(line) => match ClientMessage::parse(line) {
                    Ok(message) => self.receive(message),
                    Err(reply) => self.out.send(reply),
                },
            }
        }
    }

    fn receive(&mut self, message: ClientMessage) {
        match &self.connection {
            // The reply has been sent.
            Some(PipeConnection::Stateless(connection)) if !self.admit(&**connection, &message) => {}
            Some(PipeConnection::Session(connection) | PipeConnection::Stateless(connection)) => {
                let out = self.message_outbox(&message);
                connection.receive(message, out);
            }
            None if message.kind() == MessageKind::Request => self.open(message),
            None => {}
        }
    }

    /// Answers a request before the era is known. The first one that is valid decides it.
    fn open(&mut self, message: ClientMessage) {
        let is_handshake = message.declared_version().is_none() && message.method() != "server/discover";
        let opened = match is_handshake {
            true => self.service.open_session(),
            false => self.service.open_request(&http::HeaderMap::new()),
        };
        let Some(connection) = opened else {
            let complaint = "this revision of the protocol is not supported";
            return self.out.send(error_reply(&message.id(), code::INVALID_REQUEST, complaint));
        };
        if !is_handshake {
            if self.admit(&*connection, &message) {
                let out = self.message_outbox(&message);
                connection.receive(message, out);
                self.connection = Some(PipeConnection::Stateless(connection));
            }
            return;
        }
        connection.receive(message, self.outbox());
        if connection.revision().is_none() || connection.attach(self.outbox()).is_err() {
            return connection.close();
        }
        self.connection = Some(PipeConnection::Session(connection));
    }

    /// Checks a stateless request, and answers one that is refused.
    fn admit(&self, connection: &dyn ClientConnection, message: &ClientMessage) -> bool {
        let checked = if message.kind() == MessageKind::Request { connection.admit(message) } else { Ok(()) };
        checked.map_err(|reply| self.out.send(reply)).is_ok()
    }

    /// Returns the outbox for the answer to a message. A subscription is answered when the client ends, so nothing waits
    /// for it.
    fn message_outbox(&self, message: &ClientMessage) -> Arc<dyn Outbox> {
        match message.has_request() && message.method() != "subscriptions/listen" {
            true => PendingOutbox::open(&self.out, &self.pending),
            false => self.outbox(),
        }
    }

    fn outbox(&self) -> Arc<dyn Outbox> {
        Arc::clone(&self.out) as _
    }

    fn close(&self) {
        if let Some(PipeConnection::Session(connection) | PipeConnection::Stateless(connection)) = &self.connection {
            connection.cancel_pending();
            connection.close();
        }
    }
}

/// Number of requests that are being answered.
#[derive(Default)]
struct PendingRequests {
    count: AtomicUsize,
    answered: Notify,
}

impl PendingRequests {
    async fn wait_until_none(&self) {
        while self.count.load(Ordering::Acquire) > 0 {
            self.answered.notified().await;
        }
    }
}

/// Outbox of one request or batch, which ends with its response, or without one when the outbox is dropped.
struct PendingOutbox {
    lines: Arc<LineOutbox>,
    pending: Arc<PendingRequests>,
    is_answered: AtomicBool,
}

impl PendingOutbox {
    fn open(lines: &Arc<LineOutbox>, pending: &Arc<PendingRequests>) -> Arc<dyn Outbox> {
        pending.count.fetch_add(1, Ordering::AcqRel);
        let (lines, pending) = (Arc::clone(lines), Arc::clone(pending));
        Arc::new(Self { lines, pending, is_answered: AtomicBool::new(false) })
    }

    fn end(&self) {
        if !self.is_answered.swap(true, Ordering::AcqRel) {
            self.pending.count.fetch_sub(1, Ordering::AcqRel);
            self.pending.answered.notify_one();
        }
    }
}

impl Outbox for PendingOutbox {
    fn send(&self, message: OutgoingMessage) {
        let is_response = message.is_response;
        self.lines.send(message);
        if is_response {
            self.end();
        }
    }

    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        Some(Arc::clone(&self.lines) as _)
    }
}

impl Drop for PendingOutbox {
    fn drop(&mut self) {
        self.end();
    }
}

/// Messages that wait to be written.
#[derive(Default)]
struct LineOutbox {
    state: Mutex<LineOutboxState>,
    added: Notify,
    /// Signals that too much waits.
    full: Notify,
}

#[derive(Default)]
struct LineOutboxState {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    is_closed: bool,
    is_leaving: bool,
}

impl LineOutbox {
    /// Sends the [`LEAVE_LINE`].
    fn announce_leave(&self) {
        self.state().is_leaving = true;
        self.send(OutgoingMessage { text: Bytes::from_static(LEAVE_LINE), is_response: false, error_code: None });
    }

    /// Reports whether the [`LEAVE_LINE`] has been sent.
    fn is_leaving(&self) -> bool {
        self.state().is_leaving
    }

    fn state(&self) -> MutexGuard<'_, LineOutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the writing once everything that waits is written.
    fn close(&self) {
        self.state().is_closed = true;
        self.added.notify_one();
    }

    /// Writes messages until the outbox is closed, or the client fails to read them.
    async fn write_lines(&self, output: impl AsyncWrite + Unpin) -> io::Result<()> {
        tokio::select! {
            failed = self.write_waiting(output) => failed,
            () = self.full.notified() => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its messages"))
            }
        }
    }

    async fn write_waiting(&self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        loop {
            let (batch, is_closed) = {
                let mut state = self.state();
                state.bytes = 0;
                (std::mem::take(&mut state.waiting), state.is_closed)
            };
            if batch.is_empty() {
                if is_closed {
                    return Ok(());
                }
                self.added.notified().await;
                continue;
            }
            for text in batch {
                output.write_all(&text).await?;
                output.write_all(b"\n").await?;
            }
            output.flush().await?;
        }
    }
}

impl Outbox for LineOutbox {
    fn send(&self, message: OutgoingMessage) {
        let mut state = self.state();
        if state.is_closed || message.text.is_empty() {
            return;
        }
        if !state.waiting.is_empty() && state.bytes + message.text.len() > MAX_WAITING_BYTES {
            return self.full.notify_one();
        }
        state.bytes += message.text.len();
        state.waiting.push_back(message.text);
        drop(state);
        self.added.notify_one();
    }
}

#[derive(Debug, PartialEq)]
enum InputLine {
    /// A line without its line break.
    Whole(Bytes),
    /// A line skipped because of its length.
    TooLong,
    End,
}

/// Reads a line without buffering more than `longest` bytes of it.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), longest: usize) -> io::Result<InputLine> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let read = input.fill_buf().await?;
        let is_end = read.is_empty();
        let newline = memchr(b'\n', read);
        let part = &read[..newline.unwrap_or(read.len())];
        is_too_long |= line.len() + part.len() > longest;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(newline.is_some());
        input.consume(used);
        match (is_end, newline) {
            (false, None) => {}
            _ if is_too_long => return Ok(InputLine::TooLong),
            (true, _) if line.is_empty() => return Ok(InputLine::End),
            _ => return Ok(InputLine::Whole(line.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn check(input: &str, expected: &[InputLine]) {
        // A tiny buffer makes lines span several reads.
        let mut reader = BufReader::with_capacity(3, input.as_bytes());
        for line in expected.iter().chain([&InputLine::End, &InputLine::End]) {
            assert_eq!(read_line(&mut reader, 5).await.unwrap(), *line, "{input:?}");
        }
    }

    #[tokio::test]
    async fn overlong_lines_are_reported() {
        let whole = |text: &'static str| InputLine::Whole(Bytes::from_static(text.as_bytes()));
        check("", &[]).await;
        check("a\nb", &[whole("a"), whole("b")]).await;
        check("\n\n", &[whole(""), whole("")]).await;
        check("12345\n123456\n1\n", &[whole("12345"), InputLine::TooLong, whole("1")]).await;
        check("123456789012345", &[InputLine::TooLong]).await;
    }

    #[tokio::test]
    async fn client_that_does_not_read_is_cut_off() {
        let lines = LineOutbox::default();
        let (output, _unread) = tokio::io::duplex(16);
        let large = OutgoingMessage::unsolicited(format!("\"{}\"", "x".repeat(MAX_WAITING_BYTES - 2)));
        let send = async {
            for _ in 0..3 {
                lines.send(large.clone());
                tokio::task::yield_now().await;
            }
        };
        let (ended, ()) = tokio::join!(lines.write_lines(output), send);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
