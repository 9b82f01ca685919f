//! Handlers that ask the host: a person, a model, the directories; and handlers that log.

use std::collections::BTreeMap;

use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, CallToolResponse, InputRequiredResult, ServerNotification, ServerRequest};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wharf_client::{
    BoxedFuture, ClientServices, ConnectOptions, Connection, Elicitor, LogSink, NegotiationMode, RequestSource,
    RootsSource, Sampler, SamplingError, connect_local,
};
use wharf_wire::{Elicitation, ElicitationResponse, LogLevel, LogMessage, RawJson, Root, SamplingRequest};

use crate::handler::{Context, call, connected, said, server, told};

/// Answers everything the same way.
struct Host;

impl Elicitor for Host {
    fn elicit(&self, _: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        assert_eq!(question.message(), "Which berth?");
        let content = RawJson::parse(r#"{"berth":"seven"}"#).unwrap();
        Box::pin(std::future::ready(ElicitationResponse::Accept(Some(content))))
    }
}

impl Sampler for Host {
    fn sample(&self, _: RequestSource<'_>, request: SamplingRequest) -> BoxedFuture<Result<RawJson, SamplingError>> {
        assert_eq!(request.max_tokens, 9);
        let message = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "a poem" } });
        Box::pin(std::future::ready(Ok(RawJson::from_value(&message).unwrap())))
    }
}

impl RootsSource for Host {
    fn roots(&self, _: RequestSource<'_>) -> BoxedFuture<Vec<Root>> {
        Box::pin(std::future::ready(vec![Root { uri: "file:///quay".to_owned(), name: None }]))
    }
}

struct Log(mpsc::UnboundedSender<String>);

impl LogSink for Log {
    fn log(&self, _: RequestSource<'_>, message: LogMessage) {
        let _ = self.0.send(message.data.as_str().to_owned());
    }
}

const QUESTIONS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

fn question(method: &str) -> Value {
    let params = match method {
        "elicitation/create" => json!({ "mode": "form", "message": "Which berth?", "requestedSchema": {
            "type": "object", "properties": { "berth": { "type": "string" } }, "required": ["berth"] } }),
        "sampling/createMessage" => {
            json!({ "maxTokens": 9, "messages": [{ "role": "user", "content": { "type": "text", "text": "Hm?" } }] })
        }
        _ => return json!({ "method": method }),
    };
    json!({ "method": method, "params": params })
}

async fn with_services(server: impl wharf_client::LocalServer, negotiation: NegotiationMode) -> (Connection, Logged) {
    let (log, logged) = mpsc::unbounded_channel();
    let mut options = ConnectOptions::default();
    options.negotiation = negotiation;
    let services = ClientServices::default().elicitation(Host).sampling(Host).roots(Host);
    options.services = services.logs(LogLevel::Info, Log(log));
    (connect_local(server, options).await.unwrap(), logged)
}

type Logged = mpsc::UnboundedReceiver<String>;

fn assert_answered(answers: &str) {
    for expected in ["seven", "a poem", "file:///quay"] {
        assert!(answers.contains(expected), "{expected} is not in {answers}");
    }
}

#[tokio::test]
async fn handshake_handler_asks_through_its_peer() {
    let asking = server(|_request, context: Context| async move {
        let mut answers = Vec::new();
        for method in QUESTIONS {
            let request: ServerRequest = serde_json::from_value(question(method)).unwrap();
            answers.push(serde_json::to_string(&context.peer.send_request(request).await.unwrap()).unwrap());
        }
        Ok(said(answers.join("\n")))
    });
    let (connection, _) = with_services(asking, NegotiationMode::Handshake).await;
    assert_answered(told(&call(&connection, "ask", "").await.unwrap()));
}

#[tokio::test]
async fn stateless_handler_asks_by_its_result() {
    fn ask(request: &CallToolRequestParams) -> CallToolResponse {
        match &request.input_responses {
            Some(answers) => {
                assert_eq!(request.request_state.as_deref(), Some("so far"));
                said(serde_json::to_string(answers).unwrap())
            }
            None => {
                let questions = QUESTIONS.map(|method| (method.to_owned(), question(method)));
                let questions: BTreeMap<String, Value> = questions.into_iter().collect();
                let questions = serde_json::from_value(json!(questions)).unwrap();
                InputRequiredResult::new(Some(questions), Some("so far".to_owned())).into()
            }
        }
    }
    let asking = server(|request, _context| async move { Ok(ask(&request)) });
    let (connection, _) = with_services(asking, NegotiationMode::Automatic).await;
    assert_answered(told(&call(&connection, "ask", "").await.unwrap()));
}

#[tokio::test]
async fn stateless_peer_request_is_refused_immediately() {
    let asking = server(|_request, context: Context| async move {
        let request: ServerRequest = serde_json::from_value(question("roots/list")).unwrap();
        match context.peer.send_request(request).await {
            Err(ServiceError::McpError(error)) => Ok(said(error.message)),
            other => panic!("not refused: {other:?}"),
        }
    });
    let connection = connected(asking, NegotiationMode::Automatic).await;
    let result = call(&connection, "ask", "").await.unwrap();
    assert!(!result.is_error && told(&result).contains("InputRequiredResult"), "{}", result.raw.as_str());
    assert_eq!(connection.counters().unwanted_requests, 0);
}

#[tokio::test]
async fn handler_logs_are_delivered_in_both_eras() {
    for negotiation in crate::handler::BOTH {
        let logging = server(|_request, context: Context| async move {
            let params = json!({ "level": "warning", "data": "low water" });
            let message = json!({ "method": "notifications/message", "params": params });
            let message: ServerNotification = serde_json::from_value(message).unwrap();
            context.peer.send_notification(message).await.unwrap();
            Ok(said("logged"))
        });
        let (connection, mut logged) = with_services(logging, negotiation).await;
        call(&connection, "log", "").await.unwrap();
        assert!(logged.try_recv().unwrap().contains("low water"), "{negotiation:?}");
    }
}
