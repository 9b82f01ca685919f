//! Tests of the server from a client's view, with an in-memory outbox.

mod asking;
mod client;
mod listening;
mod tasking;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::message::{Outbox, lock_unpoisoned};
use super::revision::DemoRevision;
use super::server::{DemoServer, DemoServerOptions};

const MODERN: &str = "2026-07-28";
const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

struct ChannelOutbox(Mutex<Sender<Value>>);

impl Outbox for ChannelOutbox {
    fn send(&self, message: Value) {
        // The test may have stopped receiving.
        let _ = lock_unpoisoned(&self.0).send(message);
    }
}

/// A client and its server.
struct DemoServerHarness {
    server: DemoServer,
    out: Arc<dyn Outbox>,
    inbox: Receiver<Value>,
}

impl DemoServerHarness {
    fn new(revision: Option<&str>) -> Self {
        let options = DemoServerOptions {
            revision: revision.map(str::to_owned),
            name: "demo".to_owned(),
            crash_after: None,
            tide: None,
        };
        let (sender, inbox) = channel();
        Self {
            server: DemoServer::new(options, vec!["PATH".to_owned()]).unwrap(),
            out: Arc::new(ChannelOutbox(Mutex::new(sender))),
            inbox,
        }
    }

    /// Creates a server with a negotiated `revision`.
    fn negotiated(revision: &str) -> Self {
        let harness = Self::new(None);
        if revision != MODERN {
            harness.request("initialize", json!({"protocolVersion": revision}));
        }
        harness
    }

    fn send(&self, message: &Value) {
        self.server.handle(message.to_string().as_bytes(), &self.out);
    }

    fn receive(&self) -> Value {
        let max_wait = Duration::from_secs(10);
        self.inbox.recv_timeout(max_wait).expect("a message")
    }

    #[track_caller]
    fn assert_silent(&self) {
        if let Ok(message) = self.inbox.try_recv() {
            panic!("an unexpected {message}");
        }
    }

    fn request(&self, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        let reply = self.receive();
        assert_eq!(reply["id"], 1, "{reply}");
        self.assert_silent();
        reply
    }

    /// Sends a request, with `_meta` in the stateless revision only.
    fn request_in(&self, revision: &str, method: &str, mut params: Value) -> Value {
        if revision == MODERN {
            params["_meta"] = modern_meta();
        }
        self.request(method, params)
    }
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn revisions() -> impl Iterator<Item = &'static str> {
    DemoRevision::ALL.into_iter().map(DemoRevision::as_str)
}

#[test]
fn initialize_negotiates_a_handshake_revision() {
    let table = [
        (None, "2024-11-05", "2024-11-05"),
        (None, "2025-06-18", "2025-06-18"),
        (None, "1999-01-01", "2025-11-25"),
        (None, MODERN, "2025-11-25"),
        (Some("2025-03-26"), "2025-11-25", "2025-03-26"),
    ];
    for (pinned, requested, expected) in table {
        let harness = DemoServerHarness::new(pinned);
        let reply = harness.request("initialize", json!({"protocolVersion": requested}));
        assert_eq!(reply["result"]["protocolVersion"], expected);
        assert_eq!(reply["result"]["serverInfo"]["name"], "demo");
        assert!(reply["result"].get("resultType").is_none());
    }
}

#[test]
fn first_request_determines_the_era() {
    let initialize = json!({"protocolVersion": "2025-11-25"});
    let modern = json!({"_meta": modern_meta()});
    let code = |harness: &DemoServerHarness, method, params: &Value| {
        harness.request(method, params.clone())["error"]["code"].clone()
    };

    let harness = DemoServerHarness::new(None);
    assert_eq!(code(&harness, "tools/list", &json!({})), -32602, "neither era");
    assert_eq!(code(&harness, "ping", &json!({})), Value::Null);
    assert_eq!(code(&harness, "initialize", &initialize), Value::Null);
    assert_eq!(code(&harness, "initialize", &initialize), -32600);
    assert_eq!(code(&harness, "server/discover", &modern), -32600);
    assert_eq!(code(&harness, "server/discover", &json!({})), -32601);

    let harness = DemoServerHarness::new(None);
    assert_eq!(code(&harness, "server/discover", &modern), Value::Null);
    assert_eq!(code(&harness, "initialize", &initialize), -32600);
    assert_eq!(code(&harness, "ping", &modern), -32601);

    let harness = DemoServerHarness::new(Some("2025-11-25"));
    assert_eq!(code(&harness, "server/discover", &modern), -32601);
    assert_eq!(code(&harness, "tools/list", &json!({})), -32600);
    assert_eq!(code(&harness, "initialize", &initialize), Value::Null);
    assert_eq!(code(&harness, "server/discover", &modern), -32601);

    let harness = DemoServerHarness::new(Some(MODERN));
    assert_eq!(code(&harness, "initialize", &initialize), -32022);
    assert_eq!(code(&harness, "tools/list", &json!({})), -32602);
}

#[test]
fn stateless_requests_need_complete_meta() {
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let table = [
        (json!({}), -32602),
        (json!({capabilities: {}}), -32602),
        (json!({version: MODERN}), -32602),
        (json!({version: MODERN, capabilities: []}), -32602),
        (json!({version: 2026, capabilities: {}}), -32602),
        (json!({version: "2025-11-25", capabilities: {}}), -32022),
        (json!({version: "2099-01-01"}), -32022),
    ];
    for (meta, code) in table {
        let reply = DemoServerHarness::new(None).request("server/discover", json!({"_meta": meta}));
        assert_eq!(reply["error"]["code"], code, "{meta}");
    }
    let harness = DemoServerHarness::new(Some(MODERN));
    let reply = harness.request("tools/list", json!({"_meta": {version: "2099-01-01"}}));
    let expected = json!({"supported": [MODERN], "requested": "2099-01-01"});
    assert_eq!(reply["error"]["data"], expected);
}

#[test]
fn stateless_results_have_type_and_cache_hints() {
    let table = [
        ("server/discover", json!({}), true),
        ("tools/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({"uri": "demo://clock"}), true),
        ("prompts/list", json!({}), true),
        ("prompts/get", json!({"name": "welcome", "arguments": {"name": "Ada"}}), false),
        ("tools/call", json!({"name": "fail"}), false),
    ];
    let harness = DemoServerHarness::negotiated(MODERN);
    for (method, params, is_cacheable) in table {
        let result = harness.request_in(MODERN, method, params)["result"].take();
        assert_eq!(result["resultType"], "complete", "{method}");
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server["name"], "demo", "{method}");
        assert_eq!(result["ttlMs"].is_u64(), is_cacheable, "{method}");
        assert_eq!(result["cacheScope"] == "public", is_cacheable, "{method}");
    }
}

#[test]
fn errors_have_the_codes_of_their_revision() {
    for revision in revisions() {
        let harness = DemoServerHarness::negotiated(revision);
        let not_found = if revision == MODERN { -32602 } else { -32002 };
        let table = [
            ("tools/call", json!({"name": "nothing"}), -32602),
            ("tools/call", json!({}), -32602),
            ("tools/list", json!({"cursor": "nothing"}), -32602),
            ("resources/read", json!({"uri": "demo://nothing"}), not_found),
            ("prompts/get", json!({"name": "nothing"}), -32602),
            ("nothing/at/all", json!({}), -32601),
        ];
        for (method, params, code) in table {
            let reply = harness.request_in(revision, method, params);
            assert_eq!(reply["error"]["code"], code, "{revision} {method}");
        }
        let reply = harness.request_in(revision, "tools/call", json!({"name": "echo"}));
        assert_eq!(reply["result"]["isError"], true);
        let text = &reply["result"]["content"][0]["text"];
        assert_eq!(*text, "The argument `text` is missing.");
    }
}

#[test]
fn invalid_messages_are_rejected_notifications_unanswered() {
    let harness = DemoServerHarness::new(None);
    let table: [(&[u8], i64); 5] = [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"7", -32600),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
    ];
    for (message, code) in table {
        harness.server.handle(message, &harness.out);
        let reply = harness.receive();
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(code), &Value::Null));
    }
    harness.send(&json!({"jsonrpc": "2.0", "method": "tools/list"}));
    harness.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    harness.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    harness.assert_silent();
}

#[test]
fn progress_has_the_fields_of_its_revision() {
    for revision in revisions() {
        let harness = DemoServerHarness::negotiated(revision);
        let mut meta = if revision == MODERN { modern_meta() } else { json!({}) };
        meta["progressToken"] = "t".into();
        let arguments = json!({"seconds": 0.01, "steps": 2});
        let params = json!({"name": "slow", "arguments": arguments, "_meta": meta});
        harness.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        for step in 1..=2 {
            let mut expected = json!({"progressToken": "t", "progress": step, "total": 2});
            if revision != "2024-11-05" {
                expected["message"] = format!("step {step} of 2").into();
            }
            assert_eq!(harness.receive()["params"], expected);
        }
        let reply = harness.receive();
        assert_eq!(reply["result"]["content"][0]["text"], "Waited 0.01 s in 2 steps.");
    }
}

#[test]
fn cancelled_call_stops_without_a_response() {
    let harness = DemoServerHarness::negotiated("2025-11-25");
    let params = json!({"name": "slow", "arguments": {"seconds": 600}});
    let slow = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let cancel = |id: Value| {
        let params = json!({"requestId": id});
        harness.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    };
    harness.send(&slow);
    harness.send(&slow);
    let reply = harness.receive();
    assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32600), &json!("a")));
    let shares = Arc::strong_count(&harness.out);
    cancel(json!("b"));
    let cancelled = Instant::now();
    cancel(json!("a"));
    // The thread drops its reference to the outbox when it ends.
    while Arc::strong_count(&harness.out) == shares {
        assert!(cancelled.elapsed() < Duration::from_secs(5), "the call goes on");
        std::thread::yield_now();
    }
    harness.assert_silent();
}

#[test]
fn batches_are_answered_together_in_2025_03_26_only() {
    let call = |id: i64, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let batch = json!([
        call(1, "slow", json!({"seconds": 0.05})),
        call(2, "echo", json!({"text": "a"})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize"},
        call(4, "slow", json!({"seconds": 600})),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}},
    ]);
    for revision in HANDSHAKES {
        let harness = DemoServerHarness::negotiated(revision);
        harness.send(&batch);
        let reply = harness.receive();
        if revision == "2025-03-26" {
            let replies = reply.as_array().unwrap().iter();
            let ids: Vec<_> = replies.map(|reply| reply["id"].clone()).collect();
            assert_eq!(json!(ids), json!([2, 3, 1]));
            harness.send(&json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]));
        } else {
            assert_eq!(reply["error"]["code"], -32600);
        }
        harness.assert_silent();
    }
}

#[test]
fn tools_are_paginated() {
    for revision in revisions() {
        let harness = DemoServerHarness::negotiated(revision);
        let first = harness.request_in(revision, "tools/list", json!({}))["result"].take();
        assert_eq!(first["tools"].as_array().unwrap().len(), 15);
        let cursor = json!({"cursor": first["nextCursor"]});
        let second = harness.request_in(revision, "tools/list", cursor)["result"].take();
        assert!(!second["tools"].as_array().unwrap().is_empty());
        assert!(second.get("nextCursor").is_none());
    }
}

#[test]
fn unknown_revision_is_rejected_with_known_ones() {
    let options =
        DemoServerOptions { revision: Some("2026".to_owned()), name: "demo".to_owned(), crash_after: None, tide: None };
    let complaint = DemoServer::new(options, Vec::new()).err().unwrap();
    assert!(complaint.contains("`2026`") && complaint.contains(MODERN), "{complaint}");
}
