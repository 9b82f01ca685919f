//! A dozen faults of Streamable HTTP, seen on the wire.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};
use wharf_testkit::http_cases::{CASES, Form, ServerEra};

use crate::peer::{Fixture, Wire, call, messages, request};

/// A server with a fault, and a connection on which the call that meets it has been made.
fn struck(era: ServerEra, args: &[&str]) -> (Fixture, Wire) {
    let server = Fixture::start(Form::Http, era, args);
    let mut wire = server.open();
    wire.post(era, &note(era, 2));
    (server, wire)
}

fn note(era: ServerEra, id: u64) -> Value {
    call(era, id, "note", json!({ "nonce": format!("n-{id}") }))
}

#[test]
fn a_request_is_refused_until_it_is_authorized() {
    let (server, mut wire) = struck(ServerEra::Modern, &["H04-challenge"]);
    let (head, _) = wire.receive();
    assert_eq!(head.status, 401);
    assert!(head.header("www-authenticate").unwrap().starts_with("Bearer "));
    wire.post_with(server.era, "Authorization: Bearer let-me-in\r\n", &note(server.era, 2));
    assert!(wire.receive().1.contains("noted n-2"));
    assert!(server.records("authorization Bearer let-me-in") && server.records("refused tools/call n-2"));
    assert_eq!((server.ledger().call_count("n-2"), server.ledger().effect_count("n-2")), (1, 1));
    server.end();
}

#[test]
fn a_forgotten_session_is_not_proof_of_anything() {
    let (server, mut wire) = struck(ServerEra::Legacy, &["H07-session"]);
    assert_eq!(wire.receive().0.status, 404);
    wire.post(server.era, &note(server.era, 3));
    assert_eq!(wire.receive().0.status, 404);
    assert_eq!((server.ledger().call_count("n-2"), server.ledger().effect_count("n-2")), (1, 0));
    server.end();
}

#[test]
fn a_busy_server_says_when_to_come_again_and_is_healthy_then() {
    for (case, status, after, calls) in [("H10-429-zero", 429, "0", 0), ("H10-503-huge", 503, "1000000000", 1)] {
        let (server, mut wire) = struck(ServerEra::Modern, &[case]);
        let (head, _) = wire.receive();
        assert_eq!((head.status, head.header("retry-after")), (status, Some(after)));
        assert_eq!(server.ledger().call_count("n-2"), calls);
        wire.post(server.era, &note(server.era, 3));
        assert!(wire.receive().1.contains("noted n-3"));
        server.end();
    }
}

#[test]
fn the_phase_says_which_request_is_struck() {
    for (phase, first, call, next) in
        [("before", 502, 200, 200), ("ready", 200, 502, 200), ("during", 200, 502, 200), ("after", 200, 200, 502)]
    {
        let era = ServerEra::Modern;
        let server = Fixture::start(Form::Http, era, &["H11-502", "--phase", phase]);
        let mut wire = server.connect();
        let requests = [request(era, 1, "server/discover", json!({})), note(era, 2), note(era, 3)];
        let found = requests.map(|request| {
            wire.post(era, &request);
            wire.receive().0.status
        });
        assert_eq!(found, [first, call, next], "{phase}");
        server.end();
    }
}

#[test]
fn lengths_and_chunks_are_broken_as_asked() {
    for (case, expected) in [
        ("H14-long", "noted n-2"),
        ("H14-crlf", "XX0\r\n\r\n"),
        ("H14-overflow", "\r\nfffffffffffffffff\r\n"),
        ("H29-lengths", "\r\nContent-Length: 3\r\n"),
        ("H29-both", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ("H29-many", "X-Many-9999: 9999\r\n"),
    ] {
        let (server, mut wire) = struck(ServerEra::Legacy, &[case]);
        let text = String::from_utf8(wire.rest()).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains(expected), "{case}: {text}");
        assert_eq!(server.ledger().effect_count("n-2"), 1);
        server.end();
    }
}

#[test]
fn a_stream_is_cut_within_a_character() {
    let (server, mut wire) = struck(ServerEra::Modern, &["H17-character"]);
    wire.head();
    assert!(wire.rest().ends_with(&[0xe2, 0x82, b'\r', b'\n']));
    server.end();
}

#[test]
fn a_stream_goes_on_where_it_was_cut() {
    for (case, answers) in [("H20", 1), ("H20-duplicates", 2), ("H17-event-ids", 1), ("H19-retry-huge", 1)] {
        let (server, mut wire) = struck(ServerEra::Legacy, &[case]);
        wire.head();
        let heard = wire.chunks();
        let last = heard.lines().rfind(|line| line.starts_with("id: ")).unwrap()[4..].to_owned();
        let mut again = server.connect();
        again.session = wire.session.clone();
        again.send("GET", "/mcp", &format!("Accept: text/event-stream\r\nLast-Event-ID: {last}\r\n"), "");
        let (_, body) = again.receive();
        assert_eq!(body.matches("noted n-2").count(), answers, "{case}: {body}");
        assert!(server.records(&format!("get {last} {}", wire.session.clone().unwrap())));
        server.end();
    }
}

#[test]
fn oddly_spelled_events_still_hold_the_answer() {
    for case in CASES.iter().filter(|case| case.name.starts_with("H19-") && !case.name.contains("retry")) {
        let (server, mut wire) = struck(ServerEra::Modern, &[case.fault, "--count", "200", "--scale", "100000"]);
        let (head, body) = wire.receive();
        assert_eq!(head.header("content-type"), Some("text/event-stream"), "{}", case.name);
        assert!(body.contains("noted n-2"), "{}", case.name);
        server.end();
    }
}

#[test]
fn a_redirect_leads_to_an_origin_that_writes_down_what_it_sees() {
    let (server, mut wire) = struck(ServerEra::Modern, &["H24-307-other"]);
    let (head, _) = wire.receive();
    assert_eq!(head.status, 307);
    let target =
        head.header("location").unwrap().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let mut other = server.connect_to(&target);
    other.post_with(server.era, "Authorization: Bearer leaked\r\n", &note(server.era, 2));
    assert!(other.receive().1.contains("elsewhere"));
    assert!(server.records("elsewhere POST /mcp") && server.records("elsewhere header authorization: Bearer leaked"));
    assert_eq!(server.ledger().call_count("n-2"), 0);
    server.end();
}

#[test]
fn a_redirect_within_the_origin_can_be_followed() {
    let (server, mut wire) = struck(ServerEra::Modern, &["H24-308"]);
    assert_eq!(wire.receive().0.header("location"), Some("/moved"));
    wire.post(server.era, &note(server.era, 2));
    assert!(wire.receive().1.contains("noted n-2"));
    assert_eq!(server.ledger().call_count("n-2"), 1);
    server.end();
}

#[test]
fn a_connection_ends_without_a_word() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["H25"]);
    let mut wire = server.connect();
    wire.post(server.era, &request(server.era, 1, "server/discover", json!({})));
    let (head, _) = wire.receive();
    assert_eq!((head.status, head.header("connection")), (200, None));
    assert!(wire.rest().is_empty());
    server.end();
}

#[test]
fn a_connection_is_reset() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["H25-reset"]);
    let mut wire = server.open();
    wire.post(server.era, &note(server.era, 2));
    assert!(wire.is_reset());
    assert_eq!(server.ledger().call_count("n-2"), 0);
    server.end();
    let (server, mut wire) = struck(ServerEra::Modern, &["H17-reset"]);
    assert!(wire.is_reset());
    server.end();
}

/// On a loaded machine the reset arrives before the request is written.
#[test]
fn a_reset_is_seen_by_a_write_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server_end, _) = listener.accept().unwrap();
    set_socket_linger(&server_end, Some(Duration::ZERO)).unwrap();
    drop(server_end);
    let mut watched = [PollFd::new(&stream, PollFlags::empty())];
    assert_eq!(poll(&mut watched, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })), Ok(1), "the reset arrives");
    let mut wire = Wire::new(stream);
    wire.post(ServerEra::Modern, &note(ServerEra::Modern, 2));
    assert!(wire.is_reset());
}

#[test]
fn what_has_no_end_ends_with_its_reader() {
    for (case, most) in [("H28", 4 << 20), ("endless-json", 64 << 20), ("endless-sse-event", 64 << 20)] {
        let (server, mut wire) = struck(ServerEra::Modern, &[case]);
        assert_eq!(wire.drain(most), most, "{case}");
        drop(wire);
        assert!(server.records("closed 2"), "{case}");
        server.end();
    }
}

#[test]
fn a_hanging_call_is_seen_to_be_given_up() {
    for case in ["H42", "H42-stream"] {
        let (server, wire) = struck(ServerEra::Modern, &[case]);
        assert!(server.records("n-2"));
        drop(wire);
        assert!(server.records("closed 2"), "{case}");
        server.end();
    }
}

#[test]
fn a_subscription_ends_in_each_way() {
    for (case, expected) in [("H36-result", 2), ("H36-cancelled", 2), ("H36-both", 3)] {
        let server = Fixture::start(Form::Http, ServerEra::Modern, &[case]);
        let mut wire = server.open();
        wire.post(server.era, &request(server.era, 5, "subscriptions/listen", json!({ "notifications": {} })));
        let (_, body) = wire.receive();
        assert_eq!(messages(&body).len(), expected, "{case}: {body}");
        server.end();
    }
}

#[test]
fn a_call_that_comes_again_must_bring_its_own_state() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["H38"]);
    let mut wire = server.open();
    let mut again = note(server.era, 2);
    wire.post(server.era, &again);
    let sent_back: Value = serde_json::from_str(&wire.receive().1).unwrap();
    assert_eq!(sent_back["result"]["resultType"], "input_required");
    assert_eq!(server.ledger().call_count("n-2"), 0);
    again["params"]["requestState"] = sent_back["result"]["requestState"].clone();
    wire.post(server.era, &again);
    assert!(wire.receive().1.contains("noted n-2"));
    assert!(server.ledger().violations().is_empty());
    wire.post(server.era, &again);
    wire.receive();
    assert_eq!(server.ledger().violations().len(), 1);
}

#[test]
fn the_era_changes_after_the_opening() {
    let (server, mut wire) = struck(ServerEra::Modern, &["H37"]);
    let (head, body) = wire.receive();
    assert!(head.status == 400 && body.contains("-32000"), "{body}");
    server.end();
    let (server, mut wire) = struck(ServerEra::Legacy, &["H37"]);
    let (head, body) = wire.receive();
    assert!(head.status == 400 && body.contains("-32022"), "{body}");
    server.end();
}

#[test]
fn a_lost_cursor_is_lost_once() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["H40", "--pages", "2"]);
    let mut wire = server.open();
    let mut next = |id| wire.ask(server.era, id, "tools/list", json!({ "cursor": "page-1" }));
    assert_eq!(next(2)["error"]["code"], -32602);
    assert!(next(3)["result"]["tools"].is_array());
    server.end();
}
