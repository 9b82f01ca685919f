//! `demo-server --http` and `--sse`, byte by byte: the stateless era here, sessions and the old form beside.

pub mod client;
mod older;
mod sessions;

use serde_json::{Value, json};

use client::{Demo, MODERN, described};

use crate::support::run;

fn discover() -> Value {
    described("server/discover", json!({}))
}

#[test]
fn plain_response_is_json() {
    let demo = Demo::streamable();
    let mut response = demo.request("server/discover", json!({}), &[]);
    assert_eq!(response.head().header("content-type"), Some("application/json"));
    assert_eq!(response.head().header("mcp-session-id"), None);
    let (status, reply) = response.json();
    assert_eq!((status, &reply["id"]), (200, &json!(1)));
    assert_eq!(reply["result"]["supportedVersions"][0], MODERN);
    let (status, reply) = demo.call("echo", json!({"text": "ahoy"})).json();
    assert_eq!((status, &reply["result"]["content"][0]["text"]), (200, &json!("ahoy")));
    let (status, reply) = demo.call("nothing", json!({})).json();
    assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32602)), "the request itself was fine");
}

#[test]
fn every_fault_has_its_status_and_code() {
    let version = "io.modelcontextprotocol/protocolVersion";
    let demo = Demo::streamable();
    let right = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "server/discover")];
    let check = |what: &str, headers: &[(&str, &str)], body: Value, status: u16, code: i64| {
        let (found, reply) = demo.post(headers, &body).json();
        assert_eq!((found, &reply["error"]["code"]), (status, &json!(code)), "{what}: {reply}");
    };
    let bare = |params: Value| json!({"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": params});
    check("no _meta", &right, bare(json!({})), 400, -32602);
    check("no _meta and no header", &[], bare(json!({})), 400, -32602);
    check("no capabilities", &right, bare(json!({"_meta": {version: MODERN}})), 400, -32602);
    check("a version of the other era", &right, bare(json!({"_meta": {version: "2025-11-25"}})), 400, -32020);
    let later = [("MCP-Protocol-Version", "2099-01-01"), ("Mcp-Method", "server/discover")];
    check("an unknown version", &later, bare(json!({"_meta": {version: "2099-01-01"}})), 400, -32022);
    check("no version header", &right[1..], discover(), 400, -32020);
    check("another version header", &[("MCP-Protocol-Version", "2025-11-25"), right[1]], discover(), 400, -32020);
    check("no method header", &right[..1], discover(), 400, -32020);
    check("another method header", &[right[0], ("Mcp-Method", "tools/list")], discover(), 400, -32020);
    check("a method header in capitals", &[right[0], ("Mcp-Method", "SERVER/DISCOVER")], discover(), 400, -32020);
    for method in ["nothing", "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
    {
        let headers = [right[0], ("Mcp-Method", method)];
        check(method, &headers, described(method, json!({"uri": "demo://logo"})), 404, -32601);
    }
    check("no object", &right, json!(7), 400, -32600);
    check("a batch", &right, json!([discover()]), 400, -32600);
    check("an answer", &right, json!({"jsonrpc": "2.0", "id": 7, "result": {}}), 400, -32600);
    let form = json!({"name": "book_berth", "arguments": {}});
    let (status, reply) = demo.request("tools/call", form, &[]).json();
    assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32021)), "{reply}");
}

#[test]
fn header_parameters_must_match_the_body() {
    let demo = Demo::streamable();
    let named = |method: &'static str, params: Value, header: &str, status: u16| {
        let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", header)];
        let (found, reply) = demo.post(&headers, &described(method, params)).json();
        assert_eq!(found, status, "{method} {header}: {reply}");
        assert_eq!(reply["error"]["code"] == -32020, status == 400, "{reply}");
    };
    let echo = json!({"name": "echo", "arguments": {"text": "a"}});
    named("tools/call", echo.clone(), "echo", 200);
    named("tools/call", echo.clone(), "=?base64?ZWNobw==?=", 200);
    named("tools/call", echo.clone(), "=?base64?ZWNobw?=", 400);
    named("tools/call", echo, "Echo", 400);
    named("prompts/get", json!({"name": "welcome", "arguments": {"name": "Ada"}}), "review", 400);
    named("resources/read", json!({"uri": "demo://logo"}), "demo://logo", 200);
    named("resources/read", json!({"uri": "demo://logo"}), "demo://clock", 400);

    let customs = |region: Value, header: Option<&str>| {
        let params = json!({"name": "clear_customs", "arguments": {"region": region}});
        let headers: Vec<_> = header.map(|value| ("Mcp-Param-Region", value)).into_iter().collect();
        let (status, reply) = demo.request("tools/call", params, &headers).json();
        let said = reply["result"]["content"][0]["text"].as_str().map(str::to_owned);
        (status, said.unwrap_or_else(|| reply["error"]["code"].to_string()))
    };
    let said = |text: &str| (200, text.to_owned());
    let north = r#"Cleared for "north"; the header Mcp-Param-Region said "north"."#;
    assert_eq!(customs(json!("north"), Some("north")), said(north));
    let ice = r#"Cleared for "Ísland"; the header Mcp-Param-Region said "=?base64?w41zbGFuZA==?="."#;
    assert_eq!(customs(json!("Ísland"), Some("=?base64?w41zbGFuZA==?=")), said(ice));
    for (region, header) in [("north", None), ("north", Some("south")), ("Ísland", Some("=?base64?w41zbGFuZA=?="))] {
        assert_eq!(customs(json!(region), header), (400, "-32020".to_owned()), "{header:?}");
    }
    let ran = run(["call", "clear_customs", "region=north", "--stdio", &crate::support::demo(MODERN)]);
    assert_eq!(ran.stdout.trim_end(), r#"Cleared for "north"; there was no header."#);
}

#[test]
fn foreign_origins_and_bad_requests_are_rejected() {
    let demo = Demo::streamable();
    let fine = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let port = demo.address.rsplit_once(':').unwrap().1;
    let own = format!("http://{}", demo.address);
    let check = |what: &str, method: &str, headers: &[(&str, &str)], status: u16| {
        let described = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "server/discover")];
        let headers = [headers, &described].concat();
        let body = if method == "POST" { discover().to_string() } else { String::new() };
        assert_eq!(demo.send(method, "/mcp", &headers, &body).status(), status, "{what}");
    };
    check("its own page", "POST", &[fine[0], fine[1], ("Origin", &own)], 200);
    check("a foreign page", "POST", &[fine[0], fine[1], ("Origin", "https://evil.example")], 403);
    check("a local page", "POST", &[fine[0], fine[1], ("Origin", "http://localhost:3000")], 403);
    check("a foreign name", "POST", &[fine[0], fine[1], ("Host", &format!("evil.example:{port}"))], 403);
    check("another local name", "POST", &[fine[0], fine[1], ("Host", &format!("localhost:{port}"))], 200);
    check("no JSON", "POST", &[("Content-Type", "text/plain"), fine[1]], 415);
    check("no events", "POST", &[fine[0], ("Accept", "application/json")], 406);
    for method in ["GET", "DELETE", "PUT"] {
        check(method, method, &[("Accept", "text/event-stream"), ("Mcp-Session-Id", "1")], 405);
    }
    let nonsense = demo.send("POST", "/mcp", &fine, "{").json();
    assert_eq!((nonsense.0, &nonsense.1["error"]["code"]), (400, &json!(-32700)));
    assert_eq!(demo.send("POST", "/elsewhere", &fine, "{}").status(), 404);
}

#[test]
fn oversized_body_is_rejected() {
    let demo = Demo::streamable();
    let text = |length: usize| json!({"text": "x".repeat(length)});
    assert_eq!(demo.call("echo", text(4_000_000)).json().0, 200);
    // Only announced: the server need not read a byte of it to know.
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", demo.address, (4 << 20) + 1);
    assert_eq!(demo.send_raw(&head).status(), 413);
    // Not announced: counted as it comes.
    let chunk = "x".repeat((4 << 20) + 1);
    let head = "Content-Type: application/json\r\nTransfer-Encoding: chunked";
    let body = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{head}\r\n\r\n{:x}\r\n{chunk}", demo.address, chunk.len());
    assert_eq!(demo.send_raw(&body).status(), 413);
}

#[test]
fn progress_or_logs_turn_the_response_into_a_stream() {
    let demo = Demo::streamable();
    let params = json!({
        "name": "slow", "arguments": {"seconds": 0.05, "steps": 2}, "_meta": {"progressToken": "t"},
    });
    let mut response = demo.request("tools/call", params, &[]);
    assert_eq!(response.head().header("x-accel-buffering"), Some("no"));
    for step in 1..=2 {
        let event = response.event().unwrap();
        assert_eq!((event.name.as_str(), event.id.as_str()), ("message", ""), "nothing to resume by");
        assert_eq!(event.json()["params"]["progress"], step);
    }
    assert_eq!(response.message()["result"]["content"][0]["text"], "Waited 0.05 s in 2 steps.");
    assert_eq!(response.event(), None);

    let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
    let params = json!({"name": "log_something", "arguments": {"level": "info", "message": "m"}, "_meta": meta});
    let mut response = demo.request("tools/call", params, &[]);
    assert_eq!(response.message()["method"], "notifications/message");
    assert_eq!(response.message()["result"]["content"][0]["text"], "Logged.");
}

#[test]
fn listen_stream_reports_changes_by_other_requests() {
    let demo = Demo::streamable();
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut listen = demo.request("subscriptions/listen", wanted.clone(), &[]);
    assert_eq!(listen.message()["method"], "notifications/subscriptions/acknowledged");
    // With the same id as the listen, which is another connection's business.
    assert_eq!(demo.call("hire_crane", json!({})).json().0, 200);
    let news = listen.message();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(demo.call("crane", json!({})).json().1["result"]["content"][0]["text"], "Up it goes.");
    let ended = demo.call("end_subscriptions", json!({"how": "result"})).json().1;
    assert_eq!(ended["result"]["content"][0]["text"], "Ended 1 subscriptions.");
    assert_eq!(listen.message()["result"]["resultType"], "complete");
    assert_eq!(listen.event(), None);
    // More than there may be at once: each makes room for the next by closing.
    for _ in 0..300 {
        let mut listen = demo.request("subscriptions/listen", wanted.clone(), &[]);
        assert_eq!(listen.message()["method"], "notifications/subscriptions/acknowledged");
    }
}

#[test]
fn tide_notifications_reach_listen_streams() {
    let demo = Demo::start(&["--http", "127.0.0.1:0", "--tide", "20"]);
    let wanted = json!({"notifications": {"resourceSubscriptions": ["harbour://tide"]}});
    let mut listen = demo.request("subscriptions/listen", wanted, &[]);
    assert_eq!(listen.message()["method"], "notifications/subscriptions/acknowledged");
    for _ in 0..2 {
        assert_eq!(listen.message()["params"]["uri"], "harbour://tide");
    }
}

#[test]
fn closed_stream_cancels_the_call() {
    let demo = Demo::streamable();
    let slow = json!({"name": "slow", "arguments": {"seconds": 600, "steps": 1000}});
    let silent = demo.request("tools/call", slow.clone(), &[]);
    demo.await_calls(1);
    drop(silent);
    demo.await_calls(0);

    let mut telling = slow;
    telling["_meta"]["progressToken"] = 1.into();
    let mut response = demo.request("tools/call", telling, &[]);
    assert_eq!(response.message()["method"], "notifications/progress");
    demo.await_calls(1);
    drop(response);
    demo.await_calls(0);
}

#[test]
fn input_rounds_work_across_connections() {
    let demo = Demo::streamable();
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"roots": {}}});
    let mut params = json!({"name": "show_roots", "arguments": {}, "_meta": meta});
    let asked = demo.request("tools/call", params.clone(), &[]).json().1;
    assert_eq!(asked["result"]["resultType"], "input_required");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({"roots": {"roots": [{"uri": "file:///quay"}]}});
    let reply = demo.request("tools/call", params, &[]).json().1;
    assert_eq!(reply["result"]["content"][0]["text"], "file:///quay");
}

#[test]
fn pinned_revision_is_the_only_one_served() {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}},
    });
    let demo = Demo::start(&["--http", "127.0.0.1:0", "--revision", MODERN]);
    let (status, reply) = demo.post(&[], &initialize).json();
    assert_eq!((status, &reply["error"]["data"]["supported"]), (400, &json!([MODERN])));
    let session = [("Accept", "text/event-stream"), ("Mcp-Session-Id", "1")];
    assert_eq!(demo.send("GET", "/mcp", &session, "").status(), 405);

    let demo = Demo::start(&["--http", "127.0.0.1:0", "--revision", "2025-03-26"]);
    assert_eq!(demo.request("server/discover", json!({}), &[]).status(), 400);
    assert_eq!(demo.post(&[], &discover()).status(), 400);
    let (status, reply) = demo.post(&[], &initialize).json();
    assert_eq!((status, &reply["result"]["protocolVersion"]), (200, &json!("2025-03-26")));
}

#[test]
fn non_loopback_address_is_refused() {
    for flag in ["--http", "--sse"] {
        let ran = run(["demo-server", flag, "0.0.0.0:0"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("0.0.0.0 is not a loopback address"), "{}", ran.stderr);
    }
    let ran = run(["demo-server", "--sse", ":0", "--revision", MODERN]);
    assert_eq!((ran.code, ran.stderr.contains("use --http")), (Some(2), true), "{}", ran.stderr);
}

#[test]
fn server_exits_on_eof_or_signal() {
    let mut demo = Demo::streamable();
    drop(demo.child.stdin.take());
    assert_eq!(demo.child.wait().unwrap().code(), Some(0));
    for signal in ["INT", "TERM"] {
        let mut demo = Demo::streamable();
        crate::signals::send(signal, demo.child.id());
        assert_eq!(demo.child.wait().unwrap().code(), Some(0), "{signal}");
    }
}
