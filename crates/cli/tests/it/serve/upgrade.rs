//! A new gateway replaces the running one while its clients work.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use super::attach::{gateway_pid, signal};
use super::client::PipeClient;
use super::{HttpGateway, allow_all, home};

const PATIENCE: Duration = Duration::from_secs(30);

/// A server that writes the mark of each call to a file. It answers the call `slow` when a second file exists.
const COUNTING_SERVER: &str = r#"
import json, os, sys, time
calls = os.open(sys.argv[1], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method, reply = message["method"], {"error": {"code": -32601, "message": "unknown method"}}
    if method == "initialize":
        info = {"name": "counter", "version": "1"}
        reply = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
    elif method == "tools/list":
        reply = {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("count", "slow")]}}
    elif method == "tools/call":
        mark = message["params"]["arguments"]["mark"]
        os.write(calls, (mark + "\n").encode())
        while message["params"]["name"] == "slow" and not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
        reply = {"result": {"content": [{"type": "text", "text": mark}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"#;

/// A home with the counting server.
fn counting_home() -> (TestHome, String) {
    let home = TestHome::new();
    let marker = home.root().file_name().unwrap().to_string_lossy().into_owned();
    let script = home.write("counter.py", COUNTING_SERVER);
    let words = [script, home.path("calls"), home.path("release")];
    let entry = json!({"command": "python3", "args": words, "env": { MARKER: marker }});
    home.write(USER_CONFIG, &json!({"mcpServers": {"counter": entry}, "permissions": allow_all()}).to_string());
    (home, marker)
}

/// Returns how often each mark was executed.
fn executed(home: &TestHome) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    home.read("calls").lines().for_each(|mark| *counts.entry(mark.to_owned()).or_default() += 1);
    counts
}

/// Starts a gateway at an address, and returns it with the address when it listens.
fn gateway_at(home: &TestHome, address: &str) -> (HttpGateway, String) {
    let mut command = home.command(["serve", "--http", address]);
    let mut gateway = HttpGateway::new(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let url = gateway.line_after("listening on ");
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    (gateway, address)
}

struct HttpReply {
    status: u16,
    session: Option<String>,
    is_last: bool,
    body: String,
}

/// A client over HTTP that keeps its connection as long as the gateway does.
struct HttpClient<'a> {
    address: &'a str,
    token: &'a str,
    stream: Option<BufReader<TcpStream>>,
}

impl HttpClient<'_> {
    fn post(&mut self, headers: &str, message: &Value) -> HttpReply {
        let address = self.address;
        // A connection that is refused fails the test.
        let stream = self.stream.get_or_insert_with(|| BufReader::new(TcpStream::connect(address).unwrap()));
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        stream.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
        let reply = read_reply(stream);
        if reply.is_last {
            self.stream = None;
        }
        reply
    }
}

fn read_reply(stream: &mut BufReader<TcpStream>) -> HttpReply {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "the connection ended within a response: {head:?}");
    }
    let header =
        |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
    let body = match header("transfer-encoding") {
        Some(_) => last_event(&read_chunks(stream)),
        None => read_bytes(stream, header("content-length").map_or(0, |length| length.parse().unwrap())),
    };
    HttpReply {
        status: head[9..12].parse().unwrap(),
        session: header("mcp-session-id"),
        is_last: header("connection").is_some_and(|value| value == "close"),
        body,
    }
}

fn read_bytes(stream: &mut BufReader<TcpStream>, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads a body in chunks: the response to a call that takes longer is an event stream.
fn read_chunks(stream: &mut BufReader<TcpStream>) -> String {
    let mut body = String::new();
    loop {
        let mut size = String::new();
        assert_ne!(stream.read_line(&mut size).unwrap(), 0, "the connection ended within a response: {body:?}");
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        body.push_str(&read_bytes(stream, size));
        read_bytes(stream, 2);
        if size == 0 {
            return body;
        }
    }
}

/// Returns the last message of an event stream.
fn last_event(stream: &str) -> String {
    stream.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap_or_default().to_owned()
}

fn call_params(mark: &str) -> Value {
    json!({"name": "counter__count", "arguments": {"mark": mark}})
}

#[track_caller]
fn assert_answered(body: &str, mark: &str) {
    let reply: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{mark}: {body:?}"));
    assert_eq!(reply["result"]["content"][0]["text"], mark, "{reply}");
}

/// Calls as a stateless client until the end. Returns the number of calls.
fn call_stateless(mut client: HttpClient<'_>, name: &str, is_over: &AtomicBool) -> usize {
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: counter__count\r\n";
    let mut calls = 0;
    while !is_over.load(Ordering::Relaxed) {
        let mark = format!("{name}-{calls}");
        let mut params = call_params(&mark);
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({"jsonrpc": "2.0", "id": calls, "method": "tools/call", "params": params});
        let reply = client.post(headers, &message);
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_answered(&reply.body, &mark);
        calls += 1;
    }
    calls
}

/// Calls in sessions until the end. A session that the gateway does not know is opened again, as the protocol has it.
fn call_in_sessions(mut client: HttpClient<'_>, name: &str, is_over: &AtomicBool) -> usize {
    let (mut calls, mut session) = (0, None);
    while !is_over.load(Ordering::Relaxed) {
        let Some(id) = &session else {
            let info = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
            let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
            session = client.post("", &message).session;
            assert!(session.is_some());
            continue;
        };
        let mark = format!("{name}-{calls}");
        let message = json!({"jsonrpc": "2.0", "id": calls + 1, "method": "tools/call", "params": call_params(&mark)});
        let reply = client.post(&format!("Mcp-Session-Id: {id}\r\n"), &message);
        if reply.status == 404 {
            session = None;
            continue;
        }
        assert_answered(&reply.body, &mark);
        calls += 1;
    }
    calls
}

/// Calls on a pipe until the end.
fn call_on_pipe(mut client: PipeClient, name: &str, is_over: &AtomicBool) -> usize {
    let mut calls = 0;
    while !is_over.load(Ordering::Relaxed) {
        let mark = format!("{name}-{calls}");
        assert_eq!(client.call("counter__count", &json!({ "mark": mark })), mark);
        calls += 1;
    }
    let end = client.finish();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    calls
}

/// Returns a client on a pipe that sends no `initialize`.
fn stateless_pipe(home: &TestHome) -> PipeClient {
    let mut client = PipeClient::start(home, "project", &[]);
    client.meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    client
}

/// Calls over HTTP and on pipes, of both eras, while the gateway is replaced four times: each is executed once and
/// answered, and no connection is refused.
#[test]
fn no_call_is_lost_or_doubled_while_gateways_replace_each_other() {
    let (home, marker) = counting_home();
    let (mut gateway, address) = gateway_at(&home, "127.0.0.1:0");
    let token = home.read("home/.local/state/wharf/serve.token").trim().to_owned();
    let (is_over, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let marks = std::thread::scope(|scope| {
        let client = || HttpClient { address: &address, token: &token, stream: None };
        let (home, is_over, made) = (&home, &is_over, &made);
        let count = move |name: &str, calls: usize| {
            made.fetch_add(calls, Ordering::Relaxed);
            (0..calls).map(|number| format!("{name}-{number}")).collect::<Vec<_>>()
        };
        let mut workers = Vec::new();
        for number in 0..3 {
            let (name, one) = (format!("http-{number}"), client());
            workers.push(scope.spawn(move || count(&name, call_stateless(one, &name, is_over))));
            let (name, one) = (format!("session-{number}"), client());
            workers.push(scope.spawn(move || count(&name, call_in_sessions(one, &name, is_over))));
            let (name, one) = (format!("pipe-{number}"), PipeClient::initialized(home, "project", &[]));
            workers.push(scope.spawn(move || count(&name, call_on_pipe(one, &name, is_over))));
            let (name, one) = (format!("bare-{number}"), stateless_pipe(home));
            workers.push(scope.spawn(move || count(&name, call_on_pipe(one, &name, is_over))));
        }
        for _ in 0..4 {
            let calls = executed_lines(home);
            assert!(poll_until(PATIENCE, || executed_lines(home) > calls + 100), "the load goes on");
            let (next, _) = gateway_at(home, &address);
            let mut previous = std::mem::replace(&mut gateway, next);
            assert_eq!(previous.child.wait().unwrap().code(), Some(0));
        }
        is_over.store(true, Ordering::Relaxed);
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    let executed = executed(&home);
    let doubled: Vec<_> = executed.iter().filter(|(_, count)| **count != 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    assert_eq!(executed.len(), made.load(Ordering::Relaxed));
    assert!(marks.iter().all(|mark| executed.contains_key(mark)));
    assert_eq!(gateway.terminate(), Some(0));
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
    assert!(!home.path("home/.local/state/wharf/run/gateway.socket").exists());
}

fn executed_lines(home: &TestHome) -> usize {
    std::fs::read_to_string(home.path("calls")).unwrap_or_default().lines().count()
}

/// A call in progress is answered by the old gateway. Requests after it wait for the new one.
#[test]
fn attached_client_moves_after_its_call_in_progress() {
    let (home, marker) = counting_home();
    let mut client = PipeClient::initialized(&home, "project", &["--stay"]);
    let first = gateway_pid(&home).unwrap();
    let slow = client.send_request("tools/call", &json!({"name": "counter__slow", "arguments": {"mark": "slow"}}));
    assert!(poll_until(PATIENCE, || executed_lines(&home) == 1));
    let mut idle = PipeClient::initialized(&home, "project", &[]);
    let upgraded = home.run(["serve", "--upgrade"]);
    assert!(upgraded.code == Some(0) && upgraded.stderr.contains("replaced the gateway"), "{upgraded:?}");
    let second = gateway_pid(&home).unwrap();
    assert_ne!(first, second);
    idle.wait_for_notification("notifications/tools/list_changed");
    assert_eq!(idle.call("counter__count", &json!({"mark": "idle"})), "idle");
    let held = client.send_request("tools/call", &call_params("held"));
    home.write("release", "");
    // Each in its turn: the response to the second request comes from another process.
    assert_eq!(client.response(slow)["result"]["content"][0]["text"], "slow");
    assert_eq!(client.response(held)["result"]["content"][0]["text"], "held");
    assert!(executed(&home).values().all(|count| *count == 1), "{:?}", executed(&home));
    assert!(poll_until(PATIENCE, || marked_processes(&marker).len() == 1), "the servers of the old gateway end");
    for client in [client, idle] {
        let end = client.finish();
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    }
    home.run_ok(&["serve", "--stop"]);
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()), "the new gateway has stayed until now");
}

/// The old gateway waits for a client that is slow to move.
#[test]
fn slow_client_moves_as_well() {
    let (home, marker) = counting_home();
    let mut client = PipeClient::initialized(&home, "project", &[]);
    assert_eq!(client.call("counter__count", &json!({"mark": "first"})), "first");
    let first = gateway_pid(&home).unwrap();
    signal(client.child.id(), "-STOP");
    home.run_ok(&["serve", "--upgrade"]);
    let is_gone = || !std::path::Path::new(&format!("/proc/{first}")).exists();
    assert!(!poll_until(Duration::from_secs(4), is_gone), "a client has not moved yet");
    signal(client.child.id(), "-CONT");
    assert_eq!(client.call("counter__count", &json!({"mark": "second"})), "second");
    let end = client.finish();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert!(poll_until(PATIENCE, || is_gone() && marked_processes(&marker).is_empty()));
}

/// The level of log messages, subscriptions and the era of the client hold at the new gateway.
#[test]
fn session_is_the_same_at_the_new_gateway() {
    let (home, _) = home(&allow_all());
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    client.request("logging/setLevel", &json!({"level": "debug"}));
    let subscribed = client.request("resources/subscribe", &json!({"uri": "demo://greeting"}));
    assert!(subscribed["result"].is_object(), "{subscribed}");
    home.run_ok(&["serve", "--upgrade"]);
    client.wait_for_notification("notifications/prompts/list_changed");
    let again = client.request("initialize", &json!({"protocolVersion": "2025-11-25"}));
    assert!(again["error"]["message"].as_str().unwrap().contains("initialized already"), "{again}");
    let listed = client.request("resources/unsubscribe", &json!({"uri": "demo://greeting"}));
    assert!(listed["result"].is_object(), "{listed}");
    assert_eq!(client.finish().code, Some(0));
}

#[test]
fn only_the_gateway_of_the_same_address_is_replaced() {
    let (home, _) = home(&allow_all());
    let without = home.run(["serve", "--upgrade"]);
    assert!(without.code == Some(3) && without.stderr.contains("no gateway is running"), "{without:?}");
    let (mut first, address) = gateway_at(&home, "127.0.0.1:0");
    let refused = home.run(["serve", "--upgrade"]);
    assert!(refused.code == Some(2) && refused.stderr.contains(&format!("--http {address}")), "{refused:?}");
    let (mut other, other_address) = gateway_at(&home, "127.0.0.1:0");
    assert_ne!(address, other_address);
    assert_eq!(gateway_pid(&home), Some(first.child.id()));
    assert_eq!(other.terminate(), Some(0));
    assert_eq!(first.terminate(), Some(0));
}
