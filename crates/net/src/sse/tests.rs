use super::*;

const LIMIT: usize = 1 << 20;

fn event(event: Option<&str>, id: Option<&str>, data: &str) -> SseEvent {
    let data = Bytes::copy_from_slice(data.as_bytes());
    SseEvent { event: event.map(str::to_owned), id: id.map(str::to_owned), data }
}

fn data(text: &str) -> SseEvent {
    event(None, None, text)
}

fn parser_with(pieces: impl IntoIterator<Item = Bytes>) -> SseParser {
    let mut parser = SseParser::new(LIMIT);
    pieces.into_iter().for_each(|piece| parser.push(piece));
    parser
}

/// Returns the events of a stream in one chunk, and the parser after them.
fn read(stream: &[u8]) -> (Vec<SseEvent>, SseParser) {
    let mut parser = parser_with([Bytes::copy_from_slice(stream)]);
    let events = parser.by_ref().map(|event| event.expect("small events")).collect();
    (events, parser)
}

fn check(stream: &[u8], expected: &[SseEvent]) {
    let shown = String::from_utf8_lossy(stream);
    assert_eq!(read(stream).0, expected, "{shown:?}");
    let single = stream.iter().map(|&byte| Bytes::copy_from_slice(&[byte]));
    let events: Vec<SseEvent> = parser_with(single).map(|event| event.expect("small events")).collect();
    assert_eq!(events, expected, "{shown:?} byte by byte");
}

#[test]
fn any_line_ending_works_and_blank_lines_end_events() {
    for stream in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
        check(stream.as_bytes(), &[data("a"), data("b")]);
    }
    check(b"data: a\n\rdata: b\r\n\n", &[data("a"), data("b")]);
    check(b"data: a\r\n\ndata: b\r\r\n", &[data("a"), data("b")]);
    check(b"\n\n\r\r\r\n\r\ndata: a\n\n\n\n", &[data("a")]);
    for unfinished in ["", "data: a", "data: a\n", "data: a\r\n", "data: a\nid: 1\n", ":", "\r"] {
        check(unfinished.as_bytes(), &[]);
    }
    // A lone CR ends the line immediately, without waiting for an LF.
    check(b"data: a\n\r", &[data("a")]);
}

#[test]
fn fields_follow_the_standard() {
    for (stream, expected) in [
        ("data:a\n\n", data("a")),
        ("data: a\n\n", data("a")),
        ("data:  a \n\n", data(" a ")),
        ("data:\ta\n\n", data("\ta")),
        ("data: a: b\n\n", data("a: b")),
        ("data\n\n", data("")),
        ("data:\n\n", data("")),
        ("data: \n\n", data("")),
        ("data\ndata\n\n", data("\n")),
        ("data: a\ndata:b\ndata\ndata: \ndata:c\n\n", data("a\nb\n\n\nc")),
        ("data: a\nDATA: b\n data: c\ndata : d\ndat: e\ndatas: f\n\n", data("a")),
        (": hi\ndata: a\n:\n:data: b\n\n", data("a")),
        ("event: ping\ndata: a\n\n", event(Some("ping"), None, "a")),
        ("event: ping\nevent:pong\ndata: a\n\n", event(Some("pong"), None, "a")),
        ("event: ping\nevent\ndata: a\n\n", data("a")),
        ("id: 1\ndata: a\n\n", event(None, Some("1"), "a")),
        ("id: 1\nid: 2\ndata: a\n\n", event(None, Some("2"), "a")),
        ("id: 1\nid: 2\0\ndata: a\n\n", event(None, Some("1"), "a")),
        ("id: 1\nid\ndata: a\n\n", event(None, Some(""), "a")),
        ("data: ü — 日本\nevent: é\n\n", event(Some("é"), None, "ü — 日本")),
        // A priming event: only an ID.
        ("id: 1\n\n", event(None, Some("1"), "")),
        ("id: 1\ndata:\n\n", event(None, Some("1"), "")),
        ("id: 1\nevent: x\n\n", event(Some("x"), Some("1"), "")),
    ] {
        check(stream.as_bytes(), &[expected]);
    }
    for nothing in ["event: x\n\n", "retry: 5\n\n", ": x\n\n", "foo: x\n\n", "foo\n\n", "id: \0\n\n", "\n"] {
        check(nothing.as_bytes(), &[]);
    }
    // Fields do not carry over to the next event.
    check(b"event: x\nid: 1\n\ndata: a\n\n", &[event(Some("x"), Some("1"), ""), data("a")]);
    check(b"event: x\n\ndata: a\n\n", &[data("a")]);
}

#[test]
fn byte_order_mark_is_skipped_once_at_the_start() {
    check(b"\xef\xbb\xbfdata: a\n\n", &[data("a")]);
    check(b"\xef\xbb\xbf\ndata: a\n\n", &[data("a")]);
    check(b"\xef\xbb\xbf: comment\ndata: a\n\n", &[data("a")]);
    check(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", &[]);
    check(b"\n\xef\xbb\xbfdata: a\n\n", &[]);
    check(b"\xef\xbbdata: a\n\n", &[]);
    check("data: \u{feff}\n\n".as_bytes(), &[data("\u{feff}")]);
}

#[test]
fn invalid_utf8_is_preserved_in_data_only() {
    let (events, _) = read(b"data: \xff\xfe\nid: a\xff\nevent: \xc3\n\n");
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!(event.data, b"\xff\xfe"[..]);
    assert_eq!(event.id.as_deref(), Some("a\u{fffd}"));
    assert_eq!(event.event.as_deref(), Some("\u{fffd}"));
}

#[test]
fn last_numeric_retry_wins() {
    for (stream, expected) in [
        ("", None),
        ("retry: 1500\n", Some(1500)),
        ("retry:0\n", Some(0)),
        ("retry: 10\nretry: 20\n", Some(20)),
        ("retry: 10\n\n\ndata: a\n\n", Some(10)),
        ("retry: 10\nretry: x\nretry: -1\nretry: 1.5\nretry:  7\nretry:\nretry\nretry: 5s\nretry: +5\n", Some(10)),
        ("retry: 10\nretry: \u{663}\n", Some(10)),
        ("retry: 99999999999999999999999999\n", Some(u64::MAX)),
        ("retry: 10", None),
    ] {
        assert_eq!(read(stream.as_bytes()).1.retry(), expected.map(Duration::from_millis), "{stream:?}");
    }
}

#[test]
fn last_id_follows_complete_events() {
    for (stream, expected) in [
        ("data: a\n\n", None),
        ("id: 1\ndata: a\n\n", Some("1")),
        ("id: 1\n\n", Some("1")),
        ("id: 1\n\ndata: b\n\n", Some("1")),
        ("id: 1\n\nid: 2\ndata: b\n", Some("1")),
        ("id: 1\n\nid\n\n", None),
        ("id: 1\n\nid: 2\0\n\n", Some("1")),
    ] {
        assert_eq!(read(stream.as_bytes()).1.last_id(), expected, "{stream:?}");
    }
    // The last ID follows the returned events, not the pushed bytes.
    let mut parser = parser_with([Bytes::from_static(b"id: 1\n\nid: 2\n\n")]);
    for expected in ["1", "2"] {
        parser.next().expect("an event").expect("a small one");
        assert_eq!(parser.last_id(), Some(expected));
    }
}

#[test]
fn comments_count_as_activity() {
    let (events, parser) = read(b": still here\n\n");
    assert_eq!((events.len(), parser.activity()), (0, 14));
}

#[test]
fn a_line_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from(b": hello\nid: 7\ndata: {\"jsonrpc\":\"2.0\"}\n\ndata: second\n\n".to_vec());
    let inside = chunk.as_ptr_range();
    let events: Vec<SseEvent> = parser_with([chunk.clone()]).map(|event| event.expect("small events")).collect();
    assert_eq!(events.len(), 2);
    for event in events {
        assert!(inside.contains(&event.data.as_ptr()), "{event:?}");
    }
    // Nor if other lines of the event came in other chunks.
    let rest = Bytes::from(b"0\ndata: x\n".to_vec());
    let mut parser = parser_with([Bytes::from_static(b"id: 1"), rest.clone(), Bytes::from_static(b"\n")]);
    let event = parser.next().expect("an event").expect("a small one");
    assert_eq!((event.id.as_deref(), event.data.as_ptr()), (Some("10"), rest[8..].as_ptr()));
}

/// Parses a stream with this limit. Returns the number of events, and whether parsing failed.
fn bounded(limit: usize, stream: &str) -> (usize, bool) {
    let verdicts = [stream.len().max(1), 1, 3].map(|size| {
        let mut parser = SseParser::new(limit);
        let (mut events, mut failed) = (0, false);
        for piece in stream.as_bytes().chunks(size) {
            parser.push(Bytes::copy_from_slice(piece));
            for event in parser.by_ref() {
                assert!(!failed, "nothing follows an error");
                match event {
                    Ok(_) => events += 1,
                    Err(error) => failed = error == SseTooLarge { limit },
                }
            }
        }
        (events, failed)
    });
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?} for {stream:?}");
    verdicts[0]
}

#[test]
fn size_limits_are_exact() {
    for (limit, stream, expected) in [
        (10, "data: 1234\n\n", (1, false)),
        (10, "data: 12345\n\n", (0, true)),
        (10, "data: 12345", (0, true)),
        (10, "data: 1234\n\ndata: 12345\n\ndata: 1\n\n", (1, true)),
        // Two lines of data and the line break between them, plus the current line.
        (11, "data: 123\ndata: 12\n\n", (1, false)),
        (10, "data: 123\ndata: 12\n\n", (0, true)),
        (11, "id: 1234567\ndata\n\n", (1, false)),
        (10, "id: 123456\ndata:\n\n", (0, true)),
        (12, "event: 12345\ndata: 1\n\n", (1, false)),
        (11, "event: 1234\nid: 1\ndata: 12\n\n", (0, true)),
        (10, ": 34567890\n: 34567890\n: 34567890\ndata: 1\n\n", (1, false)),
        (10, ": 345678901\ndata: 1\n\n", (0, true)),
        (10, "id: 1\nid: 2\nid: 3\nid: 4\nid: 5\nid: 6\nid: 7\ndata\n\n", (1, false)),
        (0, "\n\n\n", (0, false)),
        (0, "a", (0, true)),
    ] {
        assert_eq!(bounded(limit, stream), expected, "{stream:?} within {limit}");
    }
}

#[test]
fn endless_line_or_event_fails_at_the_limit() {
    for piece in ["x", "data:\n", "data: x\n", ":", "id: 1\ndata: x\n"] {
        let mut parser = SseParser::new(LIMIT);
        let chunk = Bytes::from(piece.repeat(1000));
        let verdict = (0..).find_map(|_| {
            parser.push(chunk.clone());
            assert!(parser.activity() < 16 * LIMIT as u64, "no end to {piece:?}");
            parser.next()
        });
        assert_eq!(verdict, Some(Err(SseTooLarge { limit: LIMIT })), "{piece:?}");
        parser.push(Bytes::from_static(b"\n\ndata: a\n\n"));
        assert_eq!(parser.next(), None, "nothing follows an error");
        assert!(parser.chunks.is_empty() && parser.line.capacity() == 0, "nothing is held after it");
    }
}

#[test]
fn large_streams_take_linear_time() {
    // Each would take hours with quadratic complexity.
    let empty = "\n".repeat(1_000_000) + &"data:\n\n".repeat(1_000_000);
    assert_eq!(read(empty.as_bytes()).0.len(), 1_000_000);
    let lines = "data: x\n".repeat(100_000) + "\n";
    assert_eq!(read(lines.as_bytes()).0[0].data.len(), 199_999);
    let line = format!("data: {}\n\n", "x".repeat(LIMIT - 6));
    let single = line.bytes().map(|byte| Bytes::copy_from_slice(&[byte]));
    let mut parser = SseParser::new(LIMIT);
    let events = single.filter_map(|byte| {
        parser.push(byte);
        parser.next()
    });
    assert_eq!(events.map(|event| event.expect("within the limit").data.len()).sum::<usize>(), LIMIT - 6);
}
