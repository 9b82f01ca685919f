//! Questions for permission, which the client whose call waits is asked.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf::Host;
use wharf::policy::Rule;
use wharf::wire::{ElicitationResponse, Era};
use wharf_gateway::{AnswerError, Gateway, GatewayAsker, QuestionKind, ViewOptions};

use crate::client::Transport;
use crate::fixture::{Fixture, options, text};
use crate::server::{ReceivedMessages, add_server};

async fn fixture(era: Era, transport: Transport) -> Fixture {
    let (gateway, received) = gateway(era).await;
    Fixture::from_gateway(gateway, received, transport).await
}

async fn gateway(era: Era) -> (Gateway, ReceivedMessages) {
    let (received, asker) = (ReceivedMessages::default(), GatewayAsker::new());
    let builder = Host::builder().asker(Arc::new(asker.clone())).rules([Rule::ask("mcp__s__*")]);
    let host = add_server(builder, era, &received).start().await.unwrap();
    host.wait_until_settled().await;
    let instances = received.clone();
    let gateway = Gateway::builder(host).asker(asker).options(options(Duration::from_secs(300)));
    (gateway.instances(move |_| Some(add_server(Host::builder(), era, &instances))).build(), received)
}

/// A gateway whose calls wait for an answer elsewhere if their client cannot be asked.
async fn waiting_fixture(wait: Duration) -> Fixture {
    fixture_of_principal(wait, None).await
}

async fn fixture_of_principal(wait: Duration, principal: Option<&str>) -> Fixture {
    let (gateway, received) = gateway(Era::Stateless).await;
    let mut view = ViewOptions::default();
    view.principal = principal.map(Into::into);
    (view.unasked.wait, view.unasked.hint) = (wait, Some("answer it at the harbour".into()));
    Fixture::from_gateway(gateway.with_view(view), received, Transport::Stdio).await
}

/// Waits for a question and returns its number.
async fn question_id(gateway: &Gateway) -> u64 {
    loop {
        if let [question] = &gateway.questions().list()[..] {
            return question.id;
        }
        tokio::task::yield_now().await;
    }
}

fn accept(decision: &str) -> ElicitationResponse {
    let content = json!({ "decision": decision }).to_string();
    ElicitationResponse::Accept(Some(wharf::RawJson::parse(content).unwrap()))
}

#[tokio::test]
async fn call_of_a_client_that_cannot_be_asked_waits_for_an_answer_elsewhere() {
    let fixture = waiting_fixture(Duration::from_secs(600)).await;
    let questions = fixture.gateway.questions();
    let mut ada = fixture.session(json!({})).await;
    ada.request(1, "tools/call", call("plain")).await;
    let id = question_id(&fixture.gateway).await;
    let open = &questions.list()[0];
    assert_eq!((open.server.as_str(), open.target.as_str()), ("s", "s__plain"));
    assert!(open.principal.starts_with("session-"), "{open:?}");
    assert_eq!(open.permission.as_ref().unwrap().arguments.as_str(), r#"{"a":1}"#);
    assert!(open.time_left > Duration::from_secs(590), "{open:?}");
    questions.answer(id, &accept("session")).unwrap();
    assert_eq!(text(&ada.response(1).await), "not asked");
    ada.request(2, "tools/call", call("plain")).await;
    assert_eq!(text(&ada.response(2).await), "not asked", "the answer holds for the session");
    let mut bob = fixture.session(json!({})).await;
    bob.request(1, "tools/call", call("plain")).await;
    questions.answer(question_id(&fixture.gateway).await, &accept("no")).unwrap();
    let refused = bob.response(1).await;
    assert!(text(&refused).contains("denied by the user"), "it holds for nobody else: {refused}");
    let mut stateless = fixture.stateless(json!({}));
    let (answered, ()) = tokio::join!(stateless.call("tools/call", call("plain")), async {
        let id = question_id(&fixture.gateway).await;
        assert_eq!(questions.answer(id, &accept("session")), Err(AnswerError::NotOffered));
        questions.answer(id, &accept("once")).unwrap();
    });
    assert_eq!(text(&answered), "not asked");
    assert_eq!(fixture.received.count("tools/call"), 3);
    ada.close().await;
    bob.close().await;
    stateless.close().await;
    fixture.close().await;
}

/// Calls of one session are asked about one after the other. None of them waits longer than its own time.
#[tokio::test]
async fn call_that_nobody_answers_is_refused_in_time() {
    let wait = Duration::from_secs(1);
    let fixture = waiting_fixture(wait).await;
    let mut session = fixture.session(json!({})).await;
    let begin = std::time::Instant::now();
    for id in 1..=3 {
        session.request(id, "tools/call", call("plain")).await;
    }
    for id in 1..=3 {
        let refused = session.response(id).await;
        let refused = text(&refused);
        assert!(refused.contains("mcp__s__plain") && refused.contains("at the harbour"), "{refused}");
    }
    assert!(begin.elapsed() < wait * 3, "{:?}", begin.elapsed());
    assert!(fixture.gateway.questions().list().is_empty());
    session.close().await;
    fixture.close().await;
}

#[tokio::test]
async fn sessions_of_one_principal_have_64_requests_in_progress_together() {
    let fixture = fixture_of_principal(Duration::from_secs(600), Some("key:ci")).await;
    let (mut ada, mut bob) = (fixture.session(json!({})).await, fixture.session(json!({})).await);
    for id in 1..=40 {
        ada.request(id, "tools/call", call("plain")).await;
    }
    for id in 1..=25 {
        bob.request(id, "tools/call", call("plain")).await;
    }
    // Requests of a session are received in order, those of two sessions are not.
    let (first, is_ada) = tokio::select! {
        message = ada.next() => (message, true),
        message = bob.next() => (message, false),
    };
    assert_eq!(first["error"]["data"]["reason"], "too_many_requests", "{first}");
    assert!(first["error"]["data"]["retryAfterMs"].is_u64(), "{first}");
    let (busy, mut other) = if is_ada { (bob, ada) } else { (ada, bob) };
    busy.close().await;
    let questions = fixture.gateway.questions();
    while questions.list().len() > 1 {
        tokio::task::yield_now().await;
    }
    other.request(99, "prompts/list", json!({})).await;
    let listed = other.response(99).await;
    assert!(listed["result"]["prompts"].is_array(), "the other session has made room: {listed}");
    other.close().await;
    fixture.close().await;
}

#[tokio::test]
async fn question_ends_with_its_call() {
    let fixture = waiting_fixture(Duration::from_secs(600)).await;
    let mut session = fixture.session(json!({})).await;
    session.request(1, "tools/call", call("plain")).await;
    let id = question_id(&fixture.gateway).await;
    session.close().await;
    while !fixture.gateway.questions().list().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.gateway.questions().answer(id, &accept("once")), Err(AnswerError::Unknown));
    assert_eq!(fixture.received.count("tools/call"), 0);
    fixture.close().await;
}

fn call(name: &str) -> Value {
    json!({"name": format!("s__{name}"), "arguments": {"a": 1}})
}

fn decision(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

#[tokio::test]
async fn session_is_asked_and_its_answer_holds_for_it_alone() {
    for (era, transport) in
        [(Era::Handshake, Transport::Stdio), (Era::Stateless, Transport::Http), (Era::Handshake, Transport::Sse)]
    {
        let fixture = fixture(era, transport).await;
        let mut ada = fixture.session(forms()).await;
        ada.request(1, "tools/call", call("plain")).await;
        let question = ada.question().await;
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.contains("`plain`") && message.contains(r#"{"a":1}"#), "{message}");
        let open = fixture.gateway.questions().list();
        assert_eq!((open.len(), open[0].kind), (1, QuestionKind::Permission));
        ada.respond(&question, Ok(decision("session"))).await;
        assert_eq!(text(&ada.response(1).await), "not asked");
        ada.request(2, "tools/call", call("plain")).await;
        assert_eq!(text(&ada.response(2).await), "not asked", "the answer is remembered");
        let mut bob = fixture.session(forms()).await;
        bob.request(1, "tools/call", call("plain")).await;
        let question = bob.question().await;
        bob.respond(&question, Ok(json!({"action": "decline"}))).await;
        let refused = bob.response(1).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert_eq!(fixture.received.count("tools/call"), 2);
        ada.close().await;
        bob.close().await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn stateless_client_is_asked_by_a_result() {
    for era in [Era::Handshake, Era::Stateless] {
        for transport in [Transport::Stdio, Transport::Http] {
            let fixture = fixture(era, transport).await;
            for (answer, is_allowed) in
                [(decision("once"), true), (decision("no"), false), (json!({"action": "cancel"}), false)]
            {
                let mut client = fixture.stateless(forms());
                let asked = client.call("tools/call", call("plain")).await;
                assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
                let mut params = call("plain");
                params["inputResponses"] = json!({ "q1": answer });
                params["requestState"] = asked["result"]["requestState"].clone();
                let answered = client.call("tools/call", params).await;
                assert_eq!(answered["result"]["isError"] != true, is_allowed, "{answered}");
                client.close().await;
            }
            assert_eq!(fixture.received.count("tools/call"), 1);
            fixture.close().await;
        }
    }
}

/// The permission of the first round holds for the rounds of the same call.
#[tokio::test]
async fn question_of_the_server_follows_the_question_for_permission() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = fixture(era, Transport::Stdio).await;
        let mut session = fixture.session(forms()).await;
        session.request(1, "tools/call", call("form")).await;
        for answer in [decision("once"), json!({"action": "accept", "content": {"berth": 3}})] {
            let question = session.question().await;
            session.respond(&question, Ok(answer)).await;
        }
        assert!(text(&session.response(1).await).contains(r#""berth":3"#));
        let mut client = fixture.stateless(forms());
        let mut response = client.call("tools/call", call("form")).await;
        for answer in [decision("once"), json!({"action": "accept", "content": {"berth": 4}})] {
            let key = response["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
            let mut params = call("form");
            params["inputResponses"] = json!({ key: answer });
            params["requestState"] = response["result"]["requestState"].clone();
            response = client.call("tools/call", params).await;
        }
        assert!(text(&response).contains(r#""berth":4"#), "{response}");
        session.close().await;
        client.close().await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn client_that_cannot_be_asked_is_refused_with_the_rule() {
    let fixture = fixture(Era::Handshake, Transport::Stdio).await;
    for capabilities in [json!({}), json!({"sampling": {}, "roots": {}})] {
        let mut session = fixture.session(capabilities.clone()).await;
        session.request(1, "tools/call", call("plain")).await;
        let refused = session.response(1).await;
        assert!(text(&refused).contains("mcp__s__plain"), "{refused}");
        let mut client = fixture.stateless(capabilities);
        let refused = client.call("tools/call", call("plain")).await;
        assert!(text(&refused).contains("mcp__s__plain"), "{refused}");
        session.close().await;
        client.close().await;
    }
    assert_eq!(fixture.received.count("tools/call"), 0);
    fixture.close().await;
}

#[tokio::test]
async fn permission_can_be_given_elsewhere() {
    let fixture = fixture(Era::Stateless, Transport::Stdio).await;
    let mut session = fixture.session(forms()).await;
    session.request(1, "tools/call", call("plain")).await;
    session.question().await;
    let questions = fixture.gateway.questions();
    let content = wharf::RawJson::parse(r#"{"decision":"once"}"#).unwrap();
    questions.answer(questions.list()[0].id, &ElicitationResponse::Accept(Some(content))).unwrap();
    assert_eq!(text(&session.response(1).await), "not asked");
    session.close().await;
    fixture.close().await;
}
