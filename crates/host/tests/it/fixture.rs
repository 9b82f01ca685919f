//! Servers that are functions from a message to what they do about it, and hosts over them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use wharf::spec::{ServerName, ServerSettings, ToolId};
use wharf::{CallOptions, Host, HostBuilder, HostError, LocalFactory, LocalServer, RawJson};
use wharf_client::{BoxedFuture, ClientSender, ServerEnd, Workers};

/// A server that is a function from a message to what it does about it. It ends when it is told to.
pub struct Scripted<F> {
    pub act: F,
    pub end: Arc<Notify>,
}

impl<F: FnMut(Value, &ClientSender) + Send + 'static> LocalServer for Scripted<F> {
    fn serve(mut self: Box<Self>, mut end: ServerEnd, _workers: Workers) -> BoxedFuture<()> {
        Box::pin(async move {
            let outbox = end.sender();
            loop {
                tokio::select! {
                    () = self.end.notified() => return,
                    message = end.receive() => match message {
                        Some(message) => (self.act)(serde_json::from_slice(&message.text).unwrap(), &outbox),
                        None => return,
                    },
                }
            }
        })
    }
}

/// A server with tools, which counts how often it was made and ends when it is told to.
#[derive(Clone)]
pub struct Fake {
    pub name: &'static str,
    pub made: Arc<AtomicUsize>,
    pub end: Arc<Notify>,
    pub tools: Value,
}

impl Fake {
    /// A server with a tool `who`, which says the server's name and how often it was made, and `never`, which does not
    /// answer.
    pub fn new(name: &'static str) -> Self {
        let tools = json!([definition("who"), definition("never")]);
        Self { name, made: Arc::default(), end: Arc::default(), tools }
    }

    pub fn factory(&self) -> LocalFactory {
        let fake = self.clone();
        Arc::new(move || {
            let made = fake.made.fetch_add(1, Ordering::SeqCst) + 1;
            let (name, tools) = (fake.name, fake.tools.clone());
            let act = move |message: Value, outbox: &ClientSender| act(name, made, &tools, &message, outbox);
            Ok(Box::new(Scripted { act, end: Arc::clone(&fake.end) }))
        })
    }

    pub fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }
}

fn act(name: &str, made: usize, tools: &Value, message: &Value, outbox: &ClientSender) {
    let answer = match message["method"].as_str() {
        Some("server/discover") => json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }),
        Some("tools/list") => json!({ "tools": tools }),
        Some("tools/call") if message["params"]["name"] == "who" => text(format!("{name} {made}")),
        _ => return,
    };
    outbox.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }).to_string());
}

/// What a server that is a script is asked.
pub struct Asked<'a> {
    pub method: &'a str,
    pub message: &'a Value,
    pub outbox: &'a ClientSender,
    /// How many were made before it, and it.
    pub made: usize,
}

/// What it does about it.
pub enum Act {
    /// Whatever a server with the one tool `who` does, which says the server's name and how often it was made.
    Ordinary,
    Answer(Value),
    /// Answers so much later.
    Later(Duration, Value),
    Refuse,
    Nothing,
}

/// Makes servers that do what the script says.
pub fn scripted(
    name: &'static str,
    script: impl Fn(&Asked<'_>) -> Act + Clone + Send + Sync + 'static,
) -> LocalFactory {
    let count = AtomicUsize::new(0);
    Arc::new(move || {
        let made = count.fetch_add(1, Ordering::SeqCst) + 1;
        let script = script.clone();
        let act = move |message: Value, outbox: &ClientSender| {
            let method = message["method"].as_str().unwrap_or_default();
            let act = script(&Asked { method, message: &message, outbox, made });
            perform(act, (name, made), &message, outbox);
        };
        Ok(Box::new(Scripted { act, end: Arc::default() }))
    })
}

fn perform(todo: Act, (name, made): (&str, usize), message: &Value, outbox: &ClientSender) {
    let id = message["id"].clone();
    let answer = move |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    match todo {
        Act::Ordinary => act(name, made, &json!([definition("who")]), message, outbox),
        Act::Answer(result) => outbox.send(answer(result)),
        Act::Later(after, result) => {
            let outbox = outbox.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                outbox.send(answer(result));
            });
        }
        Act::Refuse => {
            let error = json!({ "code": -32601, "message": "no" });
            outbox.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string());
        }
        Act::Nothing => {}
    }
}

/// A tool without arguments.
pub fn definition(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// A result that is this text.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

/// A host with one server in this process, called `one`.
pub async fn host_of(settings: ServerSettings, factory: LocalFactory) -> Host {
    open_builder().local_with(server("one"), settings, factory).start().await.unwrap()
}

/// Calls a tool of `one`.
pub async fn call(host: &Host, name: &str) -> Result<String, HostError> {
    let reply = host.call(&tool("one", name), &none(), CallOptions::default()).await?;
    Ok(reply.text().unwrap())
}

/// Lets other tasks go on until it is so. Time stands still unless all of them wait.
pub async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to be so");
}

/// A builder whose gate lets everything pass.
pub fn open_builder() -> HostBuilder {
    Host::builder().gate(Arc::new(wharf::tools::AllowAllGate))
}

pub fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

pub fn tool(server_name: &str, tool: &str) -> ToolId {
    ToolId::new(&server(server_name), tool)
}

pub fn settings() -> ServerSettings {
    ServerSettings::default()
}

pub fn none() -> RawJson {
    RawJson::empty_object()
}
