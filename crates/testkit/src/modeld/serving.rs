//! State shared by all connections, and the loop that serves one.

use std::io::{self, BufReader, Write};
use std::sync::Mutex;

use serde_json::Value;

use super::api_error::Refusal;
use super::checks::{self, IncomingModelRequest, ThinkingByCall};
use super::format::ModelApiFormat;
use super::gates::NamedGates;
use super::http;
use super::new_content::NewContent;
use super::prepared_answer::{Turn, fake_id};
use super::request_log::{Ledger, Recorded, lock_ignoring_poison};
use super::script::{Answer, AnswerFailure, Pace, Script};
use super::wire;
use crate::request::Request;
use crate::transport_faults::AcceptedConnection;

/// Body of a garbage response with status 200.
const GARBAGE: &[u8] =
    b"event: \xff\xfe\ndata: {\"type\": \"message_st\n\n<html>Bad Gateway</html>\ndata: [1, 2\n\n\0\0\0";

pub(super) struct Shared {
    script: Mutex<Script>,
    pub ledger: Ledger,
    pub gates: NamedGates,
    thoughts: Mutex<ThinkingByCall>,
}

impl Shared {
    pub fn new(script: Script) -> Shared {
        let (ledger, gates, thoughts) = Default::default();
        Shared { script: Mutex::new(script), ledger, gates, thoughts }
    }

    pub fn add(&self, answer: Answer) {
        lock_ignoring_poison(&self.script).turns.push(answer);
    }

    /// Returns the error the real API would respond with, if any.
    fn refusal(&self, format: ModelApiFormat, request: &Request, body: &Value) -> Option<Refusal> {
        let keyless = lock_ignoring_poison(&self.script).keyless;
        let thoughts = lock_ignoring_poison(&self.thoughts);
        checks::check(&IncomingModelRequest { format, request, body, keyless, thoughts: &thoughts }).err()
    }

    /// Returns the script's response to a request.
    fn answer(&self, format: ModelApiFormat, body: &Value) -> Result<Answer, Refusal> {
        let latest = NewContent::from_request(format, body);
        let mut script = lock_ignoring_poison(&self.script);
        if let Some(rule) = script.rules.iter().find(|rule| latest.matches(&rule.when)) {
            return Ok(rule.answer.clone());
        }
        if script.turns.is_empty() {
            return Err(Refusal::invalid("modeld: the script has no answer left"));
        }
        Ok(script.turns.remove(0))
    }

    /// Prepares a response, and records which of its calls followed thinking.
    fn turn(&self, number: usize, format: ModelApiFormat, answer: &Answer, body: &Value) -> Turn {
        let turn = Turn::new(number, format, answer, body);
        let thought = turn.calls().filter_map(|(id, index)| Some((id.to_owned(), turn.block_id("rs", index?))));
        lock_ignoring_poison(&self.thoughts).extend(thought);
        turn
    }
}

/// Serves one connection until it ends.
pub(super) fn serve_connection(shared: &Shared, guest: AcceptedConnection) {
    let mut stream = BufReader::new(guest);
    while let Some(Ok(request)) = Request::read(&mut stream) {
        stream.get_ref().count_request();
        let answered = respond(shared, stream.get_mut(), &request);
        if answered.is_err() || request.closes_connection() {
            return;
        }
    }
}

/// Answers one request; an error ends the connection.
fn respond(shared: &Shared, guest: &mut AcceptedConnection, request: &Request) -> io::Result<()> {
    let Some(format) = ModelApiFormat::from_path(request.path()) else {
        return write_whole(guest, &http::head(404, &[]), b"");
    };
    let body = request.json();
    let refused = shared.refusal(format, request, &body);
    let answer = refused.map_or_else(|| shared.answer(format, &body), Err);
    let number = shared.ledger.record(Recorded {
        format,
        headers: request.headers.clone(),
        body: body.clone(),
        refusal: answer.as_ref().err().map(|refusal| refusal.message.clone()),
    });
    let exchange = ModelExchange { shared, format, number, body: &body };
    let delivered = match answer {
        Ok(answer) => exchange.deliver(guest, &answer),
        Err(refusal) => exchange.refuse(guest, &refusal, None),
    };
    if delivered.is_err() && guest.is_disconnected() {
        shared.ledger.record_left(number);
    }
    delivered
}

/// A recorded request being answered.
struct ModelExchange<'a> {
    shared: &'a Shared,
    format: ModelApiFormat,
    number: usize,
    body: &'a Value,
}

impl ModelExchange<'_> {
    fn deliver(&self, guest: &mut AcceptedConnection, answer: &Answer) -> io::Result<()> {
        let cut = match &answer.fail {
            Some(AnswerFailure::CutAfter(bytes)) => Some(*bytes),
            Some(AnswerFailure::ErrorEvent) if self.streams() => None,
            Some(fail) => return self.fail(guest, fail, &answer.pace),
            None => None,
        };
        let turn = self.shared.turn(self.number, self.format, answer, self.body);
        let pace = &answer.pace;
        if self.streams() { self.stream(guest, &turn, pace, cut) } else { self.whole(guest, &turn, pace, cut) }
    }

    /// Sends a failure without any of the response's blocks.
    fn fail(&self, guest: &mut AcceptedConnection, fail: &AnswerFailure, pace: &Pace) -> io::Result<()> {
        self.wait_at_gate(guest, pace)?;
        let (status, retry_after) = match fail {
            AnswerFailure::Status(status, retry_after) => (*status, retry_after.as_deref()),
            AnswerFailure::Garbage => return write_whole(guest, &self.head(200, self.kind(), None), GARBAGE),
            AnswerFailure::Hang => {
                guest.wait_for_disconnect();
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            AnswerFailure::ErrorEvent | AnswerFailure::CutAfter(_) if self.format == ModelApiFormat::Anthropic => {
                (529, None)
            }
            AnswerFailure::ErrorEvent | AnswerFailure::CutAfter(_) => (500, None),
        };
        self.refuse(guest, &Refusal::scripted(status), retry_after)
    }

    fn streams(&self) -> bool {
        self.body["stream"] == true
    }

    fn kind(&self) -> &'static str {
        if self.streams() { "text/event-stream; charset=utf-8" } else { "application/json" }
    }

    fn request_id(&self) -> String {
        fake_id("req", self.number, 0)
    }

    fn head(&self, status: u16, kind: &str, retry_after: Option<&str>) -> String {
        let id = self.request_id();
        let fixed = [("Content-Type", kind), (self.format.request_id_header(), id.as_str())];
        let headers: Vec<_> = fixed.into_iter().chain(retry_after.map(|value| ("Retry-After", value))).collect();
        http::head(status, &headers)
    }

    fn refuse(&self, guest: &mut AcceptedConnection, refusal: &Refusal, retry_after: Option<&str>) -> io::Result<()> {
        let head = self.head(refusal.status, "application/json", retry_after);
        let body = refusal.body(self.format, &self.request_id()).to_string();
        write_whole(guest, &head, body.as_bytes())
    }

    fn whole(&self, guest: &mut AcceptedConnection, turn: &Turn, pace: &Pace, cut: Option<usize>) -> io::Result<()> {
        let body = wire::full_message(self.format, turn, self.body).to_string();
        self.wait_at_gate(guest, pace)?;
        let head = format!("{}Content-Length: {}\r\n\r\n", self.head(200, self.kind(), None), body.len());
        guest.write_all(head.as_bytes())?;
        let left = cut.map_or(body.len(), |cut| cut.min(body.len()));
        for piece in body.as_bytes()[..left].chunks(pace.write.unwrap_or(usize::MAX).max(1)) {
            guest.write_all(piece)?;
        }
        if left < body.len() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }

    fn stream(&self, guest: &mut AcceptedConnection, turn: &Turn, pace: &Pace, cut: Option<usize>) -> io::Result<()> {
        let head = format!("{}Transfer-Encoding: chunked\r\n\r\n", self.head(200, self.kind(), None));
        guest.write_all(head.as_bytes())?;
        let events = wire::events(self.format, turn, self.body);
        let after = pace.hold.as_ref().map(|hold| hold.after.min(events.len()));
        let mut left = cut.unwrap_or(usize::MAX);
        for (index, event) in events.iter().enumerate() {
            if after == Some(index) {
                self.wait_at_gate(guest, pace)?;
            }
            write_event(guest, event.text().as_bytes(), pace, &mut left)?;
        }
        if after == Some(events.len()) {
            self.wait_at_gate(guest, pace)?;
        }
        guest.write_all(b"0\r\n\r\n")
    }

    /// Waits at the gate, if any. An error means that the client has disconnected.
    fn wait_at_gate(&self, guest: &AcceptedConnection, pace: &Pace) -> io::Result<()> {
        let passes = |gate: &str| self.shared.gates.pass(gate, || guest.is_disconnected());
        let is_open = pace.hold.as_ref().is_none_or(|hold| passes(&hold.gate));
        if is_open { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

/// Sends an event in writes of the configured size, limited to the remaining bytes.
fn write_event(guest: &mut AcceptedConnection, text: &[u8], pace: &Pace, left: &mut usize) -> io::Result<()> {
    for piece in text.chunks(pace.write.unwrap_or(usize::MAX).max(1)) {
        let allowed = piece.len().min(*left);
        *left -= allowed;
        if allowed > 0 {
            http::write_chunk(guest, &piece[..allowed])?;
        }
        if allowed < piece.len() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
    }
    Ok(())
}

fn write_whole(guest: &mut AcceptedConnection, head: &str, body: &[u8]) -> io::Result<()> {
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    guest.write_all(&[head.as_bytes(), body].concat())
}
