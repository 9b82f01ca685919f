//! Clients of either era on a pipe, over Streamable HTTP and over HTTP+SSE.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, split};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use wharf_gateway::Gateway;
use wharf_serve::{ClientAccess, HttpForm, HttpLimits, HttpServer, serve_lines};

const PREFIX: &str = "io.modelcontextprotocol/";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
    Sse,
}

/// A gateway that listens.
pub struct Listener {
    pub address: String,
    serving: JoinHandle<()>,
}

impl Listener {
    pub async fn open(gateway: &Gateway, form: HttpForm) -> Self {
        let (address, service) = ("127.0.0.1:0".parse().unwrap(), Arc::new(gateway.clone()));
        let bound = HttpServer::bind(address, form, service, ClientAccess::Anyone, HttpLimits::default()).await;
        let server = bound.unwrap();
        let url = server.url().unwrap();
        let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Self { address, serving: tokio::spawn(server.run(std::future::pending())) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A message and the id of its event.
pub type ReceivedEvent = (Option<String>, Value);

/// Sends a request and passes on the messages of its response as they come. HTTP/1.0: no chunks.
pub async fn exchange(head: String, body: String, address: String, messages: UnboundedSender<ReceivedEvent>) -> String {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "{head} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // The headers of `head` follow its first line.
    let request = match head.split_once("\r\n") {
        None => request,
        Some((line, headers)) => format!(
            "{line} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    };
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reader = BufReader::new(stream);
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        if reader.read_line(&mut headers).await.unwrap() == 0 {
            return headers;
        }
    }
    if !headers.to_lowercase().contains("content-type: text/event-stream") {
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        if let Ok(message) = serde_json::from_str(&text) {
            let _ = messages.send((None, message));
        }
        return headers;
    }
    let (mut lines, mut id) = (reader.lines(), None);
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(value) = line.strip_prefix("id: ") {
            id = Some(value.to_owned());
        } else if let Some(data) = line.strip_prefix("data: ") {
            let message = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
            let _ = messages.send((id.take(), message));
        }
    }
    headers
}

/// A client of a handshake revision.
pub struct SessionClient {
    messages: UnboundedReceiver<ReceivedEvent>,
    sender: UnboundedSender<ReceivedEvent>,
    way: SessionWay,
    /// Id of the last event.
    pub last_event: Option<String>,
    requests: u64,
}

enum SessionWay {
    Pipe { output: tokio::io::WriteHalf<DuplexStream>, serving: JoinHandle<()>, reading: JoinHandle<()> },
    Http { address: String, session: String, calls: Vec<JoinHandle<String>> },
    Sse { address: String, path: String, reading: JoinHandle<String> },
}

impl SessionClient {
    pub async fn open(gateway: &Gateway, address: &str, transport: Transport, hello: SessionHello) -> Self {
        let SessionHello { revision, capabilities } = hello;
        let (sender, messages) = unbounded_channel();
        let way = match transport {
            Transport::Stdio => open_pipe(gateway, &sender),
            Transport::Http => {
                SessionWay::Http { address: address.to_owned(), session: String::new(), calls: Vec::new() }
            }
            Transport::Sse => {
                let head = "GET /sse\r\nAccept: text/event-stream".to_owned();
                let reading = tokio::spawn(exchange(head, String::new(), address.to_owned(), sender.clone()));
                SessionWay::Sse { address: address.to_owned(), path: String::new(), reading }
            }
        };
        let mut client = Self { messages, sender, way, last_event: None, requests: 100 };
        if let SessionWay::Sse { path, .. } = &mut client.way {
            let endpoint = client.messages.recv().await.unwrap().1;
            *path = endpoint.as_str().unwrap().to_owned();
        }
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        if let SessionWay::Http { session, .. } = &mut client.way {
            let head = post_head("");
            let headers = exchange(head, initialize.to_string(), address.to_owned(), client.sender.clone()).await;
            let id = headers.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
            *session = id.unwrap().to_owned();
        } else {
            client.send(initialize).await;
        }
        assert_eq!(client.next().await["result"]["protocolVersion"], revision);
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    /// Returns an id that no other request has.
    pub fn next_id(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// Opens the stream for messages that belong to no call. Other transports have it from the start.
    pub async fn open_stream(&mut self) {
        let SessionWay::Http { address, session, calls } = &mut self.way else { return };
        let head = format!("GET /mcp\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}");
        calls.push(tokio::spawn(exchange(head, String::new(), address.clone(), self.sender.clone())));
        // Streams of a session are served in order: the response says that this one is open.
        let id = self.next_id();
        self.request(id, "ping", json!({})).await;
        self.response(id).await;
    }

    pub async fn send(&mut self, message: Value) {
        match &mut self.way {
            SessionWay::Pipe { output, .. } => output.write_all(format!("{message}\n").as_bytes()).await.unwrap(),
            SessionWay::Http { address, session, calls } => {
                let head = post_head(&format!("Mcp-Session-Id: {session}\r\n"));
                let sending = tokio::spawn(exchange(head, message.to_string(), address.clone(), self.sender.clone()));
                if message.is_object() && (message["id"].is_null() || message["method"].is_null()) {
                    sending.await.unwrap();
                } else {
                    calls.push(sending);
                }
            }
            SessionWay::Sse { address, path, .. } => {
                let head = format!("POST {path}\r\nAccept: application/json, text/event-stream");
                exchange(head, message.to_string(), address.clone(), self.sender.clone()).await;
            }
        }
    }

    pub async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    pub async fn respond(&mut self, question: &Value, answer: Result<Value, i64>) {
        let mut response = json!({"jsonrpc": "2.0", "id": question["id"]});
        match answer {
            Ok(result) => response["result"] = result,
            Err(code) => response["error"] = json!({"code": code, "message": "refused"}),
        }
        self.send(response).await;
    }

    pub async fn next(&mut self) -> Value {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(20), self.messages.recv()).await;
            let (id, message) = next.expect("a message in time").expect("a message");
            self.last_event = id.or(self.last_event.take());
            if message.is_object() || message.is_array() {
                return message;
            }
        }
    }

    /// Returns the next message that `wanted` accepts.
    pub async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await;
            if wanted(&message) {
                return message;
            }
        }
    }

    pub async fn question(&mut self) -> Value {
        self.find(|message| message["method"].is_string() && !message["id"].is_null()).await
    }

    pub async fn response(&mut self, id: u64) -> Value {
        self.find(|message| message["method"].is_null() && message["id"] == id).await
    }

    /// Closes the streams of all calls. The session of Streamable HTTP continues.
    pub fn close_calls(&mut self) {
        if let SessionWay::Http { calls, .. } = &mut self.way {
            calls.drain(..).for_each(|call| call.abort());
        }
    }

    /// Reads the rest of the last stream.
    pub fn resume(&mut self) {
        let SessionWay::Http { address, session, calls } = &mut self.way else { return };
        let last = self.last_event.clone().unwrap();
        let head =
            format!("GET /mcp\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\nLast-Event-ID: {last}");
        calls.push(tokio::spawn(exchange(head, String::new(), address.clone(), self.sender.clone())));
    }

    pub async fn close(self) {
        match self.way {
            SessionWay::Pipe { mut output, serving, reading } => {
                output.shutdown().await.unwrap();
                serving.await.unwrap();
                reading.await.unwrap();
            }
            SessionWay::Http { address, session, calls } => {
                calls.iter().for_each(JoinHandle::abort);
                let head = format!("DELETE /mcp\r\nMcp-Session-Id: {session}");
                exchange(head, String::new(), address, self.sender).await;
            }
            SessionWay::Sse { reading, .. } => {
                reading.abort();
                let _ = reading.await;
            }
        }
    }
}

fn post_head(headers: &str) -> String {
    let headers = headers.trim_end();
    let more = if headers.is_empty() { String::new() } else { format!("\r\n{headers}") };
    format!("POST /mcp\r\nAccept: application/json, text/event-stream{more}")
}

fn open_pipe(gateway: &Gateway, sender: &UnboundedSender<ReceivedEvent>) -> SessionWay {
    let (own, theirs) = tokio::io::duplex(1 << 16);
    let gateway = gateway.clone();
    let serving = tokio::spawn(async move {
        let (input, output) = split(theirs);
        serve_lines(&gateway, BufReader::new(input), output).await.unwrap();
    });
    let (input, output) = split(own);
    let sender = sender.clone();
    let reading = tokio::spawn(async move {
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let _ = sender.send((None, serde_json::from_str(&line).unwrap()));
        }
    });
    SessionWay::Pipe { output, serving, reading }
}

/// What a client says at the beginning of its session.
pub struct SessionHello {
    pub revision: &'static str,
    pub capabilities: Value,
}

/// The stream of one request of a stateless client.
pub enum ClientStream<'a> {
    Pipe(&'a mut StatelessClient),
    Http { messages: UnboundedReceiver<ReceivedEvent>, reading: JoinHandle<String> },
}

impl ClientStream<'_> {
    pub async fn next(&mut self) -> Value {
        match self {
            Self::Pipe(client) => client.next().await,
            Self::Http { messages, .. } => {
                let next = tokio::time::timeout(Duration::from_secs(20), messages.recv()).await;
                next.expect("a message in time").expect("a message").1
            }
        }
    }

    pub async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await;
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Cancels the request: over HTTP by closing its stream.
    pub async fn cancel(self) {
        match self {
            Self::Pipe(client) => {
                let params = json!({"requestId": client.requests});
                let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                client.pipe.as_mut().unwrap().send(cancelled).await;
            }
            Self::Http { reading, .. } => {
                reading.abort();
                let _ = reading.await;
            }
        }
    }
}

/// A client of 2026-07-28.
pub struct StatelessClient {
    pipe: Option<SessionClient>,
    address: String,
    capabilities: Value,
    pub log_level: Option<&'static str>,
    /// Notifications before the last response.
    pub notifications: Vec<Value>,
    requests: u64,
}

impl StatelessClient {
    pub fn open(gateway: &Gateway, address: &str, transport: Transport, capabilities: Value) -> Self {
        let pipe = (transport == Transport::Stdio).then(|| {
            let (sender, messages) = unbounded_channel();
            let way = open_pipe(gateway, &sender);
            SessionClient { messages, sender, way, last_event: None, requests: 100 }
        });
        let (address, notifications) = (address.to_owned(), Vec::new());
        Self { pipe, address, capabilities, log_level: None, notifications, requests: 0 }
    }

    /// Sends a request on the pipe and does not wait for its response.
    pub async fn send(&mut self, method: &str, mut params: Value) {
        self.requests += 1;
        params["_meta"][format!("{PREFIX}protocolVersion")] = "2026-07-28".into();
        params["_meta"][format!("{PREFIX}clientCapabilities")] = self.capabilities.clone();
        let request = json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params});
        self.pipe.as_mut().unwrap().send(request).await;
    }

    /// Returns the next message on the pipe.
    pub async fn next(&mut self) -> Value {
        self.pipe.as_mut().unwrap().next().await
    }

    /// Sends a request and returns its response.
    pub async fn call(&mut self, method: &str, mut params: Value) -> Value {
        self.requests += 1;
        params["_meta"][format!("{PREFIX}protocolVersion")] = "2026-07-28".into();
        params["_meta"][format!("{PREFIX}clientCapabilities")] = self.capabilities.clone();
        params["_meta"][format!("{PREFIX}clientInfo")] = json!({"name": "test", "version": "1"});
        if let Some(level) = self.log_level {
            params["_meta"][format!("{PREFIX}logLevel")] = level.into();
        }
        let names = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str());
        let (id, name) = (self.requests, names.map(str::to_owned));
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.notifications.clear();
        let mut messages = match &mut self.pipe {
            Some(pipe) => {
                pipe.send(request).await;
                None
            }
            None => {
                let name = name.map(|name| format!("\r\nMcp-Name: {name}")).unwrap_or_default();
                let head = post_head(&format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{name}"));
                let (sender, messages) = unbounded_channel();
                exchange(head, request.to_string(), self.address.clone(), sender).await;
                Some(messages)
            }
        };
        loop {
            let message = match (&mut messages, &mut self.pipe) {
                (Some(messages), _) => messages.recv().await.expect("a response").1,
                (None, Some(pipe)) => pipe.next().await,
                (None, None) => unreachable!("a client has a transport"),
            };
            if message["method"].is_null() {
                assert_eq!(message["id"], id, "{message}");
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Sends a message as it is and returns the answer.
    pub async fn send_raw(&mut self, message: Value) -> Value {
        if let Some(pipe) = &mut self.pipe {
            pipe.send(message).await;
            return pipe.next().await;
        }
        let head = post_head("MCP-Protocol-Version: 2026-07-28");
        let (sender, mut messages) = unbounded_channel();
        exchange(head, message.to_string(), self.address.clone(), sender).await;
        messages.recv().await.expect("a response").1
    }

    /// Sends a request over HTTP or on the pipe, and returns the messages of its stream as they come.
    pub async fn open_stream(&mut self, method: &str, mut params: Value) -> ClientStream<'_> {
        if self.pipe.is_some() {
            self.send(method, params).await;
            return ClientStream::Pipe(self);
        }
        self.requests += 1;
        params["_meta"][format!("{PREFIX}protocolVersion")] = "2026-07-28".into();
        params["_meta"][format!("{PREFIX}clientCapabilities")] = self.capabilities.clone();
        let name = params["name"].as_str().map(|name| format!("\r\nMcp-Name: {name}")).unwrap_or_default();
        let request = json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params});
        let head = post_head(&format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{name}"));
        let (sender, messages) = unbounded_channel();
        let reading = tokio::spawn(exchange(head, request.to_string(), self.address.clone(), sender));
        ClientStream::Http { messages, reading }
    }

    pub async fn close(self) {
        if let Some(pipe) = self.pipe {
            pipe.close().await;
        }
    }
}
