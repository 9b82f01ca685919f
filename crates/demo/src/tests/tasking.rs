//! Calls that become tasks, in both formats.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::DemoTestClient;
use super::{MODERN, revisions};

const CORE: &str = "2025-11-25";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn modern() -> DemoTestClient {
    DemoTestClient::new(MODERN, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}))
}

/// Starts a task and returns it as created.
fn start(client: &DemoTestClient, arguments: Value) -> Value {
    if client.is_modern() {
        return client.call("unload_ship", arguments)["result"].take();
    }
    let params = json!({"name": "unload_ship", "arguments": arguments, "task": {"ttl": 60_000}});
    client.request("tools/call", params)["result"]["task"].take()
}

fn task_request(client: &DemoTestClient, method: &str, task: &Value) -> Value {
    client.request(method, json!({"taskId": task["taskId"]}))
}

/// Polls the task of a stateless client until it is no longer working.
fn poll(client: &DemoTestClient, task: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let detail = task_request(client, "tasks/get", task)["result"].take();
        if detail["status"] != "working" {
            return detail;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "the task works on: {detail}");
        std::thread::yield_now();
    }
}

/// Listens to a task and returns the id of the listen.
fn follow(client: &DemoTestClient, task: &Value) -> u64 {
    let notifications = json!({"taskIds": [task["taskId"]]});
    let id = client.send("subscriptions/listen", json!({"notifications": notifications}));
    assert_eq!(client.receive()["params"]["notifications"], notifications);
    id
}

/// Returns the first notification of a task with `status`.
#[track_caller]
fn notification_with_status(client: &DemoTestClient, status: &str) -> Value {
    loop {
        let news = client.receive();
        let method = if client.is_modern() { "notifications/tasks" } else { "notifications/tasks/status" };
        assert_eq!(news["method"], method, "{news}");
        if news["params"]["status"] == status {
            return news["params"].clone();
        }
    }
}

#[test]
fn call_without_task_reports_progress() {
    for revision in revisions() {
        let client = DemoTestClient::new(revision, json!({}));
        let arguments = json!({"containers": 2, "interval_ms": 0});
        let params = json!({"name": "unload_ship", "arguments": arguments, "_meta": {"progressToken": 5}});
        let id = client.send("tools/call", params);
        for step in 1..=2 {
            assert_eq!(client.receive()["params"]["progress"], step);
        }
        let reply = client.receive();
        assert_eq!((&reply["id"], &reply["result"]["isError"]), (&json!(id), &json!(false)), "{revision}");
    }
}

#[test]
fn stateless_task_requests_input_and_completes() {
    let client = modern();
    let task = start(&client, json!({"containers": 2, "interval_ms": 0, "ask": true}));
    assert_eq!(task["resultType"], "task");
    assert!(task["ttlMs"].is_u64() && task["pollIntervalMs"].is_u64() && task["createdAt"].is_string());
    let asking = poll(&client, &task);
    assert_eq!(asking["status"], "input_required");
    assert_eq!(asking["inputRequests"]["signature"]["method"], "elicitation/create");
    let listen = follow(&client, &task);
    let update = |responses: Value| {
        client.send("tasks/update", json!({"taskId": task["taskId"], "inputResponses": responses}));
    };
    update(json!({"other": {}}));
    assert_eq!(client.receive()["result"]["resultType"], "complete");
    client.harness.assert_silent();
    update(json!({"signature": {"action": "accept", "content": {"name": "Ada"}}}));
    // The acknowledgement and the notification come in any order.
    let (mut end, mut is_acknowledged) = (Value::Null, false);
    while end.is_null() || !is_acknowledged {
        let mut message = client.receive();
        is_acknowledged |= message["result"]["resultType"] == "complete";
        if message["params"]["status"] == "completed" {
            end = message["params"].take();
        }
    }
    assert_eq!(end["_meta"]["io.modelcontextprotocol/subscriptionId"], listen);
    let detail = task_request(&client, "tasks/get", &task)["result"].take();
    assert_eq!((&detail["resultType"], &detail["status"]), (&json!("complete"), &json!("completed")));
    assert_eq!(detail["result"], end["result"]);
    assert_eq!(detail["result"]["structuredContent"], json!({"unloaded": 2}));
    assert!(detail["result"]["content"][0]["text"].as_str().unwrap().contains("Ada"));
}

#[test]
fn cancelled_stateless_task_stays_cancelled() {
    let client = modern();
    let task = start(&client, json!({"interval_ms": 60_000}));
    follow(&client, &task);
    let id = client.send("tasks/cancel", json!({"taskId": task["taskId"]}));
    notification_with_status(&client, "cancelled");
    assert_eq!(client.receive()["id"], id);
    assert!(task_request(&client, "tasks/cancel", &task)["error"].is_null(), "an acknowledgement, again");
    assert_eq!(task_request(&client, "tasks/get", &task)["result"]["status"], "cancelled");
    assert_eq!(task_request(&client, "tasks/get", &json!({"taskId": "task-0"}))["error"]["code"], -32602);
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(task_request(&client, method, &task)["error"]["code"], -32601);
    }
}

#[test]
fn stateless_task_needs_capability_and_extension() {
    let client = DemoTestClient::new(MODERN, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let task = start(&client, json!({"ask": true}));
    let failed = poll(&client, &task);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32021)));
    let error = task_request(&DemoTestClient::new(MODERN, json!({})), "tasks/get", &task)["error"].take();
    assert_eq!(error["code"], -32021);
    let needed = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    assert_eq!(error["data"]["requiredCapabilities"], needed);
}

#[test]
fn core_task_reports_status_and_result_blocks() {
    let client = DemoTestClient::new(CORE, json!({"elicitation": {}}));
    let task = start(&client, json!({"containers": 1, "interval_ms": 0, "ask": true}));
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)));
    notification_with_status(&client, "input_required");
    let asked = client.receive();
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["_meta"][RELATED]["taskId"], task["taskId"]);
    let waiting = client.send("tasks/result", json!({"taskId": task["taskId"]}));
    client.harness.assert_silent();
    client.respond(&asked, json!({"action": "accept", "content": {"name": "Ada"}}));
    let mut statuses = Vec::new();
    let mut reply = Value::Null;
    while reply.is_null() || statuses.last().is_none_or(|last| last != "completed") {
        let message = client.receive();
        if message["id"] == waiting {
            reply = message;
        } else {
            statuses.push(message["params"]["status"].clone());
        }
    }
    assert_eq!(reply["result"]["_meta"][RELATED]["taskId"], task["taskId"]);
    assert_eq!(reply["result"]["structuredContent"], json!({"unloaded": 1}));
    assert_eq!(task_request(&client, "tasks/result", &task)["result"], reply["result"], "again, at once");
    let listed = client.request("tasks/list", json!({}))["result"]["tasks"].take();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["status"]), (1, &json!("completed")));
}

#[test]
fn failed_core_task_has_error_cancelled_has_no_result() {
    let client = DemoTestClient::new(CORE, json!({}));
    let task = start(&client, json!({"ask": true}));
    notification_with_status(&client, "failed");
    assert_eq!(task_request(&client, "tasks/result", &task)["result"]["isError"], true);
    assert_eq!(task_request(&client, "tasks/cancel", &task)["error"]["code"], -32602);

    let task = start(&client, json!({"containers": "all"}));
    notification_with_status(&client, "failed");
    assert_eq!(task_request(&client, "tasks/result", &task)["result"]["isError"], true, "unsuitable arguments");

    let task = start(&client, json!({"interval_ms": 60_000}));
    let waiting = client.send("tasks/result", json!({"taskId": task["taskId"]}));
    let cancel = client.send("tasks/cancel", json!({"taskId": task["taskId"]}));
    let mut replies = [client.receive(), client.receive()];
    replies.sort_by_key(|reply| reply["id"].as_u64());
    assert_eq!((&replies[0]["id"], &replies[0]["error"]["code"]), (&json!(waiting), &json!(-32603)));
    assert_eq!((&replies[1]["id"], &replies[1]["result"]["status"]), (&json!(cancel), &json!("cancelled")));
}

#[test]
fn core_tools_enforce_their_task_support() {
    let client = DemoTestClient::new(CORE, json!({}));
    assert_eq!(client.call("survey_hull", json!({}))["error"]["code"], -32601);
    let echo = json!({"name": "echo", "arguments": {"text": "a"}, "task": {}});
    assert_eq!(client.request("tools/call", echo)["error"]["code"], -32601);
    let survey = json!({"name": "survey_hull", "task": {}});
    let task = client.request("tools/call", survey)["result"]["task"].take();
    notification_with_status(&client, "completed");
    let result = task_request(&client, "tasks/result", &task)["result"].take();
    assert_eq!(result["content"][0]["text"], "The hull is sound.");
    let earlier = DemoTestClient::new("2025-06-18", json!({}));
    assert_eq!(task_request(&earlier, "tasks/get", &task)["error"]["code"], -32601);
}
