//! A server of either era whose tools, prompts and resources ask the client before they answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use wharf::spec::{ServerName, ServerSettings};
use wharf::wire::Era;
use wharf::{HostBuilder, LocalFactory, LocalServer, ServerEnd, Workers};
use wharf_client::{BoxedFuture, ClientSender};

/// State that a server wants back byte for byte.
pub const STATE: &str = " \u{e9}\\n \"quoted\" ";

/// What all servers of a test have received.
#[derive(Clone)]
pub struct ReceivedMessages {
    messages: Arc<Mutex<Vec<Value>>>,
    count: Arc<watch::Sender<usize>>,
}

impl Default for ReceivedMessages {
    fn default() -> Self {
        Self { messages: Arc::default(), count: Arc::new(watch::Sender::new(0)) }
    }
}

impl ReceivedMessages {
    pub fn push(&self, message: &Value) {
        self.messages.lock().unwrap().push(message.clone());
        self.count.send_modify(|count| *count += 1);
    }

    /// Returns the number of messages of a method.
    pub fn count(&self, method: &str) -> usize {
        self.messages.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }

    /// Returns the messages of a method.
    pub fn all(&self, method: &str) -> Vec<Value> {
        self.messages.lock().unwrap().iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// Waits for a message of a method.
    pub async fn wait_for(&self, method: &str) {
        self.find(|message| message["method"] == method).await;
    }

    /// Waits for a message that `wanted` accepts.
    pub async fn find(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            let mut count = self.count.subscribe();
            loop {
                let found = self.messages.lock().unwrap().iter().find(|message| wanted(message)).cloned();
                match found {
                    Some(found) => return found,
                    None => count.changed().await.unwrap(),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), found).await.expect("a message in time")
    }
}

/// Adds the server `s` to a host.
pub fn add_server(builder: HostBuilder, era: Era, received: &ReceivedMessages) -> HostBuilder {
    let received = received.clone();
    let factory: LocalFactory = Arc::new(move || {
        Ok(Box::new(AskingServer {
            era,
            received: received.clone(),
            capabilities: Value::Null,
            listen: Value::Null,
            calls: HashMap::new(),
        }))
    });
    builder.local_with(ServerName::new("s").unwrap(), ServerSettings::default(), factory)
}

struct AskingServer {
    era: Era,
    received: ReceivedMessages,
    /// What the client has declared in its handshake.
    capabilities: Value,
    /// Id of the last listen.
    listen: Value,
    /// The calls that wait for an answer, by the id of the question.
    calls: HashMap<String, Value>,
}

impl LocalServer for AskingServer {
    fn serve(mut self: Box<Self>, mut end: ServerEnd, _: Workers) -> BoxedFuture<()> {
        Box::pin(async move {
            let out = end.sender();
            while let Some(message) = end.receive().await {
                let message: Value = serde_json::from_slice(&message.text).unwrap();
                self.received.push(&message);
                self.handle(&message, &out);
            }
        })
    }
}

impl AskingServer {
    fn handle(&mut self, message: &Value, out: &ClientSender) {
        if message["params"]["name"] == "update" {
            let params = self.with_subscription(json!({"uri": "ask://plain"}));
            let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params});
            out.send(updated.to_string());
        }
        let reply =
            |result: Value| out.send(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string());
        let refuse = |code: i64| {
            let error = json!({"code": code, "message": "refused"});
            out.send(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string());
        };
        let offered = json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "logging": {}});
        let names = ["form", "page", "sampling", "roots", "log", "plain", "update"];
        match (message["method"].as_str(), self.era) {
            (Some("server/discover"), Era::Stateless) => {
                reply(
                    json!({"supportedVersions": ["2026-07-28"], "capabilities": offered, "ttlMs": 0, "cacheScope": "private"}),
                );
            }
            (Some("initialize"), Era::Handshake) => {
                self.capabilities = message["params"]["capabilities"].clone();
                let info = json!({"name": "s", "version": "1"});
                reply(json!({"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": info}));
            }
            (Some("tools/list"), _) => {
                let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
                reply(json!({"tools": names.iter().map(tool).collect::<Vec<_>>()}));
            }
            (Some("prompts/list"), _) => {
                reply(json!({"prompts": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()}));
            }
            (Some("resources/list"), _) => {
                let resource = |name: &&str| json!({"uri": format!("ask://{name}"), "name": name});
                reply(json!({"resources": names.iter().map(resource).collect::<Vec<_>>()}));
            }
            (Some("resources/templates/list"), _) => reply(json!({"resourceTemplates": []})),
            (Some("logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"), Era::Handshake) => {
                reply(json!({}));
            }
            (Some("subscriptions/listen"), Era::Stateless) => {
                self.listen = message["id"].clone();
                let params = self.with_subscription(json!({"notifications": message["params"]["notifications"]}));
                let method = "notifications/subscriptions/acknowledged";
                out.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
            }
            (Some("tools/call" | "prompts/get" | "resources/read"), Era::Handshake) => {
                self.ask_by_request(message, out)
            }
            (Some("tools/call" | "prompts/get" | "resources/read"), Era::Stateless) => ask_by_result(message, out),
            (None, _) => {
                let call = message["id"].as_str().and_then(|id| self.calls.remove(id));
                if let Some(call) = call {
                    let answer = if message["error"].is_null() { &message["result"] } else { &message["error"] };
                    let result = result_of(&call, &answer.to_string());
                    out.send(json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string());
                }
            }
            (Some(method), _) if !method.starts_with("notifications/") => refuse(-32601),
            _ => {}
        }
    }

    /// Adds the id of the listen, which notifications of the stateless era name.
    fn with_subscription(&self, mut params: Value) -> Value {
        if self.era == Era::Stateless {
            params["_meta"]["io.modelcontextprotocol/subscriptionId"] = self.listen.clone();
        }
        params
    }

    fn ask_by_request(&mut self, call: &Value, out: &ClientSender) {
        let kind = kind_of(call);
        let Some(mut question) = question(&kind).filter(|_| self.capabilities.get(capability(&kind)).is_some()) else {
            if kind == "log" {
                send_log(call, out);
            }
            let result = result_of(call, "not asked");
            return out.send(json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string());
        };
        let id = format!("s-{}", call["id"]);
        self.calls.insert(id.clone(), call.clone());
        question["jsonrpc"] = "2.0".into();
        question["id"] = id.into();
        out.send(question.to_string());
    }
}

fn ask_by_result(call: &Value, out: &ClientSender) {
    let kind = kind_of(call);
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let answer = &call["params"]["inputResponses"]["q"];
    let result = match question(&kind).filter(|_| declared.get(capability(&kind)).is_some()) {
        Some(question) if answer.is_null() => {
            json!({"resultType": "input_required", "inputRequests": {"q": question}, "requestState": STATE})
        }
        Some(_) if call["params"]["requestState"] != STATE => result_of(call, "the state was changed"),
        Some(_) => result_of(call, &answer.to_string()),
        None => {
            if kind == "log" {
                send_log(call, out);
            }
            result_of(call, "not asked")
        }
    };
    out.send(json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string());
}

fn send_log(call: &Value, out: &ClientSender) {
    let params = json!({"level": "warning", "logger": "s", "data": format!("call {}", call["params"]["name"])});
    out.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).to_string());
}

fn kind_of(call: &Value) -> String {
    let params = &call["params"];
    let name = params["name"].as_str().or_else(|| params["uri"].as_str()?.strip_prefix("ask://"));
    name.unwrap_or_default().to_owned()
}

fn capability(kind: &str) -> &'static str {
    match kind {
        "sampling" => "sampling",
        "roots" => "roots",
        _ => "elicitation",
    }
}

/// Returns a question without an id.
fn question(kind: &str) -> Option<Value> {
    let schema = json!({"type": "object", "properties": {"berth": {"type": "integer"}}, "required": ["berth"]});
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "When is high water?"}}]);
    Some(match kind {
        "form" => {
            json!({"method": "elicitation/create", "params": {"message": "Which berth?", "requestedSchema": schema}})
        }
        "sampling" => json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 9}}),
        "roots" => json!({"method": "roots/list"}),
        _ => return None,
    })
}

fn result_of(call: &Value, text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    match call["method"].as_str() {
        Some("tools/call") => json!({"content": [content]}),
        Some("prompts/get") => json!({"messages": [{"role": "user", "content": content}]}),
        _ => json!({"contents": [{"uri": call["params"]["uri"], "text": text}]}),
    }
}
