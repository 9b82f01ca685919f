//! What must hold of any bytes read as an event stream. The fuzz target and the tests share it.

use std::time::Duration;

use bytes::Bytes;
use wharf_net::{SseEvent, SseParser, SseTooLarge};

/// Larger than what any event of these inputs comes to.
const AMPLE: usize = 1 << 20;
/// How many ways to cut a stream in two are tried; a shorter one is cut everywhere.
const CUTS: usize = 32;

/// All that a parser says of one stream.
#[derive(Debug, PartialEq)]
pub struct Reading {
    pub events: Vec<SseEvent>,
    pub failed: Option<SseTooLarge>,
    pub retry: Option<Duration>,
    pub last_id: Option<String>,
}

/// Panics where something does not hold; says what the stream is otherwise.
pub fn check(stream: &[u8]) -> Reading {
    let reading = read(AMPLE, [stream]);
    assert_eq!(reading, expected(stream), "the parser and the standard's own words agree");
    for limit in [AMPLE, 0, 7, 16] {
        same_in_pieces(limit, stream);
    }
    reading
}

/// Feeds these pieces one after the other, asking for events after each.
pub fn read<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    let mut parser = SseParser::new(limit);
    let (mut events, mut failed, mut length) = (Vec::new(), None, 0);
    for piece in pieces {
        length += piece.len();
        parser.push(Bytes::copy_from_slice(piece));
        for event in parser.by_ref() {
            assert_eq!(failed, None, "nothing follows an error");
            match event {
                Ok(event) => events.push(event),
                Err(error) => failed = Some(error),
            }
        }
    }
    assert_eq!(parser.activity(), length as u64);
    Reading { events, failed, retry: parser.retry(), last_id: parser.last_id().map(str::to_owned) }
}

fn same_in_pieces(limit: usize, stream: &[u8]) {
    let whole = read(limit, [stream]);
    for cut in (0..=stream.len()).step_by(stream.len() / CUTS + 1) {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(read(limit, [head, tail]), whole, "cut at {cut} within {limit}");
    }
    assert_eq!(read(limit, stream.chunks(1)), whole, "byte by byte within {limit}");
}

/// The standard's algorithm word for word: all lines first, then buffers that are appended to.
///
/// Two things differ on purpose: data stays bytes, and an event with an id is one even without data.
fn expected(stream: &[u8]) -> Reading {
    let mut reading = Reading { events: Vec::new(), failed: None, retry: None, last_id: None };
    let (mut data, mut event_type, mut id) = (Vec::new(), String::new(), None::<String>);
    for line in lines(stream) {
        if line.is_empty() {
            if let Some(id) = &id {
                reading.last_id = Some(id.clone()).filter(|id| !id.is_empty());
            }
            if !data.is_empty() || id.is_some() {
                data.pop();
                let event = Some(event_type.clone()).filter(|name| !name.is_empty());
                reading.events.push(SseEvent { event, id: id.clone(), data: data.clone().into() });
            }
            (data, event_type, id) = (Vec::new(), String::new(), None);
            continue;
        }
        let mut halves = line.splitn(2, |&byte| byte == b':');
        let (field, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        let value = if value.first() == Some(&b' ') { &value[1..] } else { value };
        let text = String::from_utf8_lossy(value).into_owned();
        match String::from_utf8_lossy(field).as_ref() {
            "event" => event_type = text,
            "data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            "id" if !text.contains('\0') => id = Some(text),
            "retry" if !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit()) => {
                reading.retry = Some(Duration::from_millis(text.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }
    reading
}

/// The lines that have an end, without it.
fn lines(stream: &[u8]) -> Vec<Vec<u8>> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let (mut lines, mut line, mut at) = (Vec::new(), Vec::new(), 0);
    while at < stream.len() {
        match (stream[at], stream.get(at + 1)) {
            (b'\r', Some(b'\n')) => {
                lines.push(std::mem::take(&mut line));
                at += 1;
            }
            (b'\r' | b'\n', _) => lines.push(std::mem::take(&mut line)),
            (byte, _) => line.push(byte),
        }
        at += 1;
    }
    lines
}
