//! Everything a server sends is bounded in total: bytes of a list, of a server, of all servers. What goes past a bound costs
//! that list or that call, says so, and is not held.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use wharf_client::{
    BoxedFuture, BudgetExceeded, BudgetScope, ByteBudget, CallError, ConnectOptions, Connection, Limits, LocalServer,
    NegotiationMode, RequestOptions, ServerEnd, Workers, connect_http, connect_local,
};
use wharf_spec::HttpSpec;
use wharf_wire::RawJson;

const MIB: usize = 1 << 20;

/// A server that is a function from a request to the result, as JSON text.
struct Scripted<F>(F);

impl<F: Fn(&Value) -> String + Send + 'static> LocalServer for Scripted<F> {
    fn serve(self: Box<Self>, mut end: ServerEnd, _workers: Workers) -> BoxedFuture<()> {
        Box::pin(async move {
            while let Some(message) = end.receive().await {
                let message: Value = serde_json::from_slice(&message.text).unwrap();
                if !message["id"].is_null() {
                    end.sender().send(answer(&message, &(self.0)(&message)));
                }
            }
        })
    }
}

fn answer(message: &Value, result: &str) -> String {
    let opening = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
        "serverInfo": { "name": "s", "version": "1" },
        "instructions": result.strip_prefix("instructions:").unwrap_or_default(),
    });
    let result = if message["method"] == "initialize" { opening.to_string() } else { result.to_owned() };
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"])
}

async fn connect(limits: &Limits, act: impl Fn(&Value) -> String + Send + 'static) -> Connection {
    connect_local(Scripted(act), options(limits)).await.unwrap()
}

fn options(limits: &Limits) -> ConnectOptions {
    let mut options = ConnectOptions::default();
    options.limits = limits.clone();
    options.negotiation = NegotiationMode::Handshake;
    options
}

/// A page with items of this size, after which there is another.
fn page(list: &str, message: &Value, items: usize, size: usize) -> String {
    let cursor: usize = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    let item = |n: usize| json!({ "name": format!("n{cursor}_{n}"), "uri": "x:y", "description": "d".repeat(size) });
    let items: Vec<Value> = (0..items).map(item).collect();
    json!({ list: items, "nextCursor": (cursor + 1).to_string() }).to_string()
}

fn problem<T>(listed: Result<T, CallError>) -> String {
    match listed.map(drop) {
        Err(CallError::Listing { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn oversized_list_fails_and_releases_its_memory() {
    let limits = Limits::default();
    let connection = connect(&limits, |message| page("tools", message, 74, 100_000)).await;
    assert_eq!(problem(connection.list_tools().await), "more than 4194304 bytes");
    assert_eq!((limits.lists_in_all.used(), limits.memory_budget_in_all.used()), (0, 0));
}

#[tokio::test]
async fn paging_stops_at_the_list_limit() {
    let limits = Limits::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let connection = connect(&limits, move |message| {
        seen.fetch_add(1, Ordering::SeqCst);
        page("tools", message, 10, 100_000)
    })
    .await;
    assert_eq!(problem(connection.list_tools().await), "more than 4194304 bytes");
    // The opening, four pages within the bound, and the one beyond it.
    assert_eq!(asked.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn list_budgets_hold_per_server_and_per_host() {
    let mut limits = Limits::default();
    (limits.list, limits.lists, limits.lists_in_all) = (2 * MIB, 3 * MIB, ByteBudget::new(4 * MIB));
    let one_page = |message: &Value| {
        let list = message["method"].as_str().unwrap().split('/').next().unwrap().to_owned();
        page(&list, message, 10, 150_000).replace(r#""nextCursor""#, r#""x""#)
    };
    let connection = connect(&limits, one_page).await;
    let tools = connection.list_tools().await.unwrap();
    let resources = connection.list_resources().await.unwrap();
    let expected = "the lists of this server exceed 3145728 bytes";
    assert_eq!(problem(connection.list_prompts().await), expected);
    let other = connect(&limits, one_page).await;
    let expected = "the lists of all servers exceed 4194304 bytes";
    assert_eq!(problem(other.list_tools().await), expected);
    drop(resources);
    assert!(other.list_tools().await.is_ok(), "what is dropped makes room");
    assert_eq!((tools.items.len(), tools.withheld.len()), (10, 0));
}

#[tokio::test]
async fn oversized_item_is_withheld_and_uncharged() {
    let limits = Limits::default();
    let listed = connect(&limits, |message| {
        page("tools", message, 2, if message["params"]["cursor"].is_null() { 10 } else { 300_000 })
            .replace(r#""nextCursor":"2""#, r#""x":2"#)
    })
    .await;
    let listing = listed.list_tools().await.unwrap();
    assert_eq!(listing.items.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["n0_0", "n0_1"]);
    let withheld: Vec<_> = listing.withheld.iter().map(|item| (item.position, item.name.as_deref().unwrap())).collect();
    assert_eq!(withheld, [(2, "n1_0"), (3, "n1_1")]);
    assert!(listing.withheld[0].reason.starts_with("definition too large (300"), "{}", listing.withheld[0].reason);
    assert!(limits.lists_in_all.used() < 1000, "{}", limits.lists_in_all.used());
}

#[tokio::test]
async fn unreleased_results_limit_further_results() {
    let mut limits = Limits::default();
    (limits.memory_budget, limits.memory_budget_in_all) = (5 * MIB, ByteBudget::new(7 * MIB));
    let large = |_: &Value| json!({ "content": [{ "type": "text", "text": "t".repeat(2 * MIB) }] }).to_string();
    let (one, other) = (connect(&limits, large).await, connect(&limits, large).await);
    let first = call(&one).await.unwrap();
    let _second = call(&one).await.unwrap();
    assert_eq!(discarded(call(&one).await), BudgetExceeded { scope: BudgetScope::Server, limit: 5 * MIB });
    let _third = call(&other).await.unwrap();
    assert_eq!(discarded(call(&other).await), BudgetExceeded { scope: BudgetScope::Host, limit: 7 * MIB });
    drop(first);
    assert!(call(&other).await.is_ok(), "what is dropped makes room");
}

#[tokio::test]
async fn small_results_are_not_charged() {
    let mut limits = Limits::default();
    limits.memory_budget_in_all = ByteBudget::new(0);
    let connection = connect(&limits, |_| json!({ "content": [{ "type": "text", "text": "t" }] }).to_string()).await;
    assert!(call(&connection).await.is_ok());
}

#[tokio::test]
async fn server_instructions_are_truncated() {
    let connection = connect(&Limits::default(), |_| format!("instructions:{}", "i".repeat(MIB))).await;
    let facts = connection.facts();
    assert_eq!(facts.instructions.as_deref(), Some("i".repeat(64 << 10).as_str()));
    assert_eq!(facts.server_info.as_ref().unwrap().name, "s");
}

/// Over a socket: bodies and events are counted while they arrive, and for as long as they are held.
#[tokio::test]
async fn http_bodies_and_events_are_charged_to_the_budget() {
    for media in ["application/json", "text/event-stream"] {
        let mut limits = Limits::default();
        limits.memory_budget = 5 * MIB;
        let connection = connect_http(&HttpSpec::new(serve(media)), options(&limits)).await.unwrap();
        let first = call(&connection).await.unwrap();
        let used = limits.memory_budget_in_all.used();
        assert!((2 * MIB..5 * MIB).contains(&used), "{media}: {used}");
        let exceeded = BudgetExceeded { scope: BudgetScope::Server, limit: 5 * MIB };
        assert_eq!(discarded(call(&connection).await), exceeded, "{media}");
        drop(first);
        assert_eq!(limits.memory_budget_in_all.used(), 0, "{media}");
        assert!(call(&connection).await.is_ok(), "{media}: the connection goes on");
    }
}

async fn call(connection: &Connection) -> Result<RawJson, CallError> {
    let answer = connection.call_tool_raw("t", &RawJson::empty_object(), RequestOptions::default()).await?;
    Ok(answer.result)
}

fn discarded(outcome: Result<RawJson, CallError>) -> BudgetExceeded {
    match outcome {
        Err(CallError::Discarded(exceeded)) => exceeded,
        other => panic!("{other:?}"),
    }
}

/// A server over HTTP whose results have 3 MiB.
fn serve(media: &'static str) -> url::Url {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || while reply(&connection, media).is_some() {});
        }
    });
    url
}

fn reply(mut connection: &TcpStream, media: &str) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let is_post = line.starts_with("POST");
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !is_post || message["id"].is_null() {
        let status = if is_post { "202 Accepted" } else { "405 Method Not Allowed" };
        return write!(connection, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").ok();
    }
    let text = answer(&message, &json!({ "content": [{ "type": "text", "text": "t".repeat(3 * MIB) }] }).to_string());
    let text = if media == "application/json" { text } else { format!("data: {text}\n\n") };
    write!(connection, "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n{text}", text.len()).ok()
}
