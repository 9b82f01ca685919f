//! A call whose connection is cut at every moment there is: its outcome is unknown or it provably was not delivered, and
//! what the server wrote down never shows it twice.
//!
//! The server hangs up after each answer, so that every request has a connection of its own and a fault can be put
//! on the next one alone. Whatever is sent again then arrives.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use url::Url;
use wharf_client::{CallError, ConnectOptions, Connection, Limits, RequestOptions, connect_http};
use wharf_spec::HttpSpec;
use wharf_testkit::oracle::poll_until;
use wharf_testkit::transport_faults::{
    AcceptedConnection, ByteFault, ConnectionFilter, Direction, Endpoint, FaultPosition, FaultProxy, FaultRule,
    FaultScript, read_request,
};
use wharf_wire::{Era, RawJson};

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(10);
const TO_CLIENT: Direction = Direction::ToClient;
const TO_SERVER: Direction = Direction::ToServer;

/// How the server is spoken to, and how it answers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Manner {
    era: Era,
    events: bool,
}

const MANNERS: [Manner; 4] = [
    Manner { era: Era::Stateless, events: false },
    Manner { era: Era::Stateless, events: true },
    Manner { era: Era::Handshake, events: false },
    Manner { era: Era::Handshake, events: true },
];

/// A server, what it wrote down, and a proxy before it.
struct Bench {
    server: Endpoint,
    proxy: FaultProxy,
    ledger: Arc<Mutex<Vec<Value>>>,
    connection: Connection,
}

/// Bytes of one call, as they pass the proxy.
struct Sizes {
    request: u64,
    answer: u64,
}

impl Bench {
    async fn new(manner: Manner) -> Bench {
        let ledger = Arc::<Mutex<Vec<Value>>>::default();
        let ours = Arc::clone(&ledger);
        let server = Endpoint::start(move |guest| {
            attend(guest, manner, &ours).ok();
        })
        .unwrap();
        let proxy = FaultProxy::start(server.address(), FaultScript::default()).unwrap();
        let url = Url::parse(&format!("http://{}/mcp", proxy.address())).unwrap();
        let mut options = ConnectOptions::default();
        options.limits = Limits::default().with_delays_divided(10);
        let connection = connect_http(&HttpSpec::new(url), options).await.unwrap();
        assert_eq!(connection.facts().revision.era(), manner.era);
        // Known from here on, so that a call is one request.
        connection.list_tools().await.unwrap();
        let bench = Bench { server, proxy, ledger, connection };
        // In the handshake era a word and a GET follow by themselves; nothing after them.
        assert!(poll_until(SOON, || bench.server.requests() == if manner.era == Era::Stateless { 2 } else { 5 }));
        bench
    }

    async fn call(&self, nonce: &str) -> Result<(), CallError> {
        self.call_within(nonce, Duration::from_secs(3)).await
    }

    async fn call_within(&self, nonce: &str, limit: Duration) -> Result<(), CallError> {
        let arguments = RawJson::from_value(&json!({ "nonce": nonce })).unwrap();
        let options = RequestOptions::default().timeout(limit);
        self.connection.call_tool("note", &arguments, options).await.map(drop)
    }

    /// What a call takes in each direction when nothing goes wrong.
    async fn measure(&self) -> Sizes {
        let before = self.proxy.traffic();
        self.call("measured").await.unwrap();
        let after = self.proxy.traffic();
        Sizes { request: after.to_server - before.to_server, answer: after.to_client - before.to_client }
    }

    /// Puts a fault on the next `count` connections.
    fn spoil(&self, count: u64, direction: Direction, moment: FaultPosition, fault: &ByteFault) {
        let opened = self.proxy.traffic().connections;
        let rule = |number| {
            FaultRule::new(direction, moment, fault.clone()).for_connections(ConnectionFilter::Only(opened + number))
        };
        self.proxy.set_script((1..=count).map(rule).fold(FaultScript::default(), FaultScript::with_rule));
    }

    fn deliveries(&self, nonce: &str) -> usize {
        let ledger = self.ledger.lock().unwrap();
        ledger.iter().filter(|message| message["params"]["arguments"]["nonce"] == nonce).count()
    }
}

/// Reads one request, writes it down, answers it and hangs up.
fn attend(mut guest: AcceptedConnection, manner: Manner, ledger: &Mutex<Vec<Value>>) -> io::Result<()> {
    let Some(request) = read_request(&mut guest)? else { return Ok(()) };
    guest.count_request();
    let message = request.json();
    ledger.lock().unwrap().push(message.clone());
    guest.write_all(answer(&message, manner).as_bytes())?;
    guest.finish();
    Ok(())
}

fn answer(message: &Value, manner: Manner) -> String {
    let Some(id) = message.get("id") else {
        let status = if message["method"].is_string() { "202 Accepted" } else { "405 Not Here" };
        return format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    };
    let (status, outcome) = match result(message, manner) {
        Some(result) => ("200 OK", ("result", result)),
        None => ("404 Not Found", ("error", json!({ "code": -32601, "message": "Method not found" }))),
    };
    let message = json!({ "jsonrpc": "2.0", "id": id, outcome.0: outcome.1 }).to_string();
    let (kind, body) = match manner.events && status == "200 OK" {
        true => ("text/event-stream", format!("event: message\ndata: {message}\n\n")),
        false => ("application/json", message),
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn result(message: &Value, manner: Manner) -> Option<Value> {
    let info = json!({ "name": "below", "version": "0" });
    let mut result = match (message["method"].as_str()?, manner.era) {
        ("server/discover", Era::Stateless) => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "_meta": { "io.modelcontextprotocol/serverInfo": info },
        }),
        ("initialize", Era::Handshake) => {
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info })
        }
        ("tools/list", _) => json!({ "tools": [{ "name": "note", "inputSchema": { "type": "object" } }] }),
        ("tools/call", _) => json!({ "content": [{ "type": "text", "text": "noted" }] }),
        _ => return None,
    };
    if manner.era == Era::Stateless {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("public");
    }
    Some(result)
}

#[tokio::test(flavor = "multi_thread")]
async fn call_cut_in_response_is_unknown_and_not_retried() {
    for manner in MANNERS {
        let bench = Bench::new(manner).await;
        let sizes = bench.measure().await;
        let moments = [
            ("before the answer", FaultPosition::Before(0)),
            ("in the status line", FaultPosition::After(5)),
            ("in the headers", FaultPosition::After(40)),
            ("in the message", FaultPosition::After(sizes.answer - 30)),
            ("before its last byte", FaultPosition::After(sizes.answer - 1)),
        ];
        for (when, moment) in moments {
            for fault in [ByteFault::Cut, ByteFault::Close, ByteFault::HalfClose] {
                let nonce = format!("{when} {fault:?}");
                bench.spoil(1, TO_CLIENT, moment, &fault);
                let outcome = bench.call(&nonce).await;
                assert!(matches!(outcome, Err(CallError::OutcomeUnknown(_))), "{manner:?}: {nonce}: {outcome:?}");
                bench.call("after").await.unwrap();
                assert_eq!(bench.deliveries(&nonce), 1, "{manner:?}: {nonce}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_cut_in_request_is_unknown_and_not_retried() {
    for manner in MANNERS {
        let bench = Bench::new(manner).await;
        let sizes = bench.measure().await;
        for at in [1, 60, sizes.request - 40, sizes.request - 1] {
            for fault in [ByteFault::Cut, ByteFault::Close] {
                let nonce = format!("{at} of {} {fault:?}", sizes.request);
                bench.spoil(1, TO_SERVER, FaultPosition::After(at), &fault);
                let outcome = bench.call(&nonce).await;
                assert!(matches!(outcome, Err(CallError::OutcomeUnknown(_))), "{manner:?}: {nonce}: {outcome:?}");
                bench.call("after").await.unwrap();
                assert_eq!(bench.deliveries(&nonce), 0, "{manner:?}: {nonce}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_outcome_on_dying_connection_matches_deliveries() {
    for manner in MANNERS {
        let bench = Bench::new(manner).await;
        for round in 0..20 {
            for fault in [ByteFault::Cut, ByteFault::Close] {
                let nonce = format!("{round} {fault:?}");
                bench.spoil(1, TO_SERVER, FaultPosition::Opening, &fault);
                let outcome = bench.call(&nonce).await;
                bench.call("after").await.unwrap();
                let expected = match &outcome {
                    // It was noticed while dialling, and then another connection was made.
                    Ok(()) => 1,
                    Err(CallError::OutcomeUnknown(_) | CallError::RetryableDisconnect(_)) => 0,
                    Err(other) => panic!("{manner:?}: {nonce}: {other:?}"),
                };
                assert_eq!(bench.deliveries(&nonce), expected, "{manner:?}: {nonce}: {outcome:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_to_closed_port_is_refused_and_retryable() {
    for manner in MANNERS {
        let Bench { server, proxy, ledger, connection } = Bench::new(manner).await;
        let before = ledger.lock().unwrap().len();
        drop(proxy);
        let arguments = RawJson::from_value(&json!({ "nonce": "nobody" })).unwrap();
        let error = connection.call_tool("note", &arguments, RequestOptions::default()).await.unwrap_err();
        assert!(matches!(error, CallError::RetryableDisconnect(_)) && error.is_retryable(), "{manner:?}: {error:?}");
        assert!(error.to_string().contains("refused"), "{manner:?}: {error}");
        assert_eq!(ledger.lock().unwrap().len(), before, "{manner:?}");
        drop(server);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn black_holed_call_times_out_and_is_not_retried() {
    let limit = Duration::from_millis(400);
    for manner in MANNERS {
        let bench = Bench::new(manner).await;
        for (direction, moment, deliveries) in [
            (TO_SERVER, FaultPosition::After(50), 0),
            (TO_CLIENT, FaultPosition::Before(0), 1),
            (TO_CLIENT, FaultPosition::After(40), 1),
        ] {
            let nonce = format!("{direction:?} {moment:?}");
            bench.spoil(1, direction, moment, &ByteFault::BlackHole);
            let since = Instant::now();
            let outcome = bench.call_within(&nonce, limit).await;
            assert!(matches!(outcome, Err(CallError::TimedOut { .. })), "{manner:?}: {nonce}: {outcome:?}");
            assert!(since.elapsed() < 5 * limit, "{manner:?}: {nonce}: {:?}", since.elapsed());
            bench.call("after").await.unwrap();
            assert_eq!(bench.deliveries(&nonce), deliveries, "{manner:?}: {nonce}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn list_is_retried_once_after_a_disconnect() {
    for manner in MANNERS {
        let bench = Bench::new(manner).await;
        for (moment, fault) in [
            (FaultPosition::Before(0), ByteFault::Cut),
            (FaultPosition::Before(0), ByteFault::Close),
            (FaultPosition::After(40), ByteFault::Cut),
            (FaultPosition::After(150), ByteFault::Close),
        ] {
            let before = bench.proxy.traffic().connections;
            bench.spoil(1, TO_CLIENT, moment, &fault);
            let listing = bench.connection.list_tools().await;
            assert_eq!(listing.unwrap().items.len(), 1, "{manner:?}: {moment:?} {fault:?}");
            assert_eq!(bench.proxy.traffic().connections, before + 2, "{manner:?}: {moment:?} {fault:?}");
            bench.spoil(2, TO_CLIENT, moment, &fault);
            let error = bench.connection.list_tools().await.unwrap_err();
            assert!(matches!(error, CallError::RetryableDisconnect(_)), "{manner:?}: {moment:?} {fault:?}: {error:?}");
            assert_eq!(bench.proxy.traffic().connections, before + 4, "{manner:?}: {moment:?} {fault:?}");
        }
    }
}
