//! Who may start and use a task.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf::Host;
use wharf::policy::Rule;
use wharf::wire::Era;
use wharf_gateway::{Gateway, GatewayAsker, ViewOptions};

use crate::client::Transport;
use crate::feature_server::add_feature_server;
use crate::fixture::{Fixture, text};
use crate::server::ReceivedMessages;

fn capabilities() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn job(name: &str) -> Value {
    json!({"name": format!("s__{name}"), "arguments": {}, "task": {}})
}

/// The clients of one key share their tasks, in sessions of any number and in both eras.
#[tokio::test]
async fn task_of_one_key_is_unknown_to_another() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = Fixture::with_features(era, Transport::Stdio).await;
        let of_key = async |name: &str| {
            let mut view = ViewOptions::default();
            view.principal = Some(name.into());
            Fixture::from_gateway(fixture.gateway.with_view(view), fixture.received.clone(), Transport::Stdio).await
        };
        let (ada, bob) = (of_key("ada").await, of_key("bob").await);
        let mut first = ada.session(capabilities()).await;
        first.request(1, "tools/call", job("job-wait")).await;
        let id = first.response(1).await["result"]["task"]["taskId"].clone();
        first.close().await;
        let mut second = ada.session(capabilities()).await;
        second.request(1, "tasks/get", json!({"taskId": id})).await;
        assert_eq!(second.response(1).await["result"]["status"], "working", "it outlives its session");
        let mut stateless = ada.stateless(capabilities());
        assert_eq!(stateless.call("tasks/get", json!({"taskId": id})).await["result"]["status"], "working");
        let mut other = bob.session(capabilities()).await;
        let mut other_stateless = bob.stateless(capabilities());
        for (number, method) in ["tasks/get", "tasks/cancel", "tasks/result"].into_iter().enumerate() {
            other.request(number as u64, method, json!({"taskId": id})).await;
            assert_eq!(other.response(number as u64).await["error"]["code"], -32602, "{method}");
        }
        let update = json!({"taskId": id, "inputResponses": {}});
        assert_eq!(other_stateless.call("tasks/update", update).await["error"]["code"], -32602);
        other.request(9, "tasks/list", json!({})).await;
        assert_eq!(other.response(9).await["result"]["tasks"], json!([]));
        assert_eq!(fixture.received.count("tasks/cancel"), 0);
        for session in [second, other] {
            session.close().await;
        }
        stateless.close().await;
        other_stateless.close().await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn tasks_of_a_session_without_a_key_end_with_it() {
    for era in [Era::Handshake, Era::Stateless] {
        let fixture = Fixture::with_features(era, Transport::Stdio).await;
        let mut session = fixture.session(capabilities()).await;
        session.request(1, "tools/call", job("job-wait")).await;
        assert!(session.response(1).await["result"]["task"]["taskId"].is_string());
        fixture.received.wait_for("tasks/get").await;
        session.close().await;
        fixture.received.wait_for("tasks/cancel").await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn task_needs_the_permission_of_its_call() {
    for era in [Era::Handshake, Era::Stateless] {
        let (received, asker) = (ReceivedMessages::default(), GatewayAsker::new());
        let rules = [Rule::ask("mcp__s__job"), Rule::deny("mcp__s__must")];
        let builder = Host::builder().asker(Arc::new(asker.clone())).rules(rules);
        let host = add_feature_server(builder, "s", era, &received).start().await.unwrap();
        host.wait_until_settled().await;
        let instances = received.clone();
        let gateway = Gateway::builder(host).asker(asker);
        let gateway = gateway.instances(move |_| Some(add_feature_server(Host::builder(), "s", era, &instances)));
        let fixture = Fixture::from_gateway(gateway.build(), received, Transport::Stdio).await;
        let mut session = fixture.session(capabilities()).await;
        session.request(1, "tools/call", job("must")).await;
        let id = session.response(1).await["result"]["task"]["taskId"].clone();
        session.request(2, "tasks/result", json!({"taskId": id})).await;
        assert_eq!(session.response(2).await["result"]["isError"], true, "the rule denies it");
        session.request(3, "tools/call", job("job")).await;
        let id = session.response(3).await["result"]["task"]["taskId"].clone();
        session.request(4, "tasks/result", json!({"taskId": id})).await;
        let question = session.question().await;
        assert_eq!(fixture.received.count("tools/call"), 0);
        let once = json!({"action": "accept", "content": {"decision": "once"}});
        session.respond(&question, Ok(once)).await;
        assert_eq!(text(&session.response(4).await), r#""done""#);
        session.close().await;
        fixture.close().await;
    }
}

#[tokio::test]
async fn tool_without_tasks_refuses_them() {
    let fixture = Fixture::with_features(Era::Handshake, Transport::Stdio).await;
    let mut session = fixture.session(capabilities()).await;
    session.request(1, "tools/call", job("plain")).await;
    assert_eq!(session.response(1).await["error"]["code"], -32601);
    session.request(2, "tools/list", json!({})).await;
    let list = session.response(2).await["result"]["tools"].clone();
    let support = |name: &str| {
        let tool = list.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    assert_eq!((support("s__plain"), support("s__job")), (Value::Null, json!("optional")));
    session.close().await;
    fixture.close().await;
}

/// A stateless server decides itself, so that each of its tools may become a task.
#[tokio::test]
async fn tools_of_a_stateless_server_support_tasks() {
    let fixture = Fixture::with_features(Era::Stateless, Transport::Stdio).await;
    let mut session = fixture.session(capabilities()).await;
    session.request(1, "tools/list", json!({})).await;
    let list = session.response(1).await["result"]["tools"].clone();
    assert!(list.as_array().unwrap().iter().all(|tool| tool["execution"]["taskSupport"] == "optional"), "{list}");
    session.request(2, "tools/call", job("plain")).await;
    let id = session.response(2).await["result"]["task"]["taskId"].clone();
    session.request(3, "tasks/result", json!({"taskId": id})).await;
    assert_eq!(text(&session.response(3).await), "ok", "a result that comes at once is kept");
    session.close().await;
    fixture.close().await;
}
