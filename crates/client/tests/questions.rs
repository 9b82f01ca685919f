//! What a server may ask, how often, and what the clock does meanwhile; on a paused clock, against scripted servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use wharf_client::{
    BoxedFuture, CallError, ClientSender, ClientServices, ConnectOptions, Connection, Elicitor, LocalServer,
    RequestOptions, RequestSource, ServerEnd, Workers, connect_local,
};
use wharf_wire::{Elicitation, ElicitationResponse, Interest, RawJson};

/// A server that is a function from a message to what it does about it.
struct Scripted<F>(F);

impl<F: FnMut(Value, &ClientSender) + Send + 'static> LocalServer for Scripted<F> {
    fn serve(mut self: Box<Self>, mut end: ServerEnd, _workers: Workers) -> BoxedFuture<()> {
        Box::pin(async move {
            let outbox = end.sender();
            while let Some(message) = end.receive().await {
                let message = serde_json::from_slice(&message.text).unwrap();
                (self.0)(message, &outbox);
            }
        })
    }
}

fn answer(outbox: &ClientSender, id: &Value, result: Value) {
    outbox.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string());
}

/// Answers what opens a connection, in the era that is wanted; says whether the message was something else.
fn opened(message: &Value, outbox: &ClientSender, stateless: bool) -> bool {
    let capabilities = json!({ "tools": { "listChanged": true } });
    match message["method"].as_str() {
        Some("server/discover") if stateless => {
            let found = json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities });
            answer(outbox, &message["id"], found);
        }
        Some("server/discover") => {
            let error = json!({ "code": -32601, "message": "no" });
            outbox.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string());
        }
        Some("initialize") => {
            answer(outbox, &message["id"], json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities }));
        }
        Some("notifications/initialized") => {}
        _ => return true,
    }
    false
}

fn done() -> Value {
    json!({ "content": [{ "type": "text", "text": "done" }] })
}

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string", "default": "Ada" } } });
    json!({ "message": "Who?", "requestedSchema": schema })
}

/// Thinks for so long before it says yes, and counts.
#[derive(Clone)]
struct Thinker {
    time: Duration,
    asked: Arc<AtomicUsize>,
    dropped: Arc<Notify>,
}

impl Thinker {
    fn new(seconds: u64) -> Self {
        Self { time: Duration::from_secs(seconds), asked: Arc::default(), dropped: Arc::default() }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

struct TellWhenDropped(Arc<Notify>);

impl Drop for TellWhenDropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Elicitor for Thinker {
    fn elicit(&self, source: RequestSource<'_>, _question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        assert_eq!(source.server, "scripted");
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (time, told) = (self.time, TellWhenDropped(Arc::clone(&self.dropped)));
        Box::pin(async move {
            let _told = told;
            tokio::time::sleep(time).await;
            ElicitationResponse::Accept(None)
        })
    }
}

async fn open(person: &Thinker, server: impl FnMut(Value, &ClientSender) + Send + 'static) -> Connection {
    let mut options = ConnectOptions::default();
    options.name = "scripted".to_owned();
    options.services = ClientServices::default().elicitation(person.clone());
    connect_local(Scripted(server), options).await.unwrap()
}

async fn call(connection: &Connection, tool: &str) -> Result<String, CallError> {
    let options = RequestOptions::default().timeout(Duration::from_secs(5));
    Ok(connection.call_tool(tool, &RawJson::empty_object(), options).await?.raw.as_str().to_owned())
}

/// Asks in the middle of the call `ask`, answers `slow` four seconds after it came, and everything else at once.
fn asks_by_request() -> impl FnMut(Value, &ClientSender) + Send {
    let mut waiting = Value::Null;
    move |message, outbox| {
        if !opened(&message, outbox, false) {
            return;
        }
        match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("tools/call"), Some("ask")) => {
                waiting = message["id"].clone();
                let question = json!({ "jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": form() });
                outbox.send(question.to_string());
            }
            (Some("tools/call"), Some("slow")) => {
                let (outbox, id) = (outbox.clone(), message["id"].clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(4 + 300)).await;
                    answer(&outbox, &id, done());
                });
            }
            (None, None) => answer(outbox, &waiting, json!({ "content": [], "structuredContent": message["result"] })),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_time_out_while_user_is_prompted() {
    let person = Thinker::new(300);
    let connection = open(&person, asks_by_request()).await;
    let began = Instant::now();
    // The other call belongs to nobody who is asked, and its clock stands as well.
    let (asked, slow) = tokio::join!(call(&connection, "ask"), call(&connection, "slow"));
    assert!(asked.unwrap().contains(r#""content":{"name":"Ada"}"#));
    slow.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(304));
    connection.close().await;
}

#[tokio::test(start_paused = true)]
async fn unanswered_prompt_is_cancelled_after_ten_minutes() {
    let person = Thinker::new(86_400);
    let connection = open(&person, asks_by_request()).await;
    let began = Instant::now();
    assert!(call(&connection, "ask").await.unwrap().contains(r#""action":"cancel""#));
    assert_eq!(began.elapsed().as_secs(), 600);
    connection.close().await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_prompt_is_dropped_and_deadline_resumes() {
    let person = Thinker::new(86_400);
    let connection = open(&person, |message, outbox| {
        if opened(&message, outbox, false) && message["method"] == "tools/call" {
            let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form() });
            outbox.send(question.to_string());
            let outbox = outbox.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(60)).await;
                let params = json!({ "requestId": "q" });
                let text = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                outbox.send(text.to_string());
            });
        }
    })
    .await;
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(call(&connection, "ask"), person.dropped.notified());
    assert!(matches!(outcome, Err(CallError::TimedOut { .. })), "{outcome:?}");
    assert_eq!((person.asked(), began.elapsed().as_secs()), (1, 65));
    connection.close().await;
}

/// Answers every call with this round, whatever it brings.
fn always(round: Value) -> impl FnMut(Value, &ClientSender) + Send {
    move |message, outbox| {
        if opened(&message, outbox, true) {
            answer(outbox, &message["id"], round.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_input_requests_fail_the_call_without_prompting() {
    let question = json!({ "method": "elicitation/create", "params": form() });
    let many: Value = (0..17).map(|n| (n.to_string(), question.clone())).collect();
    for (round, words) in [
        (json!({ "requestState": "x".repeat((64 << 10) + 1), "inputRequests": { "q": question } }), "requestState"),
        (
            json!({ "inputRequests": { "q": { "method": "sampling/createMessage", "params": {} } } }),
            "undeclared capability",
        ),
        (json!({ "inputRequests": { "q": { "method": "roots/list" } } }), "undeclared capability"),
        (json!({ "inputRequests": { "q": { "method": "shell/run" } } }), "undeclared capability"),
        (json!({ "inputRequests": { "q": { "method": "elicitation/create", "params": {} } } }), "invalid params"),
        (json!({ "inputRequests": many }), "too many input requests in one round (17)"),
        (json!({ "inputRequests": 7 }), ""),
        (json!({ "requestState": 7 }), "not a string"),
        (json!({}), "without `inputRequests` or `requestState`"),
    ] {
        let mut round = round;
        round["resultType"] = "input_required".into();
        let person = Thinker::new(0);
        let connection = open(&person, always(round.clone())).await;
        match call(&connection, "ask").await {
            Err(CallError::Protocol(what)) => assert!(what.contains(words), "{what}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(person.asked(), 0);
        connection.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_are_limited_per_call_and_per_minute() {
    let question = json!({ "method": "elicitation/create", "params": form() });
    let round = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
    let person = Thinker::new(0);
    let connection = open(&person, always(round)).await;
    for _ in 0..10 {
        assert!(matches!(call(&connection, "ask").await, Err(CallError::TooManyRounds(8))));
    }
    // Of eighty questions in no time thirty reach the person, and the rest are declined.
    assert_eq!((person.asked(), connection.counters().turned_away), (30, 50));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(call(&connection, "ask").await.is_err());
    assert_eq!(person.asked(), 38);
    connection.close().await;
}

#[tokio::test(start_paused = true)]
async fn notifications_for_unknown_subscriptions_are_dropped() {
    let person = Thinker::new(0);
    let connection = open(&person, |message, outbox| {
        if !opened(&message, outbox, true) || message["method"] != "subscriptions/listen" {
            return;
        }
        let id = message["id"].as_u64().unwrap();
        let tell = |method: &str, id: Value| {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
            let params =
                json!({ "_meta": meta, "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
            outbox.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
        };
        tell("notifications/subscriptions/acknowledged", (id + 1).into());
        tell("notifications/tools/list_changed", id.to_string().into());
        tell("notifications/tools/list_changed", Value::Null);
        tell("notifications/subscriptions/acknowledged", id.into());
    })
    .await;
    let interest = Interest { tools: true, ..Interest::default() };
    let mut subscription = connection.subscribe(interest.clone()).await.unwrap();
    // What was not asked for cannot be agreed on.
    assert_eq!(*subscription.confirmed_interest(), interest);
    assert_eq!(connection.counters().strays, 3);
    let silent = tokio::time::timeout(Duration::from_secs(3600), subscription.next()).await;
    assert!(silent.is_err(), "{silent:?}");
    connection.close().await;
}

/// Whether a message came, by its method.
type Seen = Arc<Mutex<Vec<Value>>>;

fn saw(seen: &Seen, method: &str) -> usize {
    seen.lock().unwrap().iter().filter(|message| message["method"] == method).count()
}

#[tokio::test(start_paused = true)]
async fn closing_cancels_calls_in_flight() {
    for stateless in [false, true] {
        let (seen, called) = (Seen::default(), Arc::new(Notify::new()));
        let (record, heard) = (Arc::clone(&seen), Arc::clone(&called));
        let connection = open(&Thinker::new(0), move |message, outbox| {
            if opened(&message, outbox, stateless) {
                heard.notify_one();
            }
            record.lock().unwrap().push(message);
        })
        .await;
        let closing = async {
            called.notified().await;
            connection.close().await;
        };
        let (outcome, ()) = tokio::join!(call(&connection, "never"), closing);
        assert!(matches!(outcome, Err(CallError::OutcomeUnknown(_))), "{outcome:?}");
        assert_eq!(saw(&seen, "notifications/cancelled"), 1, "stateless: {stateless}");
    }
}

#[tokio::test(start_paused = true)]
async fn disconnect_drops_the_pending_prompt() {
    let question = json!({ "method": "elicitation/create", "params": form() });
    let round = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
    let person = Thinker::new(86_400);
    let connection = open(&person, always(round)).await;
    let asked = Arc::clone(&person.asked);
    let closing = async {
        while asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        connection.close().await;
    };
    let (outcome, ()) = tokio::join!(call(&connection, "ask"), closing);
    assert!(outcome.is_err_and(|error| error.disconnect_report().is_some()));
    person.dropped.notified().await;
}

/// Records who asks, and which pages are done.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Elicitor for Recorder {
    fn elicit(&self, source: RequestSource<'_>, _question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        self.0.lock().unwrap().push(format!("asked by {}", source.request.unwrap_or("nobody")));
        Box::pin(std::future::ready(ElicitationResponse::Decline))
    }

    fn page_done(&self, _: RequestSource<'_>, elicitation_id: &str) {
        self.0.lock().unwrap().push(format!("done {elicitation_id}"));
    }
}

#[tokio::test]
async fn elicitor_learns_the_id_of_a_request_and_the_end_of_a_page() {
    let mut waiting = Value::Null;
    let server = move |message: Value, outbox: &ClientSender| {
        if !opened(&message, outbox, false) {
            return;
        }
        if message["method"] == "tools/call" {
            waiting = message["id"].clone();
            let question = json!({"jsonrpc": "2.0", "id": "berth", "method": "elicitation/create", "params": form()});
            outbox.send(question.to_string());
        } else if message["id"] == "berth" {
            let (method, params) = ("notifications/elicitation/complete", json!({"elicitationId": "e-1"}));
            outbox.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
            answer(outbox, &waiting, done());
        }
    };
    let recorder = Recorder::default();
    let mut options = ConnectOptions::default();
    options.services = ClientServices::default().elicitation(recorder.clone());
    let connection = connect_local(Scripted(server), options).await.unwrap();
    call(&connection, "ask").await.unwrap();
    assert_eq!(*recorder.0.lock().unwrap(), ["asked by \"berth\"", "done e-1"]);
    connection.close().await;
}

#[tokio::test(start_paused = true)]
async fn completed_page_resumes_all_waiting_calls() {
    struct Visitor(Arc<Notify>);
    impl Elicitor for Visitor {
        fn supports_pages(&self) -> bool {
            true
        }
        fn elicit(&self, _: RequestSource<'_>, _question: Elicitation) -> BoxedFuture<ElicitationResponse> {
            let visited = Arc::clone(&self.0);
            Box::pin(async move {
                visited.notify_one();
                ElicitationResponse::Accept(None)
            })
        }
    }
    let visited = Arc::new(Notify::new());
    let mut calls = 0;
    let server = Scripted(move |message: Value, outbox: &ClientSender| {
        if !opened(&message, outbox, false) || message["method"] != "tools/call" {
            return;
        }
        calls += 1;
        if calls > 2 {
            return answer(outbox, &message["id"], done());
        }
        let page = json!({ "mode": "url", "message": "Sign in", "url": "https://a.example/", "elicitationId": "one" });
        let error = json!({ "code": -32042, "message": "first sign in", "data": { "elicitations": [page] } });
        outbox.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string());
        if calls == 2 {
            let outbox = outbox.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let params = json!({ "elicitationId": "one" });
                let text =
                    json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params });
                outbox.send(text.to_string());
            });
        }
    });
    let mut options = ConnectOptions::default();
    options.name = "scripted".to_owned();
    options.services = ClientServices::default().elicitation(Visitor(visited));
    let connection = connect_local(server, options).await.unwrap();
    let began = Instant::now();
    let (first, second) = tokio::join!(call(&connection, "a"), call(&connection, "b"));
    first.unwrap();
    second.unwrap();
    assert_eq!(began.elapsed().as_secs(), 1);
    connection.close().await;
}

/// G9.
#[tokio::test(start_paused = true)]
async fn page_error_without_valid_pages_is_returned_as_sent() {
    struct PageReader;
    impl Elicitor for PageReader {
        fn supports_pages(&self) -> bool {
            true
        }
        fn elicit(&self, _: RequestSource<'_>, _question: Elicitation) -> BoxedFuture<ElicitationResponse> {
            panic!("an error without valid pages asks nothing");
        }
    }
    for data in [json!({ "why": "closed" }), json!("closed"), json!({ "elicitations": [{ "mode": "url" }] })] {
        let sent = data.clone();
        let server = Scripted(move |message: Value, outbox: &ClientSender| {
            if opened(&message, outbox, false) && message["method"] == "tools/call" {
                let error = json!({ "code": -32042, "message": "no entry", "data": sent });
                outbox.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string());
            }
        });
        let mut options = ConnectOptions::default();
        options.name = "scripted".to_owned();
        options.services = ClientServices::default().elicitation(PageReader);
        let connection = connect_local(server, options).await.unwrap();
        let error = match call(&connection, "a").await.map(drop) {
            Err(CallError::ErrorResponse(error)) => error,
            other => panic!("{data}: {other:?}"),
        };
        assert_eq!((error.code, error.message.as_str()), (-32042, "no entry"));
        let received: Value = serde_json::from_str(error.data.unwrap().as_str()).unwrap();
        assert_eq!(received, data);
        connection.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_call_sends_nothing() {
    let seen = Seen::default();
    let record = Arc::clone(&seen);
    let connection = open(&Thinker::new(0), move |message, outbox| {
        if opened(&message, outbox, true) {
            answer(outbox, &message["id"], done());
        }
        record.lock().unwrap().push(message);
    })
    .await;
    let mut options = RequestOptions::default();
    options.meta = Some(RawJson::parse(r#"{"progressToken":1}"#).unwrap());
    let outcome = connection.call_tool("a", &RawJson::empty_object(), options).await;
    assert!(matches!(outcome, Err(CallError::Invalid(_))), "{outcome:?}");
    call(&connection, "a").await.unwrap();
    assert_eq!((saw(&seen, "notifications/cancelled"), saw(&seen, "tools/call")), (0, 1));
    connection.close().await;
}

#[tokio::test(start_paused = true)]
async fn oversized_server_request_does_not_fail_calls() {
    let mut waiting = Value::Null;
    let connection = open(&Thinker::new(0), move |message, outbox| {
        if !opened(&message, outbox, false) {
            return;
        }
        if message["method"] == "tools/call" {
            waiting = message["id"].clone();
            let huge = "x".repeat(9 << 20);
            let params = json!({ "messages": [huge] });
            let request = json!({ "id": waiting, "method": "sampling/createMessage", "params": params });
            outbox.send(request.to_string());
        } else if message["error"]["code"] == -32600 {
            answer(outbox, &waiting, done());
        }
    })
    .await;
    call(&connection, "a").await.unwrap();
    connection.close().await;
}
