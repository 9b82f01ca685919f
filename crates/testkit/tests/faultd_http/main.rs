//! The fault server over HTTP, spoken to by hand: healthy in every form and era, faulty when asked.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod faults;
mod old_form;
mod peer;

use serde_json::json;
use wharf_testkit::http_cases::{CASES, Form, ServerEra};

use peer::{Fixture, call, messages, request};

#[test]
fn a_healthy_server_speaks_every_era() {
    for case in CASES.iter().filter(|case| case.fault == "ok" && case.forms == [Form::Http]) {
        for era in case.eras {
            let args: Vec<&str> = [case.fault].into_iter().chain(case.args.iter().copied()).collect();
            let server = Fixture::start(Form::Http, *era, &args);
            let mut wire = server.open();
            assert_eq!(wire.session.is_some(), *era != ServerEra::Modern && case.name != "ok-bare");
            wire.post(*era, &call(*era, 2, "note", json!({ "nonce": "n-1" })));
            let (head, body) = wire.receive();
            let events = head.header("content-type") == Some("text/event-stream");
            assert_eq!((head.status, events), (200, case.name == "ok-sse"));
            assert!(body.contains("noted n-1"), "{body}");
            assert_eq!(body.contains("resultType"), *era == ServerEra::Modern);
            assert_eq!((server.ledger().call_count("n-1"), server.ledger().effect_count("n-1")), (1, 1));
            assert_eq!(server.ledger().lines.iter().filter(|line| *line == "connected").count(), 1);
            server.end();
        }
    }
}

#[test]
fn requests_may_follow_one_another_without_waiting() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["ok"]);
    let mut wire = server.open();
    for id in 2..10 {
        wire.post(server.era, &call(server.era, id, "echo", json!({ "text": format!("number {id}") })));
    }
    for id in 2..10 {
        let (_, body) = wire.receive();
        assert!(body.contains(&format!("number {id}")) && body.contains(&format!("\"id\":{id},")), "{body}");
    }
    server.end();
}

#[test]
fn progress_makes_a_stream_of_the_answer() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["ok"]);
    let mut wire = server.open();
    wire.post(server.era, &call(server.era, 2, "progress", json!({ "steps": 3, "every_ms": 1 })));
    let (_, body) = wire.receive();
    assert_eq!(messages(&body).len(), 4, "{body}");
    assert!(messages(&body)[3].contains("3 steps"));
    server.end();
}

#[test]
fn going_away_cancels_in_the_stateless_era() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["ok"]);
    let mut wire = server.open();
    wire.post(server.era, &call(server.era, 7, "slow", json!({ "ms": 3_600_000 })));
    assert!(server.records("call slow id:7"));
    drop(wire);
    assert!(server.records("closed 7"));
    server.end();
}

#[test]
fn a_notification_cancels_in_the_handshake_era() {
    let server = Fixture::start(Form::Http, ServerEra::Legacy, &["ok"]);
    let mut wire = server.open();
    let mut other = server.connect();
    other.session = wire.session.clone();
    wire.post(server.era, &call(server.era, 7, "slow", json!({ "ms": 3_600_000 })));
    assert!(server.records("call slow id:7"));
    let params = json!({ "requestId": 7 });
    other.post(server.era, &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    assert_eq!(other.receive().0.status, 202);
    assert!(wire.rest().is_empty());
    assert_eq!(server.ledger().cancel_count("7"), 1);
    server.end();
}

#[test]
fn a_session_is_demanded_ended_and_unknown_then() {
    let server = Fixture::start(Form::Http, ServerEra::Legacy, &["ok"]);
    let mut wire = server.open();
    let session = wire.session.clone().unwrap();
    wire.send("DELETE", "/mcp", "", "");
    assert_eq!(wire.receive().0.status, 204);
    wire.post(server.era, &call(server.era, 2, "echo", json!({})));
    assert_eq!(wire.receive().0.status, 404);
    let lines = server.ledger().lines;
    assert!(lines.contains(&format!("delete {session}")) && lines.contains(&format!("post tools/call {session}")));
    server.end();
}

#[test]
fn a_listener_hears_of_changes() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["H39"]);
    let mut wire = server.open();
    let mut listener = server.connect();
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    listener.post(server.era, &request(server.era, 5, "subscriptions/listen", filter));
    assert_eq!(listener.head().status, 200);
    assert!(listener.text().contains("notifications/subscriptions/acknowledged"));
    let list = wire.ask(server.era, 2, "tools/list", json!({}));
    assert!(list.to_string().contains("\"before\"") && list["result"]["ttlMs"] == 60_000);
    let news = listener.text();
    assert!(news.contains("tools/list_changed") && news.contains("\"io.modelcontextprotocol/subscriptionId\":5"));
    assert!(wire.ask(server.era, 3, "tools/list", json!({})).to_string().contains("\"after\""));
    drop(listener);
    assert!(server.records("closed 5"));
    server.end();
}

#[test]
fn a_get_hears_of_changes_too() {
    let server = Fixture::start(Form::Http, ServerEra::Legacy, &["H39"]);
    let mut wire = server.open();
    let mut listener = server.connect();
    listener.session = wire.session.clone();
    listener.send("GET", "/mcp", "Accept: text/event-stream\r\n", "");
    assert_eq!(listener.head().status, 200);
    wire.ask(server.era, 2, "tools/list", json!({}));
    assert!(listener.text().contains("tools/list_changed"));
    server.end();
}

#[test]
fn what_the_headers_get_wrong_is_refused_and_written_down() {
    let server = Fixture::start(Form::Http, ServerEra::Modern, &["ok"]);
    let mut wire = server.open();
    wire.post_with(server.era, "Mcp-Name: other\r\n", &call(server.era, 2, "echo", json!({ "text": "x" })));
    let (head, body) = wire.receive();
    assert_eq!(head.status, 400);
    assert!(body.contains("-32020"), "{body}");
    assert_eq!(server.ledger().violations(), ["mcp-name is not what the body says"]);
}
