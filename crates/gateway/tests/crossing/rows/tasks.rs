//! Tasks.

use serde_json::{Value, json};
use wharf::wire::Era;

use super::RowCell;
use crate::any_client::AnyClient;
use crate::fixture::{Fixture, text};

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const TASKS: &str = "io.modelcontextprotocol/tasks";

impl RowCell {
    /// Starts a task and returns its id.
    async fn start_task(&self, client: &mut AnyClient, tool: &str) -> String {
        let mut params = json!({"name": format!("s__{tool}"), "arguments": {}});
        if self.client == Era::Handshake {
            params["task"] = json!({"ttl": 30000});
        }
        let result = client.call("tools/call", params).await.response["result"].clone();
        let task = if self.client == Era::Handshake { &result["task"] } else { &result };
        if self.client == Era::Stateless {
            assert_eq!(result["resultType"], "task", "{result}");
        }
        let id = task["taskId"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        assert!(!id.contains("up-") && task["createdAt"].is_string() && task["lastUpdatedAt"].is_string(), "{task}");
        id
    }

    /// Polls a task until it has a status.
    async fn poll(&self, client: &mut AnyClient, id: &str, status: &str) -> Value {
        for _ in 0..600 {
            let task = client.call("tasks/get", json!({"taskId": id})).await.response["result"].clone();
            if task["status"] == status {
                return task;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("the task is never {status}");
    }

    fn task_capabilities() -> Value {
        json!({"elicitation": {}, "extensions": {TASKS: {}}})
    }

    pub(super) async fn task(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, Self::task_capabilities()).await;
        let id = self.start_task(&mut client, "job").await;
        let done = r#""done""#;
        match self.client {
            Era::Handshake => {
                let waited = client.call("tasks/result", json!({"taskId": id})).await.response;
                assert_eq!(text(&waited), done);
                assert_eq!(waited["result"]["_meta"][RELATED_TASK]["taskId"], id.as_str(), "{waited}");
                let task = client.call("tasks/get", json!({"taskId": id})).await.response["result"].clone();
                assert_eq!((&task["status"], &task["ttl"]), (&json!("completed"), &json!(30000)));
                let list = client.call("tasks/list", json!({})).await.response["result"]["tasks"].clone();
                // Another description of the same task: its id is sealed again.
                assert_eq!((list.as_array().unwrap().len(), &list[0]["status"]), (1, &json!("completed")));
                let mut other = self.client(fixture, Self::task_capabilities()).await;
                for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                    let refused = other.call(method, json!({"taskId": id})).await.response;
                    assert_eq!(refused["error"]["code"], -32602, "{method}");
                }
                assert_eq!(other.call("tasks/list", json!({})).await.response["result"]["tasks"], json!([]));
                other.close().await;
            }
            Era::Stateless => {
                let task = self.poll(&mut client, &id, "completed").await;
                assert_eq!((text(&task), &task["resultType"]), (done.to_owned(), &json!("complete")));
                let refused = client.call("tasks/get", json!({"taskId": "up-1"})).await.response;
                assert_eq!(refused["error"]["code"], -32602);
                for method in ["tasks/list", "tasks/result"] {
                    let refused = client.call(method, json!({"taskId": id})).await.response;
                    assert_eq!(refused["error"]["code"], -32601, "{method}");
                }
            }
        }
        client.close().await;
    }

    pub(super) async fn task_cancelled(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, Self::task_capabilities()).await;
        let id = self.start_task(&mut client, "job-wait").await;
        fixture.received.wait_for("tasks/get").await;
        let cancelled = client.call("tasks/cancel", json!({"taskId": id})).await.response["result"].clone();
        match self.client {
            Era::Handshake => assert_eq!(cancelled["status"], "cancelled"),
            Era::Stateless => assert_eq!(cancelled, json!({"resultType": "complete"})),
        }
        fixture.received.wait_for("tasks/cancel").await;
        self.poll(&mut client, &id, "cancelled").await;
        client.close().await;
    }

    pub(super) async fn task_question(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, Self::task_capabilities()).await;
        let id = self.start_task(&mut client, "job-ask").await;
        let answer = json!({"action": "accept", "content": {"berth": 7}});
        self.poll(&mut client, &id, "input_required").await;
        let done = match client {
            AnyClient::Session(mut client) => {
                client.request(1, "tasks/result", json!({"taskId": id})).await;
                let question = client.question().await;
                assert_eq!(question["params"]["_meta"][RELATED_TASK]["taskId"], id.as_str(), "{question}");
                client.respond(&question, Ok(answer.clone())).await;
                let done = text(&client.response(1).await);
                client.close().await;
                done
            }
            AnyClient::Stateless(mut stateless) => {
                let task = stateless.call("tasks/get", json!({"taskId": id})).await["result"].clone();
                let (key, question) = task["inputRequests"].as_object().unwrap().iter().next().unwrap();
                assert_eq!(question["params"]["message"], "Which berth?");
                assert!(question["params"]["_meta"].is_null(), "the server's own id is not for clients: {question}");
                let update = json!({"taskId": id, "inputResponses": {key: answer}});
                assert_eq!(stateless.call("tasks/update", update).await["result"], json!({"resultType": "complete"}));
                let mut client = AnyClient::Stateless(stateless);
                let done = text(&self.poll(&mut client, &id, "completed").await);
                client.close().await;
                done
            }
        };
        assert_eq!(serde_json::from_str::<Value>(&done).unwrap_or_else(|_| panic!("{done}")), answer);
    }

    pub(super) async fn task_followed(&self, fixture: &Fixture) {
        for capabilities in [json!({}), json!({"elicitation": {}})] {
            let mut client = self.client(fixture, capabilities).await;
            assert_eq!(text(&client.tool("must").await), r#""done""#);
            client.close().await;
        }
    }
}
