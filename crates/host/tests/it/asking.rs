//! What servers ask reaches one asker, names the server, and is refused politely where nobody answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use wharf::tools::{ToolCaller, ToolInvocation};
use wharf::wire::ElicitationResponse;
use wharf::{Ask, Asker, CallError, CallOptions, Event, EventDelivery, Host, HostError, LocalFactory, RawJson};
use wharf_client::ClientSender;

use crate::fixture::{Scripted, none, open_builder, server, settings, tool};

/// A server whose tool answers with what it was answered, after it has put this question.
fn asking(question: Value) -> LocalFactory {
    Arc::new(move || {
        let question = question.clone();
        let act = move |message: Value, outbox: &ClientSender| {
            let result = match (message["method"].as_str(), &message["params"]["inputResponses"]["q"]) {
                (Some("server/discover"), _) => {
                    json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
                }
                (Some("tools/list"), _) => json!({ "tools": [{ "name": "ask", "inputSchema": {} }] }),
                (Some("tools/call"), Value::Null) => {
                    json!({ "resultType": "input_required", "inputRequests": { "q": question } })
                }
                (Some("tools/call"), answer) => {
                    json!({ "content": [{ "type": "text", "text": answer.to_string() }] })
                }
                _ => return,
            };
            outbox.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
        };
        Ok(Box::new(Scripted { act, end: Arc::default() }))
    })
}

/// Remembers what kind of question came for whom, and answers or lets the question go.
struct Person {
    heard: Mutex<Vec<(&'static str, String, Value)>>,
    answers: bool,
    samples: bool,
}

impl Person {
    fn new(answers: bool, samples: bool) -> Arc<Self> {
        Arc::new(Self { heard: Mutex::default(), answers, samples })
    }
}

struct At(Arc<Person>);

impl Asker for At {
    fn supports_sampling(&self) -> bool {
        self.0.samples
    }

    fn ask(&self, ask: Ask) {
        let (kind, server) = (ask.kind(), ask.server().to_string());
        let mut heard = self.0.heard.lock().unwrap();
        match ask {
            Ask::Elicitation(question, reply) => {
                heard.push((kind, server, question.question.message().into()));
                if self.0.answers {
                    reply.answer(ElicitationResponse::Accept(Some(RawJson::parse(r#"{"berth":7}"#).unwrap())));
                }
            }
            Ask::Sampling(question, reply) => {
                heard.push((kind, server, serde_json::from_str(question.request.raw.as_str()).unwrap()));
                if self.0.answers {
                    let said =
                        json!({ "role": "assistant", "content": { "type": "text", "text": "hm" }, "model": "m" });
                    reply.answer(Ok(RawJson::from_value(&said).unwrap()));
                }
            }
            _ => panic!("nothing else is asked here: {kind}"),
        }
    }
}

async fn host(question: Value, person: Option<&Arc<Person>>) -> Host {
    let mut builder = open_builder().local_with(server("quay"), settings(), asking(question));
    if let Some(person) = person {
        builder = builder.asker(Arc::new(At(Arc::clone(person))));
    }
    builder.start().await.unwrap()
}

async fn call(host: &Host) -> Result<String, HostError> {
    let reply = host.call(&tool("quay", "ask"), &none(), CallOptions::default()).await?;
    Ok(reply.text().unwrap())
}

fn form(field: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { field: { "type": "integer" } } });
    json!({ "method": "elicitation/create", "params": { "message": "Which berth?", "requestedSchema": schema } })
}

fn sampling(tokens: u64) -> Value {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": "hi" } }]);
    let params = json!({ "messages": messages, "maxTokens": tokens, "includeContext": "allServers" });
    json!({ "method": "sampling/createMessage", "params": params })
}

#[tokio::test(start_paused = true)]
async fn elicitation_names_its_server_and_returns_the_answer() {
    let person = Person::new(true, false);
    let host = host(form("berth"), Some(&person)).await;
    let mut events = host.events();
    let answer: Value = serde_json::from_str(&call(&host).await.unwrap()).unwrap();
    assert_eq!(answer, json!({ "action": "accept", "content": { "berth": 7 } }));
    let heard = person.heard.lock().unwrap().clone();
    assert_eq!(heard, [("elicitation", "quay".to_owned(), "Which berth?".into())]);
    loop {
        let Some(EventDelivery::Event(told)) = events.next().await else { panic!("the question is told") };
        if let Event::Asked { server, kind } = told.event {
            assert_eq!((server.as_str(), kind), ("quay", "elicitation"));
            break;
        }
    }
    host.close().await;
}

/// A person who takes 45 s for every form.
struct SlowPerson;

impl Asker for SlowPerson {
    fn ask(&self, ask: Ask) {
        let Ask::Elicitation(_, reply) = ask else { panic!("nothing else is asked here: {}", ask.kind()) };
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(45)).await;
            reply.answer(ElicitationResponse::Decline);
        });
    }
}

/// U6.
#[tokio::test(start_paused = true)]
async fn wait_for_a_form_is_counted_as_the_persons_time() {
    let builder = open_builder().local_with(server("quay"), settings(), asking(form("berth")));
    let host = builder.asker(Arc::new(SlowPerson)).start().await.unwrap();
    host.wait_until_settled().await;
    let call = ToolInvocation::new(none(), ToolCaller::person());
    let person_time = call.person_time.clone();
    host.registry().call("mcp__quay__ask", call).await.unwrap();
    assert!(person_time.total().abs_diff(Duration::from_secs(45)) < Duration::from_secs(1), "{person_time:?}");
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn unanswered_elicitation_is_declined() {
    let person = Person::new(false, true);
    let asked = host(form("berth"), Some(&person)).await;
    let answer: Value = serde_json::from_str(&call(&asked).await.unwrap()).unwrap();
    assert_eq!(answer, json!({ "action": "decline" }));
    asked.close().await;
}

#[tokio::test(start_paused = true)]
async fn form_asking_for_a_secret_is_declined_unprompted() {
    for field in ["password", "VPN p\u{430}ssword", "api_key"] {
        let person = Person::new(true, false);
        let host = host(
            json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema":
                { "type": "object", "properties": { field: { "type": "string" } } } } }),
            Some(&person),
        )
        .await;
        let answer: Value = serde_json::from_str(&call(&host).await.unwrap()).unwrap();
        assert_eq!(answer, json!({ "action": "decline" }), "{field}");
        assert!(person.heard.lock().unwrap().is_empty());
        host.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn capability_without_a_handler_is_not_declared() {
    for (question, person) in [
        (form("berth"), None),
        (sampling(10), Some(Person::new(true, false))),
        (json!({ "method": "roots/list" }), Some(Person::new(true, true))),
    ] {
        let host = host(question.clone(), person.as_ref()).await;
        let ended = call(&host).await;
        assert!(matches!(ended, Err(HostError::Call { error: CallError::Protocol(_), .. })), "{question} {ended:?}");
        host.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_has_no_context_and_a_token_budget() {
    let person = Person::new(true, true);
    let asked = host(sampling(60_000), Some(&person)).await;
    assert!(call(&asked).await.unwrap().contains("hm"));
    let (kind, server, request) = person.heard.lock().unwrap()[0].clone();
    assert_eq!((kind, server.as_str()), ("sampling", "quay"));
    assert!(request.get("includeContext").is_none(), "{request}");
    // The second one would exceed the day's hundred thousand.
    let second = call(&asked).await;
    assert!(second.as_ref().is_err() || !second.as_ref().unwrap().contains("hm"), "{second:?}");
    assert_eq!(person.heard.lock().unwrap().len(), 1);
    asked.close().await;
}
