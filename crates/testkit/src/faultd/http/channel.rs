//! HTTP+SSE of 2024-11-05: one stream per client with all responses, and a POST endpoint.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::FaultRepeat;
use super::exchange::FaultExchange;
use super::server::HttpFaultServer;
use super::sse_fault::SseFault;
use super::streamable::reply_not_found;
use crate::faultd::frame::{self, ClientMessage};
use crate::faultd::healthy::{self, adapt_to_era, execute, initialize_result};
use crate::faultd::options::FaultOptions;
use crate::faultd::request_context::RequestServer;
use crate::faultd::server::lock_ignoring_poison;

/// Polling interval of waits.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Sender to a client's stream.
pub type SseChannel = Sender<SsePiece>;

pub enum SsePiece {
    Text(String),
    /// Closes the connection.
    Cut,
}

pub fn serve(exchange: &FaultExchange<'_>) {
    let request = exchange.request;
    match (request.method.as_str(), request.path(), request.query("sessionId")) {
        ("GET", "/sse", None) => {
            let last = request.header("last-event-id").unwrap_or("-");
            exchange.server.options.record(&format!("get {last} -"));
            open(exchange);
        }
        ("POST", "/message" | "/sse", Some(session)) => post(exchange, session),
        _ => reply_not_found(exchange),
    }
}

/// Serves a client's stream until it disconnects.
fn open(exchange: &FaultExchange<'_>) {
    let server = exchange.server;
    let flaw = server.sse_fault();
    if matches!(flaw, Some(SseFault::NoHeaders)) {
        return exchange.wait_for_disconnect();
    }
    let session = server.begin_session("2024-11-05");
    let (sender, pieces) = mpsc::channel();
    lock_ignoring_poison(&server.channels).insert(session.clone(), sender);
    // A late response of the dropped stream is sent here. Take it before the client can post to this stream, or a
    // response dropped from this stream would be sent on it too.
    let late = lock_ignoring_poison(&server.notes).remove("late");
    exchange.begin_events();
    for endpoint in SseFault::endpoints(flaw, server, &session) {
        exchange.chunk(format!("event: endpoint\ndata: {endpoint}\n\n"));
    }
    if let Some(late) = late {
        exchange.event(&late);
    }
    relay(exchange, &pieces);
    lock_ignoring_poison(&server.channels).remove(&session);
}

fn relay(exchange: &FaultExchange<'_>, pieces: &Receiver<SsePiece>) {
    while !exchange.disconnects_within(Duration::ZERO) {
        match pieces.recv_timeout(POLL_INTERVAL) {
            Ok(SsePiece::Text(text)) => {
                exchange.chunk(text);
            }
            Ok(SsePiece::Cut) | Err(RecvTimeoutError::Disconnected) => return exchange.close(),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn post(exchange: &FaultExchange<'_>, session: &str) {
    let server = exchange.server;
    let method = exchange.message.method.as_str();
    server.options.record(&format!("post {} {session}", if method.is_empty() { "reply" } else { method }));
    let (Some(channel), Some(message)) =
        (lock_ignoring_poison(&server.channels).get(session).cloned(), ClientMessage::parse(&exchange.request.body))
    else {
        return exchange.reply(404, &[], "Session not found");
    };
    let letter = SseRequest { server: Arc::clone(server), message, channel };
    healthy::record(&letter, &letter.message);
    if letter.message.is_request() {
        check_opened(server, session, &letter.message);
        receive(exchange, letter);
    } else {
        accept(server, session, &letter.message);
        exchange.reply(202, &[], "Accepted");
    }
}

fn check_opened(server: &HttpFaultServer, session: &str, message: &ClientMessage) {
    let open = lock_ignoring_poison(&server.sessions).get(session).is_some_and(|session| session.open);
    if !open && !message.is_method("initialize") && !message.is_method("ping") {
        server.options.record(&format!("violation {} before notifications/initialized", message.method));
    }
}

fn accept(server: &HttpFaultServer, session: &str, message: &ClientMessage) {
    match message.method.as_str() {
        "notifications/cancelled" => server.cancel(&message.params["requestId"]),
        "notifications/initialized" => {
            if let Some(session) = lock_ignoring_poison(&server.sessions).get_mut(session) {
                session.open = true;
            }
        }
        _ => {}
    }
}

/// Handles a request. The response is sent on the stream, unless a flaw changes that.
fn receive(exchange: &FaultExchange<'_>, letter: SseRequest) {
    let server = exchange.server;
    let due =
        server.sse_fault().is_some_and(SseFault::affects_request) && server.is_due(&letter.message, FaultRepeat::Once);
    let flaw = server.sse_fault().filter(|_| due && server.first_time());
    match flaw {
        Some(SseFault::PostFails(status)) => return exchange.reply(status, &[], "not now"),
        Some(SseFault::PostCut) => return exchange.close(),
        Some(SseFault::AnswerInBody { both }) => {
            let line = letter.line().unwrap_or_default();
            exchange.json(200, &line);
            if both {
                letter.event(&line);
            }
            return;
        }
        _ => exchange.reply(202, &[], "Accepted"),
    }
    thread::spawn(move || letter.answer(flaw));
}

/// An accepted request, and the stream for its response.
struct SseRequest {
    server: Arc<HttpFaultServer>,
    message: ClientMessage,
    channel: SseChannel,
}

impl SseRequest {
    fn answer(&self, flaw: Option<SseFault>) {
        let Some(line) = self.line() else { return };
        match flaw {
            Some(SseFault::NoAnswer) => {}
            Some(SseFault::Drops) => {
                lock_ignoring_poison(&self.server.notes).insert("late".to_owned(), line);
                self.channel.send(SsePiece::Cut).ok();
            }
            Some(SseFault::Events(spelled)) => self.text(spelled(&line)),
            Some(SseFault::Pings) => self.ping_first(&line),
            _ => {
                // Record first: the next request may arrive before `event` returns.
                self.server.record_delivery(&self.message);
                self.event(&line);
            }
        }
    }

    /// Returns the healthy response; `None` if the request was cancelled meanwhile.
    fn line(&self) -> Option<String> {
        let message = &self.message;
        let outcome = match message.method.as_str() {
            "initialize" => Ok(initialize_result(self.server.options.era, message)),
            "ping" => Ok(json!({})),
            "server/discover" => Err(healthy::method_not_found(message)),
            _ => execute(self, message)?,
        };
        Some(match outcome {
            Ok(body) => frame::result(&message.id(), &adapt_to_era(body, false)),
            Err(refusal) => frame::error(&message.id(), &refusal),
        })
    }

    /// Sends only comments for `--count` (40) seconds.
    fn ping_first(&self, line: &str) {
        for _ in 0..self.server.options.count.unwrap_or(40) {
            if self.cancelled_within(&self.message.id(), self.server.options.delay(1000)) {
                return;
            }
            self.text(": ping\n\n".to_owned());
        }
        self.event(line);
    }

    fn event(&self, line: &str) {
        self.text(format!("event: message\ndata: {line}\n\n"));
    }

    fn text(&self, text: String) {
        self.channel.send(SsePiece::Text(text)).ok();
    }
}

impl RequestServer for SseRequest {
    fn options(&self) -> &FaultOptions {
        &self.server.options
    }

    fn is_stateless(&self) -> bool {
        false
    }

    fn notify(&self, line: String) {
        self.event(&line);
    }

    fn cancelled_within(&self, id: &Value, time: Duration) -> bool {
        let since = Instant::now();
        while let Some(left) = time.checked_sub(since.elapsed()) {
            if self.server.is_cancelled(id) {
                return true;
            }
            thread::sleep(left.min(POLL_INTERVAL));
        }
        false
    }
}
