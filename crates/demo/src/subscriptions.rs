//! Subscriptions and notifications.
//!
//! Handshake clients receive all list changes, and the resources they subscribed to, on the outbox of the change.
//! Stateless clients open listens (2026-07-28 basic/patterns/subscriptions) and receive the requested events on the
//! outbox of the listen.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::message::{INTERNAL_ERROR, Outbox, RpcError, lock_unpoisoned};
use super::port::HarbourEvent;

const SUBSCRIPTION_ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Maximum number of listens, and of subscribed resources.
const MAX_SUBSCRIPTIONS: usize = 256;

/// Error code for a listen that ends with an error. Some real servers do this, although they should not.
const CONNECTION_CLOSED: i64 = -32000;

#[derive(Default)]
pub struct DemoSubscriptions {
    /// Resources that a handshake client subscribed to.
    uris: Mutex<BTreeSet<String>>,
    listens: Mutex<Vec<OpenListen>>,
}

struct OpenListen {
    /// Connection of the listen. Ids are unique only within a connection.
    connection: u64,
    id: Value,
    filter: ListenFilter,
    out: Arc<dyn Outbox>,
}

/// Events of a listen.
#[derive(Default)]
pub struct ListenFilter {
    lists: BTreeSet<&'static str>,
    uris: Vec<String>,
    task_ids: Vec<String>,
}

/// Ways in which the server ends a listen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ListenEnding {
    Result,
    Cancelled,
    Error,
}

impl DemoSubscriptions {
    /// Answers `resources/subscribe`.
    ///
    /// # Errors
    ///
    /// Fails if there are too many subscriptions.
    pub fn subscribe(&self, uri: &str) -> Result<Value, RpcError> {
        let mut uris = lock_unpoisoned(&self.uris);
        if uris.len() >= MAX_SUBSCRIPTIONS {
            return Err(RpcError::new(INTERNAL_ERROR, "too many subscriptions"));
        }
        uris.insert(uri.to_owned());
        Ok(json!({}))
    }

    /// Answers `resources/unsubscribe`. Succeeds without a subscription, too.
    pub fn unsubscribe(&self, uri: &str) -> Value {
        lock_unpoisoned(&self.uris).remove(uri);
        json!({})
    }

    /// Opens a listen and acknowledges it.
    ///
    /// # Errors
    ///
    /// Fails if there are too many listens.
    pub fn listen(
        &self,
        connection: u64,
        id: &Value,
        filter: ListenFilter,
        out: &Arc<dyn Outbox>,
    ) -> Result<(), RpcError> {
        let mut listens = lock_unpoisoned(&self.listens);
        if listens.len() >= MAX_SUBSCRIPTIONS {
            return Err(RpcError::new(INTERNAL_ERROR, "too many subscriptions"));
        }
        let listen = OpenListen { connection, id: id.clone(), filter, out: Arc::clone(out) };
        let honoured = json!({"notifications": listen.filter.to_json()});
        listen.send("notifications/subscriptions/acknowledged", honoured);
        listens.push(listen);
        Ok(())
    }

    pub fn is_listening(&self, connection: u64, id: &Value) -> bool {
        lock_unpoisoned(&self.listens).iter().any(|listen| listen.matches(connection, id))
    }

    /// Ends the listen `id`, if it exists, without a message, as the client asked for it.
    pub fn cancel(&self, connection: u64, id: &Value) {
        lock_unpoisoned(&self.listens).retain(|listen| !listen.matches(connection, id));
    }

    /// Ends all listens of a connection without a message.
    pub fn cancel_all(&self, connection: u64) {
        lock_unpoisoned(&self.listens).retain(|listen| listen.connection != connection);
    }

    /// Ends all listens and returns their number. `result` is the result of each, without its `_meta`.
    pub fn end_all(&self, ending: ListenEnding, result: &Value) -> usize {
        let ended = std::mem::take(&mut *lock_unpoisoned(&self.listens));
        for listen in &ended {
            listen.end(ending, result.clone());
        }
        ended.len()
    }

    /// Notifies a handshake client of an event, if it is a list change or a subscribed resource.
    pub fn notify_session(&self, event: HarbourEvent, out: &dyn Outbox) {
        let (method, params) = notification_of(event);
        let is_wanted = match event {
            HarbourEvent::ResourceUpdated(uri) => lock_unpoisoned(&self.uris).contains(uri),
            _ => true,
        };
        if is_wanted {
            out.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
        }
    }

    /// Notifies all listens that requested an event.
    pub fn notify_listens(&self, event: HarbourEvent) {
        let (method, params) = notification_of(event);
        // Hold the lock, so that no notification follows the end of a listen.
        for listen in &*lock_unpoisoned(&self.listens) {
            let is_wanted = match event {
                HarbourEvent::ResourceUpdated(uri) => listen.filter.uris.iter().any(|wanted| wanted == uri),
                _ => listen.filter.lists.contains(method),
            };
            if is_wanted {
                listen.send(method, params.clone());
            }
        }
    }

    /// Notifies all listens that requested the task in `detail`.
    pub fn notify_task(&self, detail: &Value) {
        for listen in &*lock_unpoisoned(&self.listens) {
            if listen.filter.task_ids.iter().any(|id| detail["taskId"] == **id) {
                listen.send("notifications/tasks", detail.clone());
            }
        }
    }
}

impl OpenListen {
    fn matches(&self, connection: u64, id: &Value) -> bool {
        self.connection == connection && self.id == *id
    }

    fn send(&self, method: &str, mut params: Value) {
        params["_meta"] = json!({SUBSCRIPTION_ID_KEY: self.id});
        self.out.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn end(&self, ending: ListenEnding, mut result: Value) {
        let message = match ending {
            ListenEnding::Result => {
                result["_meta"][SUBSCRIPTION_ID_KEY] = self.id.clone();
                json!({"jsonrpc": "2.0", "id": self.id, "result": result})
            }
            ListenEnding::Cancelled => {
                let params = json!({"requestId": self.id, "reason": "the harbour closes for the night"});
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            }
            ListenEnding::Error => RpcError::new(CONNECTION_CLOSED, "Connection closed").reply(self.id.clone()),
        };
        self.out.send(message);
    }
}

fn notification_of(event: HarbourEvent) -> (&'static str, Value) {
    match event {
        HarbourEvent::ToolsChanged => ("notifications/tools/list_changed", json!({})),
        HarbourEvent::PromptsChanged => ("notifications/prompts/list_changed", json!({})),
        HarbourEvent::ResourcesChanged => ("notifications/resources/list_changed", json!({})),
        HarbourEvent::ResourceUpdated(uri) => ("notifications/resources/updated", json!({"uri": uri})),
    }
}

/// Lists that a listen can request: their names in the request, and the events.
const LISTS: [(&str, HarbourEvent); 3] = [
    ("toolsListChanged", HarbourEvent::ToolsChanged),
    ("promptsListChanged", HarbourEvent::PromptsChanged),
    ("resourcesListChanged", HarbourEvent::ResourcesChanged),
];

impl ListenFilter {
    /// Returns the supported part of a listen's `params`: only known resources and tasks.
    ///
    /// # Errors
    ///
    /// Fails with invalid params if `notifications` is not an object.
    pub fn from_params(
        params: &Map<String, Value>,
        has_resource: impl Fn(&str) -> bool,
        has_task: impl Fn(&str) -> bool,
    ) -> Result<Self, RpcError> {
        let Some(Value::Object(wanted)) = params.get("notifications") else {
            return Err(RpcError::invalid_params("`notifications` must be an object"));
        };
        let is_wanted = |name: &str| wanted.get(name) == Some(&Value::Bool(true));
        let lists =
            LISTS.into_iter().filter(|(name, _)| is_wanted(name)).map(|(_, event)| notification_of(event).0).collect();
        let known = |name: &str, has: &dyn Fn(&str) -> bool| -> Vec<String> {
            let named = wanted.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            named.filter(|name| has(name)).take(MAX_SUBSCRIPTIONS).map(str::to_owned).collect()
        };
        Ok(Self { lists, uris: known("resourceSubscriptions", &has_resource), task_ids: known("taskIds", &has_task) })
    }

    fn to_json(&self) -> Value {
        let lists = LISTS.into_iter().filter(|(_, event)| self.lists.contains(notification_of(*event).0));
        let mut json: Map<_, _> = lists.map(|(name, _)| (name.to_owned(), true.into())).collect();
        for (name, named) in [("resourceSubscriptions", &self.uris), ("taskIds", &self.task_ids)] {
            if !named.is_empty() {
                json.insert(name.to_owned(), json!(named));
            }
        }
        json.into()
    }
}
