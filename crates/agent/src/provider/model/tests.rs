use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use wharf_net::NetOptions;
use wharf_spec::Secret;
use wharf_testkit::transport_faults::{AcceptedConnection, Endpoint, read_request};

use super::*;
use crate::conversation::{Conversation, ConversationTurn, TurnBlock, TurnRole};
use crate::provider::fixtures::provider;
use crate::provider::{ModelEvent, StopReason, ToolChoice};

mod thinking;

/// A loopback API that returns scripted responses, each on a new connection, and records the requests.
struct LoopbackApi {
    endpoint: Endpoint,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl LoopbackApi {
    fn start(answers: Vec<String>) -> Self {
        let asked = Arc::<Mutex<Vec<(String, String)>>>::default();
        let (notes, answers) = (Arc::clone(&asked), Mutex::new(answers.into_iter()));
        let endpoint = Endpoint::start(move |mut guest| {
            let Some(request) = receive(&mut guest) else { return };
            notes.lock().unwrap().push(request);
            let answer = answers.lock().unwrap().next().unwrap_or_default();
            let _ = guest.write_all(answer.as_bytes());
        });
        Self { endpoint: endpoint.unwrap(), asked }
    }

    async fn model(&self, format: ApiFormat, key: Option<&str>) -> Model {
        let mut provider = provider(format, &format!("http://{}", self.endpoint.address()));
        provider.key = key.map(Secret::new);
        Model::new(provider, Net::open(&NetOptions::default()).await.unwrap()).unwrap()
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

fn receive(guest: &mut AcceptedConnection) -> Option<(String, String)> {
    let request = read_request(guest).ok()??;
    Some((request.head.clone(), request.text()))
}

fn http_response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn stream_response(events: &[&str]) -> String {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    http_response("200 OK", "Content-Type: text/event-stream; charset=utf-8\r\n", &body)
}

fn conversation() -> Conversation {
    let turn = ConversationTurn { role: TurnRole::User, blocks: vec![TurnBlock::Text("hi".into())] };
    Conversation { system: None, turns: vec![turn] }
}

/// Returns all events of a response, including retry delays.
async fn all_events(model: &Model) -> Result<Vec<ModelEvent>, ModelError> {
    let (conversation, tools) = (conversation(), Arc::default());
    let request =
        CompletionRequest { conversation: &conversation, tools: &tools, tool_choice: ToolChoice::Auto, effort: None };
    let mut events = Vec::new();
    let mut stream = model.stream_with_retry_events(request, |wait| events.push(wait)).await?;
    while let Some(event) = stream.next().await {
        events.push(event?);
    }
    Ok(events)
}

#[tokio::test]
async fn each_format_has_its_endpoint_and_response_decoder() {
    let anthropic = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hello"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let chat = [r#"{"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}]}"#, "[DONE]"];
    let responses = [
        r#"{"type":"response.output_text.delta","delta":"hello"}"#,
        r#"{"type":"response.completed","response":{"output":[{"type":"message","content":[{"text":"hello"}]}]}}"#,
    ];
    for (format, events, place, key) in [
        (ApiFormat::Anthropic, anthropic, "/v1/messages", "x-api-key: k-1"),
        (ApiFormat::ChatCompletions, chat, "/v1/chat/completions", "authorization: Bearer k-1"),
        (ApiFormat::Responses, responses, "/v1/responses", "authorization: Bearer k-1"),
    ] {
        let api = LoopbackApi::start(vec![stream_response(&events)]);
        let events = all_events(&api.model(format, Some("k-1")).await).await.unwrap();
        assert_eq!(events.first(), Some(&ModelEvent::TextDelta("hello".into())), "{format}");
        assert!(events.contains(&ModelEvent::BlockDone(TurnBlock::Text("hello".into()))), "{format}");
        assert_eq!(events.last(), Some(&ModelEvent::Done { stop: StopReason::EndTurn }), "{format}");
        let (head, body) = api.requests().remove(0);
        assert!(head.starts_with(&format!("POST {place} HTTP/1.1")) && head.contains(key), "{head}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["stream"], true);
    }
}

#[tokio::test]
async fn overload_responses_are_retried_up_to_the_limit() {
    let now = "Retry-After: 0\r\n";
    let done = stream_response(&[r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#]);
    let busy = || http_response("429 Too Many Requests", now, "");
    let down = || http_response("503 Service Unavailable", now, "");
    let api = LoopbackApi::start(vec![busy(), down(), http_response("529 Overloaded", now, ""), done.clone()]);
    let model = api.model(ApiFormat::ChatCompletions, None).await;
    let events = all_events(&model).await.unwrap();
    let statuses = events.iter().filter_map(|event| match event {
        ModelEvent::Waiting { time: Duration::ZERO, because: ModelError::Refused { status, .. } } => Some(*status),
        _ => None,
    });
    assert_eq!(statuses.collect::<Vec<_>>(), [429, 503, 529]);
    assert_eq!(events[3..], [ModelEvent::Done { stop: StopReason::EndTurn }]);
    assert_eq!(api.requests().len(), 4);
    let api = LoopbackApi::start((0..6).map(|_| busy()).chain([done]).collect());
    let error = all_events(&api.model(ApiFormat::ChatCompletions, None).await).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 429, .. }), "{error}");
    assert_eq!(api.requests().len(), 6);
}

#[tokio::test]
async fn started_response_is_not_retried() {
    let overloaded = r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let api = LoopbackApi::start(vec![stream_response(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#, overloaded])]);
    let error = all_events(&api.model(ApiFormat::ChatCompletions, None).await).await.unwrap_err();
    assert!(matches!(&error, ModelError::Failed(message) if message.text == "Overloaded"), "{error}");
    assert_eq!(api.requests().len(), 1);
    let api = LoopbackApi::start(vec![stream_response(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#])]);
    assert_eq!(all_events(&api.model(ApiFormat::ChatCompletions, None).await).await, Err(ModelError::Incomplete));
}

#[tokio::test]
async fn credentials_in_error_messages_are_redacted() {
    let message = r#"{"error":{"message":"no token-0001","type":"bad_token-0001"}}"#;
    let begun = r#"{"choices":[{"delta":{"content":"x"}}]}"#;
    for answer in
        [http_response("400 Bad Request", "", message), stream_response(&[message]), stream_response(&[begun, message])]
    {
        let api = LoopbackApi::start(vec![answer]);
        let mut provider = api.model(ApiFormat::ChatCompletions, None).await.provider().clone();
        provider.headers.push(("Authorization".into(), Secret::new("Bearer token-0001")));
        let model = Model::new(provider, Net::open(&NetOptions::default()).await.unwrap()).unwrap();
        let error = all_events(&model).await.unwrap_err().to_string();
        assert!(error.ends_with(": no *** (bad_***)"), "{error}");
    }
}

#[tokio::test]
async fn failed_requests_report_actionable_errors() {
    let refused =
        |key: &str| http_response("401 Unauthorized", "", &format!(r#"{{"error":{{"message":"bad key {key}"}}}}"#));
    let page = http_response("200 OK", "Content-Type: text/html\r\n", "<h1>Welcome</h1>");
    let long = r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"}}"#;
    for (key, answer, expected) in [
        (None, refused(""), "127.0.0.1 requires an API key and none is set (usually in `ANTHROPIC_API_KEY`): bad key "),
        (
            Some("key-0001"),
            refused("key-0001"),
            "127.0.0.1 rejected the API key (usually set in `ANTHROPIC_API_KEY`): bad key ***",
        ),
        (None, page, "model API did not return an event stream: <h1>Welcome</h1>"),
        (
            None,
            http_response("404 Not Found", "", r#"{"error":"model not found"}"#),
            "model API returned HTTP 404: model not found",
        ),
        (
            None,
            http_response("400 Bad Request", "", long),
            "model API returned HTTP 400: prompt is too long: 9 tokens (invalid_request_error)",
        ),
    ] {
        let api = LoopbackApi::start(vec![answer]);
        let error = all_events(&api.model(ApiFormat::Anthropic, key).await).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.needs_key(), expected.contains("key"), "{error}");
        assert_eq!(error.exceeds_context(), expected.contains("too long"), "{error}");
        assert_eq!(api.requests().len(), 1);
    }
}
