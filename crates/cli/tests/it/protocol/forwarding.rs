//! Requirements of a gateway on a connection: questions that name their call, input rounds and clients that it forwards.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use wharf_client::{
    BoxedFuture, CallTag, ClientServices, ConnectOptions, Connection, DeclaredClient, Elicitor, InputHandling,
    InputRound, RequestOptions, RequestSource, ResultKind, RootsSource, connect_http,
};
use wharf_spec::HttpSpec;
use wharf_wire::{Elicitation, ElicitationResponse, LogLevel, RawJson, Revision, Root};

use super::host::{ALL, dial, open, text};
use crate::demo_http::client::Demo;

/// Answers with the number of the call that a question belongs to, as the name of the ship.
struct TagElicitor;

impl Elicitor for TagElicitor {
    fn elicit(&self, source: RequestSource<'_>, _: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let ship = source.call.map_or("unknown".to_owned(), |tag| format!("ship {}", tag.0));
        let content = raw(json!({ "email": "ada@harbour.example", "nights": 2, "ship": ship }));
        Box::pin(std::future::ready(ElicitationResponse::Accept(Some(content))))
    }
}

fn raw(value: Value) -> RawJson {
    RawJson::from_value(&value).unwrap()
}

/// Makes two calls at once and returns the names of their ships.
async fn booked_ships(connection: &Connection) -> [String; 2] {
    let book = async |number| {
        let options = RequestOptions::default().tag(CallTag(number));
        let result = connection.call_tool("book_berth", &RawJson::empty_object(), options).await.unwrap();
        let result: Value = serde_json::from_str(result.structured.unwrap().as_str()).unwrap();
        result["content"]["ship"].as_str().unwrap().to_owned()
    };
    let (first, second) = tokio::join!(book(1), book(2));
    [first, second]
}

#[tokio::test(flavor = "multi_thread")]
async fn question_over_http_names_its_call_in_both_eras() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let demo = Demo::start(&["--http", "127.0.0.1:0", "--revision", revision.as_str()]);
        let mut options = ConnectOptions::default();
        options.services = ClientServices::default().elicitation(TagElicitor);
        let connection =
            connect_http(&HttpSpec::new(format!("http://{}{}", demo.address, demo.path).parse().unwrap()), options)
                .await
                .unwrap();
        assert_eq!(connection.facts().revision, revision);
        assert_eq!(booked_ships(&connection).await, ["ship 1", "ship 2"], "{revision}");
        connection.close().await;
    }
}

/// Over stdio only input rounds tell the call: a request of the handshake era names none.
#[tokio::test]
async fn question_over_stdio_names_its_call_in_the_stateless_era_only() {
    for (revision, expected) in
        [(Revision::V2025_11_25, ["unknown", "unknown"]), (Revision::V2026_07_28, ["ship 1", "ship 2"])]
    {
        let connection = dial(revision, ClientServices::default().elicitation(TagElicitor), None).await;
        assert_eq!(booked_ships(&connection).await, expected, "{revision}");
        connection.close().await;
    }
}

#[tokio::test]
async fn forwarded_input_round_completes_the_call() {
    let harbour = open(Revision::V2026_07_28).await;
    let mut options = RequestOptions::default();
    options.inputs = InputHandling::Forward;
    let arguments = RawJson::empty_object();
    let call = |options: RequestOptions| harbour.connection.call_tool_raw("book_berth", &arguments, options);
    let asked = call(options.clone()).await.unwrap();
    assert_eq!(asked.kind, ResultKind::InputRequired);
    assert!(harbour.questions().is_empty(), "the caller answers, not this client");
    let asked: Value = serde_json::from_str(asked.result.as_str()).unwrap();
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let content = json!({ "email": "ada@harbour.example", "nights": 2, "ship": "Argo" });
    options.input_round = Some(InputRound {
        responses: Some(raw(json!({ key: { "action": "accept", "content": content } }))),
        state: asked.get("requestState").map(|state| raw(state.clone())),
    });
    let answer = call(options.clone()).await.unwrap();
    assert_eq!(answer.kind, ResultKind::Complete);
    assert!(answer.result.as_str().contains("ada@harbour.example"), "{}", answer.result.as_str());
    options.input_round = Some(InputRound { responses: Some(raw(json!([]))), state: None });
    let refused = call(options).await.unwrap_err();
    assert_eq!(refused.to_string(), "invalid request: `inputResponses` has the wrong type");
    harbour.connection.close().await;
}

/// A handshake server has no input rounds: their members must not reach it.
#[tokio::test]
async fn input_round_of_a_handshake_server_is_rejected() {
    let harbour = open(Revision::V2025_11_25).await;
    let params = raw(json!({ "name": "echo", "arguments": { "text": "a" }, "requestState": "sealed" }));
    let refused = harbour.connection.request("tools/call", Some(&params), RequestOptions::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("takes no `inputResponses` or `requestState`"), "{refused}");
    assert_eq!(harbour.sent("tools/call"), 0);
    harbour.connection.close().await;
}

#[tokio::test]
async fn forwarded_client_is_declared_for_its_call_only() {
    let harbour = open(Revision::V2026_07_28).await;
    let capabilities = json!({ "elicitation": { "form": {} } });
    let info = json!({ "name": "another client", "version": "7" });
    let client = DeclaredClient::default().capabilities(raw(capabilities.clone())).info(raw(info.clone()));
    let mut options = RequestOptions::default();
    options.client = Some(Arc::new(client.log_level(LogLevel::Error)));
    let arguments = raw(json!({ "text": "a" }));
    harbour.connection.call_tool("echo", &arguments, options).await.unwrap();
    harbour.connection.call_tool("echo", &arguments, RequestOptions::default()).await.unwrap();
    let sent = harbour.sent_params("tools/call");
    let member = |at: usize, name: &str| sent[at]["_meta"][format!("io.modelcontextprotocol/{name}")].clone();
    assert_eq!(member(0, "clientCapabilities"), capabilities);
    assert_eq!((member(0, "clientInfo"), member(0, "logLevel")), (info, json!("error")));
    assert_eq!(member(0, "protocolVersion"), "2026-07-28");
    assert_eq!((&member(1, "clientInfo")["name"], member(1, "logLevel")), (&json!("wharf"), json!("info")));
    harbour.connection.close().await;
}

#[tokio::test]
async fn trace_context_of_the_caller_is_sent_unchanged() {
    for revision in ALL {
        let harbour = open(revision).await;
        let trace =
            json!({ "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1" });
        let mut options = RequestOptions::default();
        options.meta = Some(raw(trace.clone()));
        harbour.connection.call_tool("echo", &raw(json!({ "text": "a" })), options).await.unwrap();
        let meta = &harbour.sent_params("tools/call")[0]["_meta"];
        for name in ["traceparent", "tracestate"] {
            assert_eq!(meta[name], trace[name], "{revision}");
        }
        harbour.connection.close().await;
    }
}

/// Roots that are known only after the server has asked for them.
struct LateRoots {
    asked: Arc<Notify>,
    released: Arc<Notify>,
}

impl RootsSource for LateRoots {
    fn roots(&self, _: RequestSource<'_>) -> BoxedFuture<Vec<Root>> {
        let released = Arc::clone(&self.released);
        self.asked.notify_one();
        Box::pin(async move {
            released.notified().await;
            vec![Root { uri: "file:///late".to_owned(), name: None }]
        })
    }
}

#[tokio::test]
async fn roots_are_answered_when_they_are_known() {
    for revision in ALL {
        let (asked, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let roots = LateRoots { asked: Arc::clone(&asked), released: Arc::clone(&released) };
        let connection = dial(revision, ClientServices::default().roots(roots), None).await;
        let arguments = RawJson::empty_object();
        let call = connection.call_tool("show_roots", &arguments, RequestOptions::default());
        let release = async {
            asked.notified().await;
            released.notify_one();
        };
        let (result, ()) = tokio::join!(call, release);
        let result = result.unwrap();
        assert!(text(&result).contains("file:///late"), "{revision}: {}", result.raw.as_str());
        connection.close().await;
    }
}
