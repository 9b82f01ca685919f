//! An MCP client of either era, as far as load needs one: lists, calls, and answers forms.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::http_connection::{HttpConnection, HttpReply};

const HANDSHAKE_REVISION: &str = "2025-11-25";
const STATELESS_REVISION: &str = "2026-07-28";
const META: &str = "io.modelcontextprotocol";

/// The era of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEra {
    Handshake,
    Stateless,
}

/// The place of a server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub path: String,
    pub token: Option<String>,
}

impl Endpoint {
    /// Parses `http://ADDRESS:PORT/PATH`.
    ///
    /// # Errors
    ///
    /// Fails if it is not of that form.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = || format!("not http://ADDRESS:PORT/PATH: {url}");
        let (authority, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        let address = authority.replace("localhost", "127.0.0.1").parse().map_err(|_| wrong())?;
        Ok(Self { address, path: format!("/{path}"), token: None })
    }
}

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    pub era: ClientEra,
    /// The declared capabilities.
    pub capabilities: Value,
    /// Maximum time of a request.
    pub patience: Duration,
}

impl ClientOptions {
    /// A client that cannot be asked.
    pub fn new(era: ClientEra) -> Self {
        Self { era, capabilities: json!({}), patience: Duration::from_secs(60) }
    }
}

/// A request without a response.
#[derive(Debug)]
pub enum LoadError {
    /// Nothing came in time.
    Hung,
    Io(io::Error),
    /// An HTTP status that is no success, with the body.
    Status(u16, String),
    /// The response is no JSON-RPC response.
    Malformed(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hung => formatter.write_str("no response in time"),
            Self::Io(error) => error.fmt(formatter),
            Self::Status(status, body) => write!(formatter, "HTTP {status}: {body}"),
            Self::Malformed(text) => write!(formatter, "no response: {text}"),
        }
    }
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// One client with a connection of its own.
pub struct McpClient {
    endpoint: Endpoint,
    options: ClientOptions,
    connection: HttpConnection,
    session: Option<String>,
    next_id: u64,
    /// Further header lines of every request, each with its line end.
    pub extra_headers: String,
    /// Every message of the server that is not a response, and every form, as text.
    pub heard: Vec<String>,
}

impl McpClient {
    /// Connects, and initializes a session if the era has one.
    ///
    /// # Errors
    ///
    /// Fails if the server does not answer.
    pub async fn open(endpoint: &Endpoint, options: ClientOptions) -> Result<Self, LoadError> {
        let connection = HttpConnection::open(endpoint.address).await?;
        Self::over(connection, endpoint, options).await
    }

    /// Uses a connection that exists.
    ///
    /// # Errors
    ///
    /// Fails if the server does not answer.
    pub async fn over(
        connection: HttpConnection,
        endpoint: &Endpoint,
        options: ClientOptions,
    ) -> Result<Self, LoadError> {
        let endpoint = endpoint.clone();
        let mut client = Self {
            endpoint,
            options,
            connection,
            session: None,
            next_id: 1,
            extra_headers: String::new(),
            heard: Vec::new(),
        };
        if client.options.era == ClientEra::Handshake {
            client.initialize().await?;
        }
        Ok(client)
    }

    async fn initialize(&mut self) -> Result<(), LoadError> {
        let params = json!({
            "protocolVersion": HANDSHAKE_REVISION,
            "capabilities": self.options.capabilities,
            "clientInfo": {"name": "load", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
        let request = self.framed("initialize", None, &message);
        self.connection.send(&request).await?;
        let reply = self.connection.head().await?;
        self.session.clone_from(&reply.session);
        let answer = self.answer(&reply).await?;
        if answer.get("result").is_none() {
            return Err(LoadError::Malformed(answer.to_string()));
        }
        self.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await
    }

    /// Sends a message that has no response.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses it.
    pub async fn post(&mut self, message: &str) -> Result<(), LoadError> {
        let request = self.framed("", None, message);
        self.connection.send(&request).await?;
        let reply = self.connection.head().await?;
        let body = String::from_utf8_lossy(self.connection.body().await?).into_owned();
        if reply.status < 300 { Ok(()) } else { Err(LoadError::Status(reply.status, body)) }
    }

    /// Sends a request and returns its response. Forms are answered with `answer`.
    ///
    /// # Errors
    ///
    /// Fails if no response comes.
    pub async fn request(&mut self, method: &str, params: Value, answer: &str) -> Result<Value, LoadError> {
        let patience = self.options.patience;
        timeout(patience, self.rounds(method, params, answer)).await.unwrap_or(Err(LoadError::Hung))
    }

    /// Calls a tool with a text.
    ///
    /// # Errors
    ///
    /// Fails if no response comes.
    pub async fn call(&mut self, tool: &str, text: &str) -> Result<Value, LoadError> {
        self.request("tools/call", json!({"name": tool, "arguments": {"text": text}}), text).await
    }

    /// Sends a call whose response is never read.
    ///
    /// # Errors
    ///
    /// Fails if the connection is closed.
    pub async fn call_and_stall(&mut self, tool: &str, text: &str) -> Result<(), LoadError> {
        let params = json!({"name": tool, "arguments": {"text": text}});
        let (message, name) = self.message("tools/call", params);
        let request = self.framed("tools/call", name.as_deref(), &message);
        Ok(self.connection.send(&request).await?)
    }

    /// Returns the bytes of a call, to be sent again and again.
    pub fn template(&mut self, tool: &str, text: &str) -> Vec<u8> {
        let params = json!({"name": tool, "arguments": {"text": text}});
        let (message, name) = self.message("tools/call", params);
        self.framed("tools/call", name.as_deref(), &message)
    }

    /// Sends the bytes of a call and reads its response without looking at it. Returns its size.
    ///
    /// # Errors
    ///
    /// Fails if the response is not a success, or does not come in time.
    pub async fn repeat(&mut self, request: &[u8]) -> Result<usize, LoadError> {
        self.connection.send(request).await?;
        let reply = self.connection.head().await?;
        let body = self.connection.body().await?;
        if reply.status == 200 {
            return Ok(body.len());
        }
        Err(LoadError::Status(reply.status, String::from_utf8_lossy(body).into_owned()))
    }

    async fn rounds(&mut self, method: &str, mut params: Value, answer: &str) -> Result<Value, LoadError> {
        loop {
            let (message, name) = self.message(method, params.clone());
            let request = self.framed(method, name.as_deref(), &message);
            self.connection.send(&request).await?;
            let reply = self.connection.head().await?;
            let response = self.answer_with(&reply, answer).await?;
            let result = &response["result"];
            if result["resultType"] != "input_required" {
                return Ok(response);
            }
            // Questions of 2026-07-28 are answered by the next round of the same request.
            self.heard.push(result["inputRequests"].to_string());
            let questions = result["inputRequests"].as_object().cloned().unwrap_or_default();
            let responses = questions.into_iter().map(|(key, _)| (key, accepted(answer)));
            params["inputResponses"] = Value::Object(responses.collect());
            params["requestState"] = result["requestState"].clone();
        }
    }

    /// Returns the text of a request, and what its header names.
    fn message(&mut self, method: &str, mut params: Value) -> (String, Option<String>) {
        let id = self.next_id;
        self.next_id += 1;
        let name = params["name"].as_str().map(str::to_owned);
        if self.options.era == ClientEra::Stateless {
            let meta = &mut params["_meta"];
            meta[format!("{META}/protocolVersion")] = STATELESS_REVISION.into();
            meta[format!("{META}/clientInfo")] = json!({"name": "load", "version": "1"});
            meta[format!("{META}/clientCapabilities")] = self.options.capabilities.clone();
        }
        (json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(), name)
    }

    fn framed(&self, method: &str, name: Option<&str>, message: &str) -> Vec<u8> {
        let Endpoint { address, path, token } = &self.endpoint;
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            message.len()
        );
        let mut add = |name: &str, value: &str| head.extend([name, ": ", value, "\r\n"]);
        if let Some(token) = token {
            add("Authorization", &format!("Bearer {token}"));
        }
        match self.options.era {
            ClientEra::Handshake => {
                if let Some(session) = &self.session {
                    add("Mcp-Session-Id", session);
                }
                if method != "initialize" {
                    add("Mcp-Protocol-Version", HANDSHAKE_REVISION);
                }
            }
            ClientEra::Stateless => {
                add("Mcp-Protocol-Version", STATELESS_REVISION);
                add("Mcp-Method", method);
                if let Some(name) = name {
                    add("Mcp-Name", name);
                }
            }
        }
        head.push_str(&self.extra_headers);
        let mut request = head.into_bytes();
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(message.as_bytes());
        request
    }

    async fn answer(&mut self, reply: &HttpReply) -> Result<Value, LoadError> {
        self.answer_with(reply, "").await
    }

    /// Reads the response. Forms that come before it are answered on another connection.
    async fn answer_with(&mut self, reply: &HttpReply, answer: &str) -> Result<Value, LoadError> {
        if !reply.is_stream {
            let body = self.connection.body().await?;
            let text = || String::from_utf8_lossy(body).into_owned();
            let parsed = serde_json::from_slice(body);
            return match parsed {
                Ok(response @ Value::Object(_)) => Ok(response),
                _ if reply.status != 200 => Err(LoadError::Status(reply.status, text())),
                _ => Err(LoadError::Malformed(text())),
            };
        }
        let (mut pending, mut response) = (Vec::new(), None);
        while let Some(piece) = self.connection.piece().await? {
            pending.extend_from_slice(&piece);
            while let Some(message) = next_event(&mut pending) {
                if message.get("method").is_none() {
                    response = Some(message);
                    continue;
                }
                self.heard.push(message.to_string());
                self.answer_form(&message, answer).await?;
            }
        }
        response.ok_or_else(|| LoadError::Malformed("the stream has no response".to_owned()))
    }

    async fn answer_form(&self, question: &Value, answer: &str) -> Result<(), LoadError> {
        let Some(id) = question.get("id") else { return Ok(()) };
        let message = match question["method"].as_str() {
            Some("elicitation/create") => json!({"jsonrpc": "2.0", "id": id, "result": accepted(answer)}),
            Some("roots/list") => json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not supported"}}),
        };
        let mut connection = HttpConnection::open(self.endpoint.address).await?;
        connection.send(&self.framed("", None, &message.to_string())).await?;
        let reply = connection.head().await?;
        if reply.status < 300 { Ok(()) } else { Err(LoadError::Status(reply.status, "answer refused".to_owned())) }
    }
}

/// The answer to a form with one field.
fn accepted(answer: &str) -> Value {
    json!({"action": "accept", "content": {"text": answer}})
}

/// Removes the first event from the bytes and returns its message. Events without data are skipped.
fn next_event(pending: &mut Vec<u8>) -> Option<Value> {
    loop {
        // Some servers end lines with CR LF.
        let lf = memchr::memmem::find(pending, b"\n\n").map(|end| (end, 2));
        let crlf = memchr::memmem::find(pending, b"\r\n\r\n").map(|end| (end, 4));
        let (end, length) = lf.into_iter().chain(crlf).min()?;
        let event: Vec<u8> = pending.drain(..end + length).collect();
        let text = String::from_utf8_lossy(&event);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).collect::<String>();
        if let Ok(message @ Value::Object(_)) = serde_json::from_str(&data) {
            return Some(message);
        }
    }
}
