//! Streamable HTTP in the handshake revisions: sessions, their streams, and taking them up again.

use serde_json::{Value, json};

use super::client::{Demo, Response};

/// A client in its session.
struct Guest<'a> {
    demo: &'a Demo,
    revision: &'a str,
    id: String,
}

impl<'a> Guest<'a> {
    fn enter(demo: &'a Demo, revision: &'a str) -> Self {
        let params = json!({"protocolVersion": revision, "capabilities": {"elicitation": {}, "roots": {}}});
        let mut response =
            demo.post(&[], &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        let id = response.head().header("mcp-session-id").expect("a session").to_owned();
        let (status, reply) = response.json();
        assert_eq!((status, &reply["result"]["protocolVersion"]), (200, &json!(revision)));
        Self { demo, revision, id }
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.id), ("MCP-Protocol-Version", self.revision)]
    }

    fn post(&self, body: &Value) -> Response {
        self.demo.post(&self.headers(), body)
    }

    fn call(&self, id: u64, tool: &str, arguments: Value) -> Response {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    fn watch(&self, last_event: Option<&str>) -> Response {
        let mut headers = vec![("Accept", "text/event-stream")];
        headers.extend(self.headers());
        headers.extend(last_event.map(|id| ("Last-Event-ID", id)));
        self.demo.send("GET", "/mcp", &headers, "")
    }
}

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[test]
fn session_is_created_used_and_deleted() {
    let demo = Demo::streamable();
    for revision in REVISIONS {
        let guest = Guest::enter(&demo, revision);
        assert!(guest.id.len() == 64 && guest.id != Guest::enter(&demo, revision).id, "{}", guest.id);
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(guest.post(&notification).json(), (202, Value::Null));
        let (status, reply) = guest.call(1, "echo", json!({"text": "ahoy"})).json();
        assert_eq!((status, &reply["result"]["content"][0]["text"]), (200, &json!("ahoy")));
        let (status, reply) = guest.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "nothing"})).json();
        assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32601)));
        assert_eq!(demo.send("DELETE", "/mcp", &guest.headers(), "").status(), 204);
        for gone in [guest.post(&notification), guest.watch(None), demo.send("DELETE", "/mcp", &guest.headers(), "")] {
            let mut gone = gone;
            assert_eq!(gone.status(), 404);
        }
    }
}

#[test]
fn messages_not_matching_the_session_are_rejected() {
    let demo = Demo::streamable();
    let guest = Guest::enter(&demo, "2025-06-18");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let status = |headers: &[(&str, &str)], body: &Value| demo.post(headers, body).status();
    let session = ("Mcp-Session-Id", guest.id.as_str());
    assert_eq!(status(&[session], &ping), 200, "the header may be forgotten");
    assert_eq!(status(&[session, ("MCP-Protocol-Version", "2025-11-25")], &ping), 400);
    assert_eq!(status(&[session, ("MCP-Protocol-Version", "1999-01-01")], &ping), 400);
    assert_eq!(status(&[("Mcp-Session-Id", "1")], &ping), 404);
    assert_eq!(status(&[("MCP-Protocol-Version", "2025-06-18")], &ping), 400, "no session");
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let mut without_version = demo.post(&[], &initialize);
    assert_eq!((without_version.status(), without_version.head().header("mcp-session-id")), (400, None));
    let (code, twice) = demo.post(&[session], &initialize).json();
    assert_eq!((code, &twice["error"]["code"]), (200, &json!(-32600)), "an error of the request, not of HTTP");
    assert_eq!(status(&[session], &json!([ping])), 400, "batches are of another revision");
    let described = super::discover();
    let headers = [session, ("MCP-Protocol-Version", super::MODERN), ("Mcp-Method", "server/discover")];
    assert_eq!(status(&headers, &described), 200, "the stateless era knows no sessions");
}

#[test]
fn broken_stream_resumes_where_it_broke() {
    let demo = Demo::streamable();
    for revision in REVISIONS {
        let guest = Guest::enter(&demo, revision);
        let mut response = guest.call(5, "slow", json!({"seconds": 0.3, "steps": 3}));
        let mut first = response.event().unwrap();
        if revision == "2025-11-25" {
            assert_eq!((first.id.as_str(), first.data.as_str()), ("1-0", ""), "the priming event");
            first = response.event().unwrap();
        }
        assert_eq!((first.id.as_str(), &first.json()["params"]["progress"]), ("1-1", &json!(1)));
        // Not a cancellation: the call goes on meanwhile.
        drop(response);
        for _ in 0..2 {
            let mut resumed = guest.watch(Some("1-1"));
            let [second, third, last] = [(); 3].map(|()| resumed.event().unwrap());
            assert_eq!((second.id.as_str(), &second.json()["params"]["progress"]), ("1-2", &json!(2)));
            assert_eq!(third.id, "1-3");
            assert_eq!((last.id.as_str(), &last.json()["id"]), ("1-4", &json!(5)));
            assert_eq!(resumed.event(), None);
        }
        for unknown in ["1-9", "9-0", "x"] {
            assert_eq!(guest.watch(Some(unknown)).status(), 400, "{unknown}");
        }
    }
}

#[test]
fn server_requests_use_the_stream_of_their_call() {
    let demo = Demo::streamable();
    for revision in REVISIONS {
        let guest = Guest::enter(&demo, revision);
        let mut response = guest.call(1, "show_roots", json!({}));
        let mut event = response.event().unwrap();
        if event.data.is_empty() {
            event = response.event().unwrap();
        }
        let question = event.json();
        assert_eq!(question["method"], "roots/list");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///quay"}]}});
        assert_eq!(guest.post(&answer).json(), (202, Value::Null));
        assert_eq!(response.message()["result"]["content"][0]["text"], "file:///quay");
        assert_eq!(response.event(), None);
    }
}

#[test]
fn cancel_notification_stops_the_call() {
    let demo = Demo::streamable();
    let guest = Guest::enter(&demo, "2025-06-18");
    let mut response = guest.call(1, "slow", json!({"seconds": 600, "steps": 1000}));
    assert_eq!(response.message()["method"], "notifications/progress");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(guest.post(&cancel).status(), 202);
    while let Some(event) = response.event() {
        assert_eq!(event.json()["method"], "notifications/progress");
    }
    demo.await_calls(0);
}

#[test]
fn notifications_use_the_stream_of_the_session() {
    let demo = Demo::streamable();
    let guest = Guest::enter(&demo, "2025-06-18");
    let other = Guest::enter(&demo, "2025-06-18");
    // Before anybody watches: it is kept until then.
    assert_eq!(guest.call(1, "hire_crane", json!({})).json().0, 200);
    let mut own = guest.watch(None);
    let first = own.event().unwrap();
    assert_eq!((first.id.as_str(), &first.json()["method"]), ("0-1", &json!("notifications/tools/list_changed")));
    assert_eq!(other.call(1, "learn_shanty", json!({})).json().0, 200);
    assert_eq!(guest.call(1, "dismiss_crane", json!({})).json().0, 200);
    assert_eq!(own.event().unwrap().id, "0-2", "what others do is no news");
    let mut later = guest.watch(Some("0-1"));
    assert_eq!(own.event(), None, "one reads at a time");
    assert_eq!(later.message()["method"], "notifications/tools/list_changed");
    assert_eq!(demo.send("DELETE", "/mcp", &guest.headers(), "").status(), 204);
    assert_eq!(later.event(), None);
}

#[test]
fn tide_notifications_reach_sessions() {
    let demo = Demo::start(&["--http", ":0", "--tide", "20"]);
    let guest = Guest::enter(&demo, "2025-11-25");
    let mut own = guest.watch(None);
    assert_eq!(own.event().unwrap().data, "");
    assert_eq!(own.message()["method"], "notifications/tools/list_changed");
}

#[test]
fn task_status_uses_the_stream_of_the_session() {
    let demo = Demo::streamable();
    let guest = Guest::enter(&demo, "2025-11-25");
    let mut own = guest.watch(None);
    assert_eq!(own.event().unwrap().data, "");
    let params = json!({"name": "survey_hull", "arguments": {}, "task": {}});
    let started = guest.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let task = { started }.json().1["result"]["task"]["taskId"].clone();
    let mut status = Value::Null;
    while status["params"]["status"] != "completed" {
        status = own.message();
        assert_eq!((&status["method"], &status["params"]["taskId"]), (&json!("notifications/tasks/status"), &task));
    }
}

#[test]
fn batches_are_answered_together() {
    let demo = Demo::streamable();
    let guest = Guest::enter(&demo, "2025-03-26");
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let (status, replies) = guest.post(&json!([ping(1), ping(2)])).json();
    assert_eq!((status, replies.as_array().unwrap().len()), (200, 2));
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(guest.post(&json!([notification])).json(), (202, Value::Null));
}
