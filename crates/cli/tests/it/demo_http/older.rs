//! HTTP+SSE, as 2024-11-05 has it.

use serde_json::{Value, json};

use super::client::{Demo, Response};

struct Guest<'a> {
    demo: &'a Demo,
    endpoint: String,
    stream: Response,
}

impl<'a> Guest<'a> {
    fn enter(demo: &'a Demo) -> Self {
        let mut stream = demo.send("GET", "/sse", &[("Accept", "text/event-stream")], "");
        let event = stream.event().unwrap();
        assert_eq!(event.name, "endpoint");
        assert!(event.data.starts_with("/messages?sessionId="), "{event:?}");
        Self { demo, endpoint: event.data, stream }
    }

    fn post(&self, body: &Value) -> u16 {
        let headers = [("Content-Type", "application/json")];
        self.demo.send("POST", &self.endpoint, &headers, &body.to_string()).status()
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        assert_eq!(self.post(&body), 202);
        let event = self.stream.event().unwrap();
        assert_eq!((event.name.as_str(), event.id.as_str()), ("message", ""));
        event.json()
    }
}

#[test]
fn responses_and_requests_share_one_stream() {
    let demo = Demo::start(&["--sse", "127.0.0.1:0"]);
    assert_eq!(demo.path, "/sse");
    let mut guest = Guest::enter(&demo);
    let early = guest.request("tools/list", json!({}));
    assert_eq!(early["error"]["code"], -32600, "first comes the handshake: {early}");
    let version = json!({"protocolVersion": "2024-11-05", "capabilities": {"roots": {}}});
    assert_eq!(guest.request("initialize", version)["result"]["protocolVersion"], "2024-11-05");
    let call = json!({"name": "echo", "arguments": {"text": "ahoy"}});
    assert_eq!(guest.request("tools/call", call)["result"]["content"][0]["text"], "ahoy");
    let question = guest.request("tools/call", json!({"name": "show_roots", "arguments": {}}));
    assert_eq!(question["method"], "roots/list");
    assert_eq!(guest.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})), 202);
    assert_eq!(guest.stream.message()["result"]["content"][0]["text"], "(no roots)");
}

#[test]
fn session_ends_with_its_stream() {
    let demo = Demo::start(&["--sse", "127.0.0.1:0", "--revision", "2024-11-05"]);
    let mut guest = Guest::enter(&demo);
    let mut other = Guest::enter(&demo);
    guest.request("initialize", json!({"protocolVersion": "2024-11-05"}));
    other.request("initialize", json!({"protocolVersion": "2024-11-05"}));
    let slow = json!({"name": "slow", "arguments": {"seconds": 600}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": slow});
    assert_eq!(guest.post(&call), 202);
    demo.await_calls(1);
    let Guest { endpoint, stream, .. } = guest;
    drop(stream);
    demo.await_calls(0);
    assert_eq!(demo.send("POST", &endpoint, &[], &call.to_string()).status(), 404);
    assert_eq!(demo.send("POST", "/messages", &[], &call.to_string()).status(), 400);
    assert_eq!(other.request("ping", json!({}))["result"], json!({}), "others stay");
}
