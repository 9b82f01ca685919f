//! A server with resources, prompts and tools that change while it runs, and which notes what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Notify;
use wharf::tools::{RegistryCallError, ToolCaller, ToolInvocation, ToolOutcome};
use wharf::{Event, EventDelivery, EventReceiver, Host, LocalFactory, RawJson};
use wharf_client::ClientSender;

use crate::fixture::Scripted;

/// The server; all of its lives have the same shelves.
#[derive(Clone)]
pub struct Library {
    shelves: Arc<Mutex<Shelves>>,
    pub end: Arc<Notify>,
}

/// What the server has, and what has become of it.
pub struct Shelves {
    pub capabilities: Value,
    pub resources: Value,
    pub templates: Value,
    pub prompts: Value,
    pub tools: Value,
    /// What reading a resource gives; the server refuses what is not here.
    pub contents: BTreeMap<String, Value>,
    /// What calling a tool gives.
    pub said: String,
    /// Calls and reads are not answered until [`Library::answer_held`].
    pub silent: bool,
    /// Nobody is told what the server will tell of.
    pub deaf: bool,
    pub asked: Vec<Value>,
    held: Vec<(Value, ClientSender)>,
    listening: Option<(Value, ClientSender)>,
}

impl Library {
    pub fn new() -> Self {
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let prompt = json!({
            "name": "greet",
            "description": "says hello",
            "arguments": [{ "name": "whom", "description": "a name", "required": true }],
        });
        let shelves = Shelves {
            capabilities: json!({
                "tools": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true },
                "prompts": {},
            }),
            resources: json!([
                { "uri": "book:one", "name": "One", "mimeType": "text/plain", "description": "the first" },
                { "uri": "book:two", "name": "Two" },
            ]),
            templates: json!([{ "uriTemplate": "book:{title}", "name": "any book" }]),
            prompts: json!([prompt]),
            tools: json!([tool("look"), tool("write")]),
            contents: BTreeMap::from([("book:one".to_owned(), json!([text("book:one", "once")]))]),
            said: "same".to_owned(),
            silent: false,
            deaf: false,
            asked: Vec::new(),
            held: Vec::new(),
            listening: None,
        };
        Self { shelves: Arc::new(Mutex::new(shelves)), end: Arc::default() }
    }

    pub fn factory(&self) -> LocalFactory {
        let library = self.clone();
        Arc::new(move || {
            let own = library.clone();
            let act = move |message: Value, outbox: &ClientSender| own.act(message, outbox);
            Ok(Box::new(Scripted { act, end: Arc::clone(&library.end) }))
        })
    }

    pub fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a method was asked for.
    pub fn count(&self, method: &str) -> usize {
        self.shelves().asked.iter().filter(|message| message["method"] == method).count()
    }

    /// The addresses that were read, in order.
    pub fn read(&self) -> Vec<String> {
        let shelves = self.shelves();
        let reads = shelves.asked.iter().filter(|message| message["method"] == "resources/read");
        reads.map(|message| message["params"]["uri"].as_str().unwrap().to_owned()).collect()
    }

    /// What the server is asked to tell of now.
    pub fn watched(&self) -> Value {
        let shelves = self.shelves();
        let last = shelves.asked.iter().rfind(|message| message["method"] == "subscriptions/listen");
        last.map_or(Value::Null, |message| message["params"]["notifications"]["resourceSubscriptions"].clone())
    }

    /// Says that something has changed.
    pub fn notify(&self, method: &str, mut params: Value) {
        let (id, outbox) = self.shelves().listening.clone().unwrap();
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
        outbox.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Answers what was not answered, and whatever comes from now on.
    pub fn answer_held(&self) {
        let held = {
            let mut shelves = self.shelves();
            shelves.silent = false;
            std::mem::take(&mut shelves.held)
        };
        held.into_iter().for_each(|(message, outbox)| self.answer(&message, &outbox));
    }

    fn act(&self, message: Value, outbox: &ClientSender) {
        let mut shelves = self.shelves();
        shelves.asked.push(message.clone());
        let slow = matches!(message["method"].as_str(), Some("tools/call" | "resources/read"));
        if shelves.silent && slow {
            shelves.held.push((message, outbox.clone()));
            return;
        }
        drop(shelves);
        self.answer(&message, outbox);
    }

    fn answer(&self, message: &Value, outbox: &ClientSender) {
        let id = &message["id"];
        if message["method"] == "subscriptions/listen" {
            if self.shelves().deaf {
                return;
            }
            self.shelves().listening = Some((id.clone(), outbox.clone()));
            let agreed = json!({ "notifications": message["params"]["notifications"] });
            return self.notify("notifications/subscriptions/acknowledged", agreed);
        }
        let answer = match self.shelves().answer_to(message) {
            Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            None => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "no such thing" } }),
        };
        if !id.is_null() {
            outbox.send(answer.to_string());
        }
    }
}

impl Shelves {
    fn answer_to(&self, message: &Value) -> Option<Value> {
        let params = &message["params"];
        Some(match message["method"].as_str()? {
            "server/discover" => json!({ "supportedVersions": ["2026-07-28"], "capabilities": self.capabilities }),
            "tools/list" => json!({ "tools": self.tools }),
            "resources/list" => json!({ "resources": self.resources }),
            "resources/templates/list" => json!({ "resourceTemplates": self.templates }),
            "prompts/list" => json!({ "prompts": self.prompts }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": self.said }] }),
            "resources/read" => json!({ "contents": self.contents.get(params["uri"].as_str()?)? }),
            "prompts/get" if params["name"] == "greet" => {
                let text = format!("hello {}", params["arguments"]["whom"].as_str().unwrap_or("nobody"));
                json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] })
            }
            _ => return None,
        })
    }
}

/// Contents of text.
pub fn text(uri: &str, text: &str) -> Value {
    json!({ "uri": uri, "text": text })
}

/// Calls a tool of the registry as an agent does.
pub async fn call(host: &Host, tool: &str, arguments: Value) -> Result<ToolOutcome, RegistryCallError> {
    host.registry()
        .call(tool, ToolInvocation::new(RawJson::parse(arguments.to_string()).unwrap(), ToolCaller::agent()))
        .await
}

/// What a tool that answers gives as data.
pub async fn data(host: &Host, tool: &str, arguments: Value) -> Value {
    let outcome = call(host, tool, arguments).await.unwrap();
    serde_json::from_str(outcome.data.unwrap().as_str()).unwrap()
}

/// What an agent is told when a tool does not answer.
pub async fn complaint(host: &Host, tool: &str, arguments: Value) -> String {
    call(host, tool, arguments.clone()).await.expect_err(&format!("{tool} {arguments}")).to_outcome().text()
}

/// The notes that wait, each with whom it is from.
pub fn notes(host: &Host) -> Vec<String> {
    host.registry().notes().take_all().iter().map(|note| format!("{}: {}", note.from, note.text)).collect()
}

/// The next event of a kind; time passes until there is one.
pub async fn next<T>(events: &mut EventReceiver, wanted: impl Fn(Event) -> Option<T>) -> T {
    loop {
        let Some(EventDelivery::Event(told)) = events.next().await else { panic!("no more events") };
        if let Some(found) = wanted(told.event) {
            return found;
        }
    }
}

/// Waits until so many servers have listed what they have.
pub async fn listed(host: &Host, servers: usize) {
    host.catalog_changes().wait_for(|_| host.catalog().sections().len() >= servers).await.unwrap();
}

/// Lets everything that can happen now happen, before any time passes.
pub async fn until(condition: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it does not come to that");
}
