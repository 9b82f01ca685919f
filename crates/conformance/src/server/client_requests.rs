//! Requests to the client of a handshake revision, and their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use wharf_serve::{Outbox, OutgoingMessage};

/// Requests that wait for the client's answer, by id.
#[derive(Default)]
pub struct ClientRequests {
    waiting: Mutex<ClientRequestTable>,
}

#[derive(Default)]
struct ClientRequestTable {
    by_id: HashMap<String, oneshot::Sender<Value>>,
    sent: u64,
}

impl ClientRequests {
    /// Sends a request and waits for its result. `None` if the client answers with an error or disconnects.
    ///
    /// The id names the question, since a gateway may show it to a client that answers by name.
    pub async fn ask(&self, out: &Arc<dyn Outbox>, question: &Question<'_>) -> Option<Value> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut table = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            table.sent += 1;
            let id = match table.by_id.contains_key(question.name) {
                true => format!("{}-{}", question.name, table.sent),
                false => question.name.to_owned(),
            };
            table.by_id.insert(id.clone(), sender);
            id
        };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": question.method, "params": question.params});
        out.send(OutgoingMessage::unsolicited(request.to_string()));
        answer.await.ok()?.get("result").cloned()
    }

    /// Takes an answer of the client.
    pub fn answer(&self, response: Value) {
        let id = response["id"].as_str().unwrap_or_default().to_owned();
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).by_id.remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(response);
        }
    }

    /// Ends all requests without an answer.
    pub fn cancel(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).by_id.clear();
    }
}

/// A question to the client.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    pub name: &'a str,
    pub method: &'static str,
    pub params: Value,
}

impl<'a> Question<'a> {
    /// A form with these properties, all of them required.
    pub fn form(name: &'a str, message: &str, properties: Value) -> Self {
        let required: Vec<&String> = properties.as_object().map(|all| all.keys().collect()).unwrap_or_default();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Self { name, method: "elicitation/create", params: json!({"message": message, "requestedSchema": schema}) }
    }

    /// A form with optional properties.
    pub fn optional_form(name: &'a str, message: &str, properties: Value) -> Self {
        let schema = json!({"type": "object", "properties": properties, "required": []});
        Self { name, method: "elicitation/create", params: json!({"message": message, "requestedSchema": schema}) }
    }

    pub fn sampling(name: &'a str, prompt: &str) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let params = json!({"messages": [message], "maxTokens": 100});
        Self { name, method: "sampling/createMessage", params }
    }

    pub fn roots(name: &'a str) -> Self {
        Self { name, method: "roots/list", params: json!({}) }
    }

    /// Returns the capability that the client needs.
    pub fn capability(&self) -> &'static str {
        match self.method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            _ => "roots",
        }
    }

    /// Reports whether an answer has the form that the method prescribes.
    pub fn is_answered_by(&self, answer: &Value) -> bool {
        match self.method {
            "elicitation/create" => answer["action"].is_string(),
            "sampling/createMessage" => answer["content"].is_object(),
            _ => answer["roots"].is_array(),
        }
    }
}
