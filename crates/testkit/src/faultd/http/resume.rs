//! Streams that end early and are resumed: `Last-Event-ID` in the handshake era, and its faults.

use super::exchange::FaultExchange;
use super::{HttpFault, HttpFaultAction, events, listen};
use crate::faultd::frame;
use crate::faultd::server::lock_ignoring_poison;

/// The response to a client that resumes a stream.
#[derive(Clone)]
pub enum ResumeReplay {
    /// Sends these events, then ends.
    Events(String),
    /// 405: streams cannot be resumed.
    Refused,
    /// A stream that never sends the response.
    Forgotten,
}

pub fn find(name: &str) -> Option<HttpFault> {
    let act: HttpFaultAction = match name {
        "H17-event-ids" => |exchange, line| {
            let stream = ResumableStream::begin_with_replay(exchange, line);
            exchange.chunk(format!("id: {}.2\ndata: {}", stream.name, &line[..line.len() / 2]));
            exchange.close();
        },
        "H17-character-ids" => |exchange, line| {
            ResumableStream::begin_with_replay(exchange, line);
            exchange.chunk(events::half_a_character(line));
            exchange.close();
        },
        "H17-headers-ids" => |exchange, line| {
            ResumableStream::begin_with_replay(exchange, line);
            exchange.close();
        },
        "H18-ids" | "H20" => |exchange, line| {
            ResumableStream::begin_with_replay(exchange, line);
            exchange.end_events();
        },
        "H20-duplicates" => duplicates,
        "H20-gap" => gap,
        "H20-refused" => |exchange, _| {
            ResumableStream::begin(exchange).store_replay(exchange, ResumeReplay::Refused);
            exchange.close();
        },
        "H20-ignored" => |exchange, _| {
            ResumableStream::begin(exchange).store_replay(exchange, ResumeReplay::Forgotten);
            exchange.close();
        },
        _ => return None,
    };
    Some(HttpFault::modify_response(act))
}

/// A stream with event ids, each made of the stream's name, a dot and a number.
struct ResumableStream {
    name: String,
}

impl ResumableStream {
    /// Starts with the priming event, an id without data (2025-11-25, basic/transports).
    fn begin(exchange: &FaultExchange<'_>) -> ResumableStream {
        let name = format!("stream-{}", exchange.server.next_number());
        exchange.chunk(format!("id: {name}.1\ndata: \n\n"));
        ResumableStream { name }
    }

    /// Starts the stream, and stores the response for the resumed stream.
    fn begin_with_replay(exchange: &FaultExchange<'_>, line: &str) -> ResumableStream {
        let stream = ResumableStream::begin(exchange);
        stream.store_replay(exchange, ResumeReplay::Events(stream.event(9, line)));
        stream
    }

    /// Stores the replay. Must be called before the stream ends: the client may reconnect at once.
    fn store_replay(&self, exchange: &FaultExchange<'_>, replay: ResumeReplay) {
        lock_ignoring_poison(&exchange.server.replays).insert(self.name.clone(), replay);
    }

    fn event(&self, number: usize, data: &str) -> String {
        format!("id: {}.{number}\ndata: {data}\n\n", self.name)
    }
}

/// Serves a GET with `Last-Event-ID`.
pub fn serve(exchange: &FaultExchange<'_>, last: &str) {
    let name = last.split('.').next().unwrap_or_default();
    let replay = lock_ignoring_poison(&exchange.server.replays).get(name).cloned();
    match replay {
        Some(ResumeReplay::Events(text)) => {
            exchange.chunk(text);
            exchange.end_events();
        }
        Some(ResumeReplay::Refused) => exchange.reply(405, &[("Allow", "POST")], ""),
        Some(ResumeReplay::Forgotten) | None => listen::serve_stream(exchange),
    }
}

/// Sends `retry: value`. On a resumable stream the response is available only after reconnecting.
pub fn after_retry(exchange: &FaultExchange<'_>, line: &str, value: &str) {
    exchange.chunk(format!("retry: {value}\n\n"));
    if exchange.stateless {
        exchange.event(line);
    } else {
        ResumableStream::begin_with_replay(exchange, line);
    }
    exchange.end_events();
}

/// Replays events sent before the cut, and the response twice.
fn duplicates(exchange: &FaultExchange<'_>, line: &str) {
    let stream = ResumableStream::begin(exchange);
    let heard = [2, 3].map(|number| stream.event(number, &frame::harmless_notification())).concat();
    stream.store_replay(exchange, ResumeReplay::Events(format!("{heard}{}", stream.event(4, line).repeat(2))));
    exchange.chunk(heard);
    exchange.close();
}

/// Loses the events between the cut and the response.
fn gap(exchange: &FaultExchange<'_>, line: &str) {
    let stream = ResumableStream::begin_with_replay(exchange, line);
    exchange.chunk(stream.event(2, &frame::harmless_notification()));
    exchange.close();
}
