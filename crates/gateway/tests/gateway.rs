//! A gateway over in-process servers, seen by clients of both eras on a pipe and over HTTP.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, split};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use wharf::spec::ServerName;
use wharf::tools::AllowAllGate;
use wharf::{ClosureServer, Host, HostBuilder, LocalEntry, ToolReply};
use wharf_gateway::{Gateway, GatewayOptions, NameScheme};
use wharf_serve::{ClientAccess, HttpForm, HttpLimits, HttpServer, serve_lines};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Signals of the tool `wait`.
#[derive(Clone, Default)]
struct WaitSignals {
    started: Arc<Notify>,
    dropped: Arc<Notify>,
}

struct DropSignal(Arc<Notify>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A server whose tools answer with its name.
fn server(name: &'static str, signals: &WaitSignals) -> ClosureServer {
    let signals = signals.clone();
    let schema = || json!({"type": "object"});
    ClosureServer::new(name, "1")
        .tool("echo", "Returns its arguments", schema(), move |call| async move {
            Ok(ToolReply::text(format!("{name}: {}", call.arguments.as_str())))
        })
        .tool("wait", "Never returns", schema(), move |_| {
            let signals = signals.clone();
            async move {
                let _dropped = DropSignal(signals.dropped);
                signals.started.notify_one();
                std::future::pending::<Result<ToolReply, String>>().await
            }
        })
        .resource("note://same", "same", "text/plain", move || async move { Ok(format!("note of {name}")) })
        .prompt("greet", "Greets", &["who"], |arguments| async move { Ok(format!("Ahoy, {}!", arguments["who"])) })
}

fn host(signals: &WaitSignals) -> HostBuilder {
    let names = ["one", "two"];
    names.into_iter().fold(Host::builder().gate(Arc::new(AllowAllGate)), |builder, name| {
        let signals = signals.clone();
        builder.local(ServerName::new(name).unwrap(), move || server(name, &signals))
    })
}

async fn gateway() -> (Gateway, WaitSignals) {
    let signals = WaitSignals::default();
    let host = host(&signals).start().await.unwrap();
    (Gateway::new(host, GatewayOptions::default()), signals)
}

/// A client on a pipe.
struct PipeClient {
    lines: Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    output: tokio::io::WriteHalf<DuplexStream>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl PipeClient {
    fn connect(gateway: &Gateway) -> Self {
        let (own, theirs) = tokio::io::duplex(1 << 16);
        let gateway = gateway.clone();
        let serving = tokio::spawn(async move {
            let (input, output) = split(theirs);
            serve_lines(&gateway, BufReader::new(input), output).await
        });
        let (input, output) = split(own);
        Self { lines: BufReader::new(input).lines(), output, serving }
    }

    async fn initialized(gateway: &Gateway, revision: &str) -> Self {
        let mut client = Self::connect(gateway);
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test"}});
        let answer = client.ask(0, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        client
    }

    async fn send(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line()).await;
        serde_json::from_str(&line.expect("an answer in time").unwrap().expect("an answer")).unwrap()
    }

    /// Sends a request and returns its response. Notifications before it are dropped.
    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let message = self.next().await;
            if message.get("method").is_none() {
                assert_eq!(message["id"], id, "{message}");
                return message;
            }
        }
    }

    async fn end(mut self) {
        self.output.shutdown().await.unwrap();
        self.serving.await.unwrap().unwrap();
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// The parameters of a stateless request.
fn stateless(mut params: Value) -> Value {
    let capabilities = json!({});
    params["_meta"][VERSION] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

#[tokio::test]
async fn session_lists_and_calls_the_tools_of_all_servers() {
    let (gateway, _) = gateway().await;
    let mut client = PipeClient::initialized(&gateway, "2025-06-18").await;
    assert_eq!(client.ask(1, "ping", json!({})).await["result"], json!({}));
    let listed = client.ask(2, "tools/list", json!({})).await;
    assert_eq!(names(&listed["result"]["tools"]), ["one__echo", "one__wait", "two__echo", "two__wait"]);
    let arguments = json!({"x": 1});
    let called = client.ask(3, "tools/call", json!({"name": "two__echo", "arguments": arguments})).await;
    assert_eq!(called["result"]["content"][0]["text"], r#"two: {"x":1}"#);
    let unknown = client.ask(4, "tools/call", json!({"name": "three__echo"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(client.ask(5, "tools/fly", json!({})).await["error"]["code"], -32601);
    let again = client.ask(6, "initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(again["error"]["code"], -32600);
    client.end().await;
    gateway.host().close().await;
}

#[tokio::test]
async fn stateless_results_are_marked_as_complete() {
    let (gateway, _) = gateway().await;
    let mut client = PipeClient::connect(&gateway);
    let discovered = client.ask(1, "server/discover", stateless(json!({}))).await;
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28");
    let listed = client.ask(2, "tools/list", stateless(json!({}))).await;
    let result = &listed["result"];
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("private")), "{listed}");
    let called = client.ask(3, "tools/call", stateless(json!({"name": "one__echo", "arguments": {}}))).await;
    assert_eq!(called["result"]["resultType"], "complete");
    let mut unsupported = stateless(json!({}));
    unsupported["_meta"][VERSION] = "2030-01-01".into();
    let refused = client.ask(4, "tools/list", unsupported).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["requested"]),
        (&json!(-32022), &json!("2030-01-01"))
    );
    assert_eq!(client.ask(5, "ping", stateless(json!({}))).await["error"]["code"], -32601);
    client.end().await;
    gateway.host().close().await;
}

#[tokio::test]
async fn resources_and_prompts_reach_their_own_server() {
    let (gateway, _) = gateway().await;
    let mut client = PipeClient::initialized(&gateway, "2025-11-25").await;
    let listed = client.ask(1, "resources/list", json!({})).await;
    let uris: Vec<&Value> =
        listed["result"]["resources"].as_array().unwrap().iter().map(|entry| &entry["uri"]).collect();
    assert_eq!(uris, ["note://same", "two+note://same"]);
    for (id, uri, text) in [(2, "note://same", "note of one"), (3, "two+note://same", "note of two")] {
        let read = client.ask(id, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0]["text"], text);
    }
    assert_eq!(client.ask(4, "resources/read", json!({"uri": "note://none"})).await["error"]["code"], -32002);
    let prompts = client.ask(5, "prompts/list", json!({})).await;
    assert_eq!(names(&prompts["result"]["prompts"]), ["one__greet", "two__greet"]);
    let got = client.ask(6, "prompts/get", json!({"name": "two__greet", "arguments": {"who": "Ada"}})).await;
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "Ahoy, Ada!");
    client.end().await;
    gateway.host().close().await;
}

#[tokio::test]
async fn cancelled_call_is_cancelled_at_its_server_and_has_no_response() {
    let (gateway, signals) = gateway().await;
    let mut client = PipeClient::initialized(&gateway, "2025-06-18").await;
    let wait = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "one__wait"}});
    client.send(wait("w")).await;
    signals.started.notified().await;
    client.send(wait("w")).await;
    assert_eq!(client.next().await["error"]["code"], -32600, "its id is in use");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}});
    client.send(cancel).await;
    signals.dropped.notified().await;
    // The next message is the response to something else.
    assert_eq!(client.ask(2, "ping", json!({})).await["id"], 2);
    client.send(wait("w")).await;
    signals.started.notified().await;
    client.end().await;
    signals.dropped.notified().await;
    gateway.host().close().await;
}

#[tokio::test]
async fn list_changes_are_announced_in_both_eras() {
    let (gateway, signals) = gateway().await;
    let mut session = PipeClient::initialized(&gateway, "2025-06-18").await;
    session.ask(1, "tools/list", json!({})).await;
    let mut stateless_client = PipeClient::connect(&gateway);
    let wanted = stateless(json!({"notifications": {"toolsListChanged": true, "unheardOf": true}}));
    stateless_client.send(json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": wanted})).await;
    let granted = stateless_client.next().await;
    assert_eq!(granted["params"]["notifications"], json!({"toolsListChanged": true}));
    let made = AtomicUsize::new(0);
    let entry = move |name: &'static str| {
        made.fetch_add(1, Ordering::Relaxed);
        let signals = signals.clone();
        LocalEntry::new(ServerName::new(name).unwrap(), Arc::new(move || Ok(Box::new(server(name, &signals)))))
    };
    gateway.host().set_all_servers(Vec::new(), vec![entry("three")]).await;
    let mut methods = Vec::new();
    while methods.len() < 3 {
        methods.push(session.next().await["method"].as_str().unwrap().to_owned());
    }
    assert!(methods.iter().any(|method| method == "notifications/tools/list_changed"), "{methods:?}");
    let told = stateless_client.next().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 9);
    session.end().await;
    stateless_client.end().await;
    gateway.host().close().await;
}

#[tokio::test]
async fn batch_is_answered_as_a_batch() {
    let (gateway, _) = gateway().await;
    let mut client = PipeClient::initialized(&gateway, "2025-03-26").await;
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    client.send(json!([ping(1), list, ping(2), {"jsonrpc": "2.0", "method": "notifications/x"}])).await;
    let answers = client.next().await;
    let mut ids: Vec<u64> = answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    client.end().await;
    gateway.host().close().await;
}

#[tokio::test]
async fn response_that_is_ready_when_the_input_ends_is_written() {
    let (gateway, _) = gateway().await;
    let mut client = PipeClient::initialized(&gateway, "2025-06-18").await;
    client.send(json!({"jsonrpc": "2.0", "id": 7, "method": "ping"})).await;
    client.output.shutdown().await.unwrap();
    assert_eq!(client.next().await, json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    client.serving.await.unwrap().unwrap();
    gateway.host().close().await;
}

#[tokio::test]
async fn refused_call_tells_the_model_why() {
    let signals = WaitSignals::default();
    let host = Host::builder().local(ServerName::new("one").unwrap(), move || server("one", &signals));
    let host = host.start().await.unwrap();
    let mut options = GatewayOptions::default();
    options.names = NameScheme::Plain;
    let gateway = Gateway::new(host, options);
    let mut client = PipeClient::initialized(&gateway, "2025-06-18").await;
    assert_eq!(names(&client.ask(1, "tools/list", json!({})).await["result"]["tools"]), ["echo", "wait"]);
    let refused = client.ask(2, "tools/call", json!({"name": "echo", "arguments": {}})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("permission") && text.contains("hint: "), "{text}");
    client.end().await;
    gateway.host().close().await;
}

/// Sends one request on a connection of its own and returns the response.
async fn post(address: &str, headers: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn http_clients_present_the_token_and_share_the_servers() {
    let (gateway, _) = gateway().await;
    let access = ClientAccess::token("secret");
    let address = "127.0.0.1:0".parse().unwrap();
    let service = Arc::new(gateway.clone());
    let server = HttpServer::bind(address, HttpForm::Streamable, service, access, HttpLimits::default()).await.unwrap();
    let url = server.url().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let serving = tokio::spawn(async move { server.run(stopped.notified()).await });
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let refused = post(&address, "", &initialize).await;
    assert!(refused.starts_with("HTTP/1.1 401 ") && refused.contains("www-authenticate: Bearer"), "{refused}");
    let token = "Authorization: Bearer secret\r\n";
    let opened = post(&address, token, &initialize).await;
    assert!(opened.starts_with("HTTP/1.1 200 "), "{opened}");
    let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "one__echo"}});
    let called = post(&address, &format!("{token}Mcp-Session-Id: {session}\r\n"), &call).await;
    assert!(called.contains(r#""text":"one: {}""#), "{called}");
    let params = stateless(json!({"name": "two__echo", "arguments": {}}));
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
    let repeated = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: two__echo\r\n";
    let called = post(&address, &format!("{token}{repeated}"), &call).await;
    assert!(called.contains(r#""resultType":"complete""#) && called.contains("two: {}"), "{called}");
    let mismatched = repeated.replace("two__echo", "one__echo");
    let refused = post(&address, &format!("{token}{mismatched}"), &call).await;
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("-32020"), "{refused}");
    stop.notify_one();
    serving.await.unwrap();
    gateway.host().close().await;
}
