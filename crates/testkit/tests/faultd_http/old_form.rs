//! HTTP+SSE of 2024-11-05.

use serde_json::{Value, json};
use wharf_testkit::http_cases::{Form, ServerEra};

use crate::peer::{Fixture, Wire, call, messages, request};

const OLDEST: ServerEra = ServerEra::Revision("2024-11-05");

/// A stream, and a connection to post on.
struct Peer {
    stream: Wire,
    out: Wire,
    endpoint: String,
}

impl Peer {
    fn open(server: &Fixture) -> Peer {
        let mut stream = server.connect();
        stream.send("GET", "/sse", "Accept: text/event-stream\r\n", "");
        assert_eq!(stream.head().status, 200);
        let event = stream.text();
        assert!(event.starts_with("event: endpoint\n"), "{event}");
        Peer { stream, out: server.connect(), endpoint: messages(&event).remove(0) }
    }

    /// Opens, and makes the opening.
    fn ready(server: &Fixture) -> Peer {
        let mut peer = Peer::open(server);
        let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
        assert_eq!(peer.post(&request(OLDEST, 1, "initialize", params)).0, 202);
        assert!(peer.stream.text().contains("\"protocolVersion\":\"2024-11-05\""));
        assert_eq!(peer.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).0, 202);
        peer
    }

    fn post(&mut self, message: &Value) -> (u16, String) {
        self.out.send("POST", &self.endpoint, "Content-Type: application/json\r\n", &message.to_string());
        let (head, body) = self.out.receive();
        (head.status, body)
    }
}

fn note(id: u64) -> Value {
    call(OLDEST, id, "note", json!({ "nonce": format!("n-{id}") }))
}

#[test]
fn answers_arrive_on_the_stream() {
    let server = Fixture::start(Form::Sse, OLDEST, &["ok"]);
    let mut peer = Peer::ready(&server);
    assert_eq!(peer.post(&note(2)).0, 202);
    assert!(peer.stream.text().contains("noted n-2"));
    peer.out.send("POST", "/sse", "", "{}");
    assert_eq!(peer.out.receive().0.status, 404);
    server.end();
}

#[test]
fn endpoints_are_spelled_as_the_case_says() {
    for (case, expected) in [
        ("L02", "http://127.0.0.1:"),
        ("L02-relative", "//127.0.0.1:"),
        ("L03-relative", "message?sessionId=session-1"),
        ("L03-query", "?sessionId=session-1"),
    ] {
        let server = Fixture::start(Form::Sse, OLDEST, &[case]);
        let endpoint = Peer::open(&server).endpoint;
        assert!(endpoint.starts_with(expected), "{case}: {endpoint}");
        server.end();
    }
}

#[test]
fn a_second_endpoint_follows_the_first() {
    let server = Fixture::start(Form::Sse, OLDEST, &["L04"]);
    let mut peer = Peer::open(&server);
    assert!(peer.endpoint.starts_with("/message"));
    assert!(peer.stream.text().contains("event: endpoint\ndata: /nowhere"));
    server.end();
}

#[test]
fn a_post_that_fails_leaves_the_stream_alone() {
    let server = Fixture::start(Form::Sse, OLDEST, &["L06-500"]);
    let mut peer = Peer::ready(&server);
    assert_eq!(peer.post(&note(2)).0, 500);
    assert_eq!(peer.post(&note(3)).0, 202);
    assert!(peer.stream.text().contains("noted n-3"));
    assert_eq!((server.ledger().call_count("n-2"), server.ledger().effect_count("n-2")), (1, 0));
    server.end();
}

#[test]
fn a_dropped_stream_s_answer_comes_on_the_next() {
    let server = Fixture::start(Form::Sse, OLDEST, &["L07"]);
    let mut peer = Peer::ready(&server);
    assert_eq!(peer.post(&note(2)).0, 202);
    assert!(peer.stream.rest().is_empty());
    let mut next = Peer::open(&server);
    assert_ne!(next.endpoint, peer.endpoint);
    assert!(next.stream.text().contains("noted n-2"));
    assert_eq!(peer.post(&note(3)).0, 404);
    server.end();
}

#[test]
fn an_answer_in_the_body_may_be_all_there_is() {
    let server = Fixture::start(Form::Sse, OLDEST, &["L08"]);
    let mut peer = Peer::ready(&server);
    let (status, body) = peer.post(&note(2));
    assert!(status == 200 && body.contains("noted n-2"), "{status} {body}");
    peer.post(&note(3));
    assert!(peer.stream.text().contains("noted n-3"));
    server.end();
}
