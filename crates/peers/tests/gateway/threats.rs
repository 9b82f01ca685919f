//! What clients send and servers must not get: tokens, headers, commands (T01, T55, T56, T62).

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf_peers::load::{ClientEra, ClientOptions, Endpoint, McpClient};
use wharf_testkit::test_home::USER_CONFIG;

use crate::served::{ServedGateway, ServedHome, block_on};
use crate::{Findings, Scale};

const CANARY: &str = "canary-of-the-client";

pub fn leaks(_: Scale) -> Findings {
    let mut found = Findings::new("T01, T55, T56, T62");
    let served = ServedHome::new(1);
    let captured = capture_upstream();
    let transcript = served.home.root().join("transcript");
    configure(&served, &transcript, captured.port);
    let gateway = ServedGateway::start(&served);
    let token = gateway.endpoint.token.clone().unwrap_or_default();
    let file = served.home.root().join("touched");
    block_on(async {
        for era in [ClientEra::Handshake, ClientEra::Stateless] {
            found.problems.extend(call_with_canaries(&gateway.endpoint, era).await);
            found.problems.extend(send_commands(&gateway.endpoint, era, file.to_str().unwrap()).await);
        }
    });
    gateway.terminate();
    let seen = std::fs::read_to_string(&transcript).unwrap_or_default();
    let over_http = captured.bytes.lock().unwrap().clone();
    found.figure(format!("{} bytes to a server on a pipe, {} over HTTP", seen.len(), over_http.len()));
    found.require(seen.contains("tools/call") && !over_http.is_empty(), || "the servers saw nothing".to_owned());
    for (what, text) in [("token", token.as_str()), ("header or baggage", CANARY)] {
        let is_seen = seen.contains(text) || over_http.contains(text);
        found.require(!is_seen, || format!("{what} of a client reached a server"));
    }
    found.require(!file.exists(), || "a client started a command".to_owned());
    // Two clients with the same arguments: each call reaches the server (T56).
    let calls = std::fs::read_to_string(served.journal(0)).unwrap_or_default().lines().count();
    found.require(calls == 2, || format!("{calls} calls instead of 2"));
    found
}

/// A server on a pipe that writes down what it gets, and one over HTTP that never answers properly.
fn configure(served: &ServedHome, transcript: &std::path::Path, port: u16) {
    let mut config: Value = serde_json::from_str(&served.home.read(USER_CONFIG)).unwrap();
    let words = config["mcpServers"]["s0"]["args"].as_array_mut().unwrap();
    words.extend([json!("--transcript"), json!(transcript)]);
    config["mcpServers"]["web"] = json!({"type": "http", "url": format!("http://127.0.0.1:{port}/mcp")});
    served.home.write(USER_CONFIG, &config.to_string());
}

async fn call_with_canaries(endpoint: &Endpoint, era: ClientEra) -> Vec<String> {
    let mut client = McpClient::open(endpoint, ClientOptions::new(era)).await.unwrap();
    client.extra_headers = format!("baggage: who={CANARY}\r\nX-Secret: {CANARY}\r\nCookie: {CANARY}\r\n");
    let (arguments, meta) = (json!({"text": "the same for both"}), json!({"baggage": format!("who={CANARY}")}));
    let params = json!({"name": "s0__note", "arguments": arguments, "_meta": meta});
    match client.request("tools/call", params, "").await {
        Ok(answer) if answer["result"]["content"][0]["text"] == "the same for both" => Vec::new(),
        other => vec![format!("{era:?}: {other:?}")],
    }
}

/// Requests that would add a server, if there were any (T01).
async fn send_commands(endpoint: &Endpoint, era: ClientEra, file: &str) -> Vec<String> {
    let mut client = McpClient::open(endpoint, ClientOptions::new(era)).await.unwrap();
    let command = json!({"name": "x", "command": "touch", "args": [file], "type": "stdio"});
    let mut problems = Vec::new();
    for method in ["servers/add", "server/start", "tools/register", "roots/set", "initialize", "completion/complete"] {
        let params =
            json!({"name": "x", "server": command, "command": "touch", "args": [file], "mcpServers": {"x": command}});
        match client.request(method, params, "").await {
            Ok(answer) if answer.get("error").is_some() => {}
            // A session may be initialized again. That starts nothing.
            Ok(_) if method == "initialize" => {}
            other => problems.push(format!("{method}: {other:?}")),
        }
    }
    problems
}

/// The bytes that arrived at a listener.
struct CapturedBytes {
    port: u16,
    bytes: Arc<Mutex<String>>,
}

/// Starts a listener that keeps what it gets and answers 404.
fn capture_upstream() -> CapturedBytes {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let captured = CapturedBytes { port: listener.local_addr().unwrap().port(), bytes: Arc::default() };
    let bytes = Arc::clone(&captured.bytes);
    // Ends with the process: nothing waits for it.
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| capture(stream, &bytes)));
    captured
}

fn capture(mut stream: TcpStream, bytes: &Mutex<String>) {
    let mut buffer = [0; 65536];
    let read = stream.read(&mut buffer).unwrap_or_default();
    bytes.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
    let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}
