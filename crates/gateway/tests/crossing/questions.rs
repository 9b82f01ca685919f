//! Who is asked, by which instance, and what is refused.

use std::time::Duration;

use serde_json::{Value, json};
use wharf::RawJson;
use wharf::wire::{ElicitationResponse, Era};
use wharf_gateway::{AnswerError, QuestionKind};

use crate::client::Transport;
use crate::fixture::{Fixture, all_capabilities, options, text};

const LONG: Duration = Duration::from_secs(300);

fn call(name: &str) -> Value {
    json!({"name": format!("s__{name}"), "arguments": {}})
}

fn retry(mut params: Value, asked: &Value, answer: Value) -> Value {
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
    params["inputResponses"] = json!({ key: answer });
    params["requestState"] = asked["result"]["requestState"].clone();
    params
}

#[tokio::test]
async fn state_of_another_call_is_refused() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = Fixture::new(era, Transport::Stdio, options(LONG)).await;
        let mut client = fixture.stateless(all_capabilities());
        let asked = client.call("tools/call", call("form")).await;
        let answer = json!({"action": "decline"});
        let mut other_arguments = retry(call("form"), &asked, answer.clone());
        other_arguments["arguments"]["x"] = 1.into();
        let mut changed = retry(call("form"), &asked, answer.clone());
        changed["requestState"] = format!("A{}", asked["result"]["requestState"].as_str().unwrap()).into();
        for wrong in [other_arguments, changed, retry(call("plain"), &asked, answer)] {
            assert_eq!(client.call("tools/call", wrong).await["error"]["code"], -32602);
        }
        client.close().await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn parked_call_is_continued_once() {
    let fixture = Fixture::new(Era::Handshake, Transport::Stdio, options(LONG)).await;
    let mut client = fixture.stateless(all_capabilities());
    let asked = client.call("tools/call", call("form")).await;
    assert_eq!(fixture.gateway.parked_calls(), 1);
    let params = retry(call("form"), &asked, json!({"action": "decline"}));
    assert_eq!(text(&client.call("tools/call", params.clone()).await), r#"{"action":"decline"}"#);
    let again = client.call("tools/call", params).await;
    assert_eq!(again["error"]["data"]["reason"], "outcome_unknown", "{again}");
    assert_eq!(fixture.received.count("tools/call"), 1, "the call was sent once");
    client.close().await;
    fixture.close().await;
}

#[tokio::test]
async fn retry_without_answers_is_asked_again() {
    let fixture = Fixture::new(Era::Handshake, Transport::Http, options(LONG)).await;
    let mut client = fixture.stateless(all_capabilities());
    let mut asked = client.call("tools/call", call("form")).await;
    for _ in 0..3 {
        let mut params = call("form");
        params["requestState"] = asked["result"]["requestState"].clone();
        asked = client.call("tools/call", params).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
    let params = retry(call("form"), &asked, json!({"action": "cancel"}));
    assert_eq!(text(&client.call("tools/call", params).await), r#"{"action":"cancel"}"#);
    fixture.close().await;
}

#[tokio::test]
async fn client_that_declares_nothing_is_not_asked_and_shares_the_server() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = Fixture::new(era, Transport::Stdio, options(LONG)).await;
        let mut session = fixture.session(json!({})).await;
        session.request(1, "tools/call", call("form")).await;
        assert_eq!(text(&session.response(1).await), "not asked");
        let mut stateless = fixture.stateless(json!({}));
        assert_eq!(text(&stateless.call("tools/call", call("form")).await), "not asked");
        assert_eq!(
            (fixture.gateway.instances(), fixture.received.count("initialize")),
            (0, usize::from(era == Era::Handshake))
        );
        session.close().await;
        stateless.close().await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn instance_serves_one_client_at_a_time_and_the_next_one_uses_it() {
    let mut limits = options(LONG);
    limits.max_instances = 2;
    let fixture = Fixture::new(Era::Handshake, Transport::Stdio, limits).await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let mut session = fixture.session(json!({"elicitation": {}})).await;
        session.request(1, "tools/call", call("form")).await;
        let question = session.question().await;
        sessions.push((session, question));
    }
    assert_eq!(fixture.gateway.instances(), 2);
    for (mut session, question) in sessions {
        session.respond(&question, Ok(json!({"action": "decline"}))).await;
        assert_eq!(text(&session.response(1).await), r#"{"action":"decline"}"#);
        session.close().await;
    }
    let mut third = fixture.session(json!({"elicitation": {}})).await;
    third.request(1, "tools/call", call("form")).await;
    let question = third.question().await;
    third.respond(&question, Ok(json!({"action": "cancel"}))).await;
    third.response(1).await;
    assert_eq!((fixture.gateway.instances(), fixture.received.count("initialize")), (2, 3));
    third.close().await;
    fixture.close().await;
}

/// One process per set of roots, not even one after the other.
#[tokio::test]
async fn clients_with_other_roots_get_another_instance() {
    let fixture = Fixture::new(Era::Handshake, Transport::Stdio, options(LONG)).await;
    for (directory, instances) in [("a", 1), ("a", 1), ("b", 2)] {
        let roots = json!({"roots": [{"uri": format!("file:///{directory}")}]});
        let mut session = fixture.session(json!({"roots": {}})).await;
        session.request(1, "tools/call", call("roots")).await;
        let response = loop {
            let message = session.next().await;
            if message["method"] == "roots/list" {
                session.respond(&message, Ok(roots.clone())).await;
            } else if message["id"] == 1 {
                break message;
            }
        };
        assert!(text(&response).contains(&format!("file:///{directory}")), "{response}");
        assert_eq!(fixture.gateway.instances(), instances, "{directory}");
        session.close().await;
    }
    fixture.close().await;
}

#[tokio::test]
async fn question_can_be_answered_elsewhere_while_the_client_waits() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = Fixture::new(era, Transport::Stdio, options(LONG)).await;
        let mut session = fixture.session(all_capabilities()).await;
        session.request(1, "tools/call", call("form")).await;
        let question = session.question().await;
        let questions = fixture.gateway.questions();
        let open = questions.list();
        assert_eq!((open.len(), open[0].kind, open[0].target.as_str()), (1, QuestionKind::Elicitation, "s__form"));
        assert_eq!((open[0].client.as_str(), open[0].server.as_str()), ("test", "s"));
        let content = RawJson::parse(r#"{"berth":9}"#).unwrap();
        questions.answer(open[0].id, &ElicitationResponse::Accept(Some(content))).unwrap();
        assert_eq!(questions.answer(open[0].id, &ElicitationResponse::Cancel), Err(AnswerError::Unknown));
        let withdrawn = session.find(|message| message["method"] == "notifications/cancelled").await;
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        session.respond(&question, Ok(json!({"action": "decline"}))).await;
        assert!(text(&session.response(1).await).contains(r#""berth":9"#));
        session.close().await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn call_without_a_free_instance_is_made_without_its_log_messages() {
    let mut limits = options(LONG);
    limits.max_instances = 1;
    let fixture = Fixture::new(Era::Handshake, Transport::Stdio, limits).await;
    let mut asked = fixture.session(json!({"elicitation": {}})).await;
    asked.request(1, "tools/call", call("form")).await;
    asked.question().await;
    let mut logging = fixture.session(json!({})).await;
    logging.request(1, "logging/setLevel", json!({"level": "debug"})).await;
    logging.response(1).await;
    logging.request(2, "tools/call", call("plain")).await;
    assert_eq!(text(&logging.response(2).await), "not asked");
    asked.close().await;
    logging.close().await;
    fixture.close().await;
}

/// A server may ask because of a call that was cancelled. The next client must not see it.
#[tokio::test]
async fn instance_of_a_cancelled_call_serves_no_other_client() {
    let fixture = Fixture::with_features(Era::Handshake, Transport::Stdio).await;
    let mut ada = fixture.session(json!({"elicitation": {}})).await;
    ada.request(1, "tools/call", json!({"name": "s__wait", "arguments": {}})).await;
    fixture.received.wait_for("tools/call").await;
    let params = json!({"requestId": 1});
    ada.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    fixture.received.wait_for("notifications/cancelled").await;
    let mut bob = fixture.session(json!({"elicitation": {}})).await;
    bob.request(1, "tools/call", json!({"name": "s__plain", "arguments": {}})).await;
    assert_eq!(text(&bob.response(1).await), "ok");
    let late = fixture.received.find(|message| message["id"] == "late").await;
    assert_eq!(late["result"], json!({"action": "cancel"}));
    assert_eq!(fixture.gateway.instances(), 2);
    ada.request(2, "tools/call", json!({"name": "s__plain", "arguments": {}})).await;
    assert_eq!(text(&ada.response(2).await), "ok");
    assert_eq!(fixture.gateway.instances(), 2, "it continues with its own");
    ada.close().await;
    bob.close().await;
    fixture.close().await;
}

#[tokio::test]
async fn log_messages_reach_the_client_of_the_call_only() {
    let fixture = Fixture::new(Era::Handshake, Transport::Stdio, options(LONG)).await;
    let mut session = fixture.session(all_capabilities()).await;
    session.request(1, "logging/setLevel", json!({"level": "warning"})).await;
    session.response(1).await;
    let mut other = fixture.session(all_capabilities()).await;
    other.request(1, "logging/setLevel", json!({"level": "debug"})).await;
    other.response(1).await;
    session.request(2, "tools/call", call("log")).await;
    let logged = session.next().await;
    assert_eq!((&logged["method"], &logged["params"]["level"]), (&json!("notifications/message"), &json!("warning")));
    assert_eq!(session.response(2).await["id"], 2);
    other.request(2, "ping", json!({})).await;
    assert_eq!(other.next().await["id"], 2, "no log message came before");
    let mut stateless = fixture.stateless(all_capabilities());
    for (level, messages) in [(None, 0), (Some("warning"), 1), (Some("error"), 0)] {
        stateless.log_level = level;
        stateless.call("tools/call", call("log")).await;
        assert_eq!(stateless.notifications.len(), messages, "{level:?}");
    }
    session.close().await;
    other.close().await;
    stateless.close().await;
    fixture.close().await;
}

#[tokio::test]
async fn trace_of_a_call_reaches_its_server_and_baggage_does_not() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = Fixture::new(era, Transport::Stdio, options(LONG)).await;
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let mut params = call("plain");
        params["_meta"] = json!({"traceparent": format!("00-{trace}-b7ad6b7169203331-01"), "baggage": "canary=1"});
        for capabilities in [json!({}), all_capabilities()] {
            let mut session = fixture.session(capabilities).await;
            session.request(1, "tools/call", params.clone()).await;
            session.response(1).await;
            session.close().await;
        }
        let received = fixture.received.all("tools/call");
        assert_eq!(received.len(), 2);
        for message in received {
            assert!(message["params"]["_meta"]["traceparent"].as_str().unwrap().contains(trace), "{message}");
            assert!(!message.to_string().contains("canary"), "{message}");
        }
        fixture.close().await;
    }
}

/// A stateless server gets exactly what the caller declares, and its name.
#[tokio::test]
async fn capabilities_of_the_caller_are_declared_with_each_call() {
    let fixture = Fixture::new(Era::Stateless, Transport::Stdio, options(LONG)).await;
    let declared = json!({"elicitation": {}, "sampling": {"tools": {}}, "experimental": {"x": {}}});
    let mut session = fixture.session(declared).await;
    session.request(1, "tools/call", call("plain")).await;
    session.response(1).await;
    let meta = fixture.received.all("tools/call")[0]["params"]["_meta"].clone();
    let prefix = "io.modelcontextprotocol/";
    let expected = json!({"elicitation": {"form": {}}, "sampling": {"tools": {}}});
    assert_eq!(meta[format!("{prefix}clientCapabilities")], expected);
    assert_eq!(meta[format!("{prefix}clientInfo")]["name"], "test");
    session.close().await;
    fixture.close().await;
}

/// All subscribers share one subscription at the server, and it ends with the last one.
#[tokio::test]
async fn resource_updates_reach_the_subscribers_of_both_eras() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = Fixture::new(era, Transport::Stdio, options(LONG)).await;
        let mut session = fixture.session(json!({})).await;
        session.request(1, "resources/subscribe", json!({"uri": "ask://plain"})).await;
        assert_eq!(session.response(1).await["result"], json!({}));
        session.request(2, "resources/subscribe", json!({"uri": "ask://none"})).await;
        assert_eq!(session.response(2).await["error"]["code"], -32002);
        let mut listener = fixture.stateless(json!({}));
        let wanted = json!({"resourceSubscriptions": ["ask://plain", "ask://none"]});
        listener.send("subscriptions/listen", json!({ "notifications": wanted })).await;
        let acknowledged = listener.next().await;
        let granted = json!({"resourceSubscriptions": ["ask://plain"]});
        assert_eq!(acknowledged["params"]["notifications"], granted, "{acknowledged}");
        session.request(3, "tools/call", call("update")).await;
        let updated = session.find(|message| message["method"] == "notifications/resources/updated").await;
        assert_eq!(updated["params"]["uri"], "ask://plain");
        let updated = listener.next().await;
        assert_eq!(updated["params"]["uri"], "ask://plain", "{updated}");
        assert_eq!(updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
        if era == Era::Handshake {
            assert_eq!(fixture.received.count("resources/subscribe"), 1);
            session.request(4, "resources/unsubscribe", json!({"uri": "ask://plain"})).await;
            session.find(|message| message["id"] == 4).await;
            listener.close().await;
            fixture.received.wait_for("resources/unsubscribe").await;
        } else {
            listener.close().await;
        }
        session.close().await;
        fixture.close().await;
    }
}
