//! Lists that change while clients listen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::broadcast::{Receiver, Sender, channel, error::RecvError};
use wharf_serve::{Outbox, OutgoingMessage};

/// Number of changes that a slow listener may fall behind.
const MAX_PENDING_CHANGES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedList {
    Tools,
    Prompts,
}

impl ChangedList {
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }
}

/// Whether the lists have their extra entry, and who hears of a change.
pub struct ListState {
    has_extra_tool: AtomicBool,
    has_extra_prompt: AtomicBool,
    changes: Sender<ChangedList>,
}

impl Default for ListState {
    fn default() -> Self {
        let (has_extra_tool, has_extra_prompt) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { has_extra_tool, has_extra_prompt, changes: channel(MAX_PENDING_CHANGES).0 }
    }
}

impl ListState {
    pub fn has_extra(&self, list: ChangedList) -> bool {
        self.flag(list).load(Ordering::Relaxed)
    }

    fn flag(&self, list: ChangedList) -> &AtomicBool {
        match list {
            ChangedList::Tools => &self.has_extra_tool,
            ChangedList::Prompts => &self.has_extra_prompt,
        }
    }

    /// Adds or removes the extra entry.
    pub fn change(&self, list: ChangedList) {
        self.flag(list).fetch_xor(true, Ordering::Relaxed);
        let _ = self.changes.send(list);
    }

    pub fn subscribe(&self) -> Receiver<ChangedList> {
        self.changes.subscribe()
    }
}

/// Announces all changes to a session.
pub async fn announce(mut changes: Receiver<ChangedList>, out: Arc<dyn Outbox>) {
    while let Some(list) = next(&mut changes).await {
        out.send(notification(list.method(), json!({})));
    }
}

/// Answers `subscriptions/listen`: acknowledges it, and sends the requested changes until the client ends it.
pub async fn listen(mut changes: Receiver<ChangedList>, id: Value, wanted: Value, out: Arc<dyn Outbox>) {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let is_wanted = |name: &str| wanted[name] == true;
    let mut granted = json!({});
    for name in ["toolsListChanged", "promptsListChanged"] {
        if is_wanted(name) {
            granted[name] = true.into();
        }
    }
    if wanted["resourceSubscriptions"].is_array() {
        granted["resourceSubscriptions"] = wanted["resourceSubscriptions"].clone();
    }
    let params = json!({"_meta": meta, "notifications": granted});
    out.send(notification("notifications/subscriptions/acknowledged", params));
    while let Some(list) = next(&mut changes).await {
        let name = if list == ChangedList::Tools { "toolsListChanged" } else { "promptsListChanged" };
        if is_wanted(name) {
            out.send(notification(list.method(), json!({ "_meta": meta })));
        }
    }
}

async fn next(changes: &mut Receiver<ChangedList>) -> Option<ChangedList> {
    loop {
        match changes.recv().await {
            Ok(list) => return Some(list),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

pub fn notification(method: &str, params: Value) -> OutgoingMessage {
    OutgoingMessage::unsolicited(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
}
