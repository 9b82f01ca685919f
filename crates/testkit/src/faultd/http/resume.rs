//! Streams that end early and are resumed: `Last-Event-ID` in the handshake era, and its faults.

use super::exchange::Exchange;
use super::{Act, Fault, events, listen};
use crate::faultd::frame;
use crate::faultd::server::locked;

/// The response to a client that resumes a stream.
#[derive(Clone)]
pub enum Replay {
    /// Sends these events, then ends.
    Events(String),
    /// 405: streams cannot be resumed.
    Refused,
    /// A stream that never sends the response.
    Forgotten,
}

pub fn find(name: &str) -> Option<Fault> {
    let act: Act = match name {
        "H17-event-ids" => |exchange, line| {
            let stream = Stream::begin_and_keep(exchange, line);
            exchange.chunk(format!("id: {}.2\ndata: {}", stream.name, &line[..line.len() / 2]));
            exchange.cut();
        },
        "H17-character-ids" => |exchange, line| {
            Stream::begin_and_keep(exchange, line);
            exchange.chunk(events::half_a_character(line));
            exchange.cut();
        },
        "H17-headers-ids" => |exchange, line| {
            Stream::begin_and_keep(exchange, line);
            exchange.cut();
        },
        "H18-ids" | "H20" => |exchange, line| {
            Stream::begin_and_keep(exchange, line);
            exchange.end_events();
        },
        "H20-duplicates" => duplicates,
        "H20-gap" => gap,
        "H20-refused" => |exchange, _| {
            Stream::begin(exchange).keep(exchange, Replay::Refused);
            exchange.cut();
        },
        "H20-ignored" => |exchange, _| {
            Stream::begin(exchange).keep(exchange, Replay::Forgotten);
            exchange.cut();
        },
        _ => return None,
    };
    Some(Fault::spoil(act))
}

/// A stream with event ids, each made of the stream's name, a dot and a number.
struct Stream {
    name: String,
}

impl Stream {
    /// Starts with the priming event, an id without data (2025-11-25, basic/transports).
    fn begin(exchange: &Exchange<'_>) -> Stream {
        let name = format!("stream-{}", exchange.server.number());
        exchange.chunk(format!("id: {name}.1\ndata: \n\n"));
        Stream { name }
    }

    /// Starts the stream, and stores the response for the resumed stream.
    fn begin_and_keep(exchange: &Exchange<'_>, line: &str) -> Stream {
        let stream = Stream::begin(exchange);
        stream.keep(exchange, Replay::Events(stream.event(9, line)));
        stream
    }

    /// Stores the replay. Must be called before the stream ends: the client may reconnect at once.
    fn keep(&self, exchange: &Exchange<'_>, replay: Replay) {
        locked(&exchange.server.replays).insert(self.name.clone(), replay);
    }

    fn event(&self, number: usize, data: &str) -> String {
        format!("id: {}.{number}\ndata: {data}\n\n", self.name)
    }
}

/// Serves a GET with `Last-Event-ID`.
pub fn serve(exchange: &Exchange<'_>, last: &str) {
    let name = last.split('.').next().unwrap_or_default();
    let replay = locked(&exchange.server.replays).get(name).cloned();
    match replay {
        Some(Replay::Events(text)) => {
            exchange.chunk(text);
            exchange.end_events();
        }
        Some(Replay::Refused) => exchange.reply(405, &[("Allow", "POST")], ""),
        Some(Replay::Forgotten) | None => listen::serve_stream(exchange),
    }
}

/// Sends `retry: value`. On a resumable stream the response is available only after reconnecting.
pub fn after_retry(exchange: &Exchange<'_>, line: &str, value: &str) {
    exchange.chunk(format!("retry: {value}\n\n"));
    if exchange.stateless {
        exchange.event(line);
    } else {
        Stream::begin_and_keep(exchange, line);
    }
    exchange.end_events();
}

/// Replays events sent before the cut, and the response twice.
fn duplicates(exchange: &Exchange<'_>, line: &str) {
    let stream = Stream::begin(exchange);
    let heard = [2, 3].map(|number| stream.event(number, &frame::chatter())).concat();
    stream.keep(exchange, Replay::Events(format!("{heard}{}", stream.event(4, line).repeat(2))));
    exchange.chunk(heard);
    exchange.cut();
}

/// Loses the events between the cut and the response.
fn gap(exchange: &Exchange<'_>, line: &str) {
    let stream = Stream::begin_and_keep(exchange, line);
    exchange.chunk(stream.event(2, &frame::chatter()));
    exchange.cut();
}
