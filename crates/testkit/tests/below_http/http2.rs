//! HTTP/2 servers, met by a client that writes its frames by hand as well.

use std::io::{Read, Write};
use std::net::SocketAddr;

use wharf_testkit::transport_faults::{Endpoint, FaultCount, Http2Fault, TestCa, serve_http2};

use super::tls::{Secured, secure, trusting};
use super::{assert_answers, call, connect};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

struct Client {
    stream: Secured,
}

#[derive(Debug, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Client {
    fn open(address: SocketAddr, authority: &TestCa) -> Client {
        let mut client = Client { stream: secure(connect(address), trusting(authority, "h2")).unwrap() };
        client.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        client.write(SETTINGS, 0, 0, &[]);
        client
    }

    fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        self.stream.write_all(&frame).unwrap();
    }

    /// `:method: POST`, `:scheme: https` and `:path: /` by their place in the static table, then the body.
    fn post(&mut self, stream: u32, body: &str) {
        self.write(HEADERS, 0x4, stream, &[0x83, 0x87, 0x84]);
        self.write(DATA, 0x1, stream, body.as_bytes());
    }

    fn read(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        self.stream.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes(header[5..].try_into().unwrap());
        Some(Frame { kind: header[3], flags: header[4], stream, payload })
    }

    /// The next frame of this kind; none if the connection ends before.
    fn next(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.read()?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    fn assert_answered(&mut self, stream: u32, word: &str) {
        let head = self.next(HEADERS).unwrap();
        assert_eq!((head.stream, head.flags), (stream, 0x4));
        assert!(head.payload.starts_with(b"\0\x07:status\x03200"));
        let data = self.next(DATA).unwrap();
        assert_eq!((data.stream, data.flags), (stream, 0x1));
        assert_answers(&data.payload, word);
    }
}

/// A server with the fault on its first connection, and a client that has posted there.
fn posted(fault: Http2Fault) -> (TestCa, Endpoint, Client) {
    let authority = TestCa::new();
    let server = serve_http2(&authority, fault, FaultCount::First(1)).unwrap();
    let mut client = Client::open(server.address(), &authority);
    client.post(1, &call("first"));
    (authority, server, client)
}

fn assert_healthy_now(server: &Endpoint, authority: &TestCa) {
    let mut client = Client::open(server.address(), authority);
    client.post(1, &call("again"));
    client.assert_answered(1, "again");
}

fn go_away(last_stream: u8) -> Frame {
    Frame { kind: GOAWAY, flags: 0, stream: 0, payload: vec![0, 0, 0, last_stream, 0, 0, 0, 0] }
}

#[test]
fn a_healthy_server_answers_settings_pings_and_calls() {
    let (_authority, server, mut client) = posted(Http2Fault::None);
    assert_eq!(client.next(WINDOW_UPDATE).unwrap().stream, 0);
    client.assert_answered(1, "first");
    client.write(PING, 0, 0, b"12345678");
    let pong = client.next(PING).unwrap();
    assert_eq!((pong.flags, pong.payload.as_slice()), (0x1, &b"12345678"[..]));
    // Longer than the window that a connection begins with.
    let long = "x".repeat(100_000);
    let body = call(&long);
    client.write(HEADERS, 0x4, 3, &[0x83, 0x87, 0x84]);
    for chunk in body.as_bytes().chunks(16_384) {
        client.write(DATA, 0, 3, chunk);
        for stream in [0, 3] {
            let opened = client.next(WINDOW_UPDATE).unwrap();
            assert_eq!((opened.stream, opened.payload), (stream, (chunk.len() as u32).to_be_bytes().to_vec()));
        }
    }
    client.write(DATA, 0x1, 3, &[]);
    client.assert_answered(3, &long);
    assert_eq!((server.connections(), server.requests()), (1, 2));
}

#[test]
fn a_request_without_a_body_is_no_call() {
    let (_authority, server, mut client) = posted(Http2Fault::None);
    client.assert_answered(1, "first");
    client.write(HEADERS, 0x5, 3, &[0x82, 0x87, 0x84]);
    assert!(client.next(HEADERS).unwrap().payload.starts_with(b"\0\x07:status\x03405"));
    assert_eq!(server.requests(), 1);
}

#[test]
fn going_away_first_takes_no_request() {
    let (authority, server, mut client) = posted(Http2Fault::GoAwayFirst);
    assert_eq!(client.next(GOAWAY), Some(go_away(0)));
    assert_eq!(client.next(HEADERS), None);
    assert_eq!(server.requests(), 0);
    assert_healthy_now(&server, &authority);
}

#[test]
fn going_away_after_the_request_says_what_became_of_it() {
    for (fault, last_stream) in [(Http2Fault::GoAwayRefusing, 0), (Http2Fault::GoAwayAbandoning, 1)] {
        let (authority, server, mut client) = posted(fault);
        assert_eq!(client.next(GOAWAY), Some(go_away(last_stream)), "{fault:?}");
        assert_eq!(client.next(HEADERS), None, "{fault:?}");
        assert_eq!(server.requests(), 1, "{fault:?}");
        assert_healthy_now(&server, &authority);
    }
    let (_authority, _server, mut client) = posted(Http2Fault::GoAwayDraining);
    assert_eq!(client.next(GOAWAY), Some(go_away(1)));
    client.assert_answered(1, "first");
    assert_eq!(client.read(), None);
}

#[test]
fn streams_are_reset_one_by_one() {
    for (fault, code) in [(Http2Fault::RefusedStream, 7), (Http2Fault::ResetStream, 8)] {
        let (_authority, _server, mut client) = posted(fault);
        client.post(3, &call("second"));
        for stream in [1, 3] {
            let reset = Frame { kind: RST_STREAM, flags: 0, stream, payload: vec![0, 0, 0, code] };
            assert_eq!(client.next(RST_STREAM), Some(reset), "{fault:?}");
        }
    }
}

#[test]
fn floods_go_on_until_the_client_leaves() {
    let floods = [
        (Http2Fault::ResetFlood, RST_STREAM, 4),
        (Http2Fault::SettingsFlood, SETTINGS, 0),
        (Http2Fault::PingFlood, PING, 8),
        (Http2Fault::ContinuationFlood, CONTINUATION, 10),
        (Http2Fault::EmptyDataFlood, DATA, 0),
    ];
    for (fault, kind, length) in floods {
        let (authority, server, mut client) = posted(fault);
        for _ in 0..10_000 {
            let frame = client.next(kind).unwrap();
            assert_eq!((frame.flags, frame.payload.len()), (0, length), "{fault:?}");
        }
        drop(client);
        assert_healthy_now(&server, &authority);
    }
}

#[test]
fn a_closed_window_is_announced_and_stays_closed() {
    let authority = TestCa::new();
    let server = serve_http2(&authority, Http2Fault::ZeroWindow, FaultCount::Always).unwrap();
    let mut client = Client::open(server.address(), &authority);
    assert_eq!(client.next(SETTINGS).unwrap().payload, [0, 4, 0, 0, 0, 0]);
    client.write(HEADERS, 0x4, 1, &[0x83, 0x87, 0x84]);
    client.write(PING, 0, 0, &[0; 8]);
    // Whatever was going to open the window would have come before the answer to the ping.
    let acknowledged = Frame { kind: SETTINGS, flags: 0x1, stream: 0, payload: Vec::new() };
    assert_eq!(client.read(), Some(acknowledged));
    assert_eq!(client.read().map(|frame| (frame.kind, frame.flags)), Some((PING, 0x1)));
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_silent_server_answers_no_ping_once_it_has_the_request() {
    let (_authority, server, mut client) = posted(Http2Fault::Silent);
    assert_eq!(client.next(WINDOW_UPDATE).unwrap().stream, 0);
    client.write(PING, 0, 0, &[0; 8]);
    client.stream.sock.set_read_timeout(Some(super::A_WHILE)).unwrap();
    assert_eq!(client.read(), None);
    assert_eq!(server.requests(), 1);
}
