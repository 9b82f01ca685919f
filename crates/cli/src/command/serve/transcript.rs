//! What the next gateway has to know about a client: the messages that gave its session the present state.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wharf_serve::{ClientMessage, MessageKind};

/// Maximum number of subscriptions that move to the next gateway. Others are lost.
const MAX_SUBSCRIPTIONS: usize = 1024;
/// Maximum bytes of a message that moves. A session with a longer `initialize` does not move.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The messages of a client that outlast its requests.
#[derive(Debug, Default)]
pub struct ClientTranscript {
    initialize: Option<Initialize>,
    /// `notifications/initialized`.
    initialized: Option<Vec<u8>>,
    log_level: Option<Vec<u8>>,
    /// Subscriptions of a session by URI.
    subscriptions: BTreeMap<String, Vec<u8>>,
    /// Subscriptions of a stateless client by the id of the request.
    listens: BTreeMap<String, Vec<u8>>,
}

/// The request that opened a session, and its result.
#[derive(Debug)]
struct Initialize {
    id: Value,
    request: Vec<u8>,
    result: Option<Value>,
}

/// A message to send to the next gateway, without its line break.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayedMessage {
    /// Its response is not for the client.
    Request {
        id: Value,
        text: Vec<u8>,
    },
    Other(Vec<u8>),
}

impl ClientTranscript {
    /// Notes a message of the client.
    pub fn note_input(&mut self, message: &ClientMessage) {
        let text = || message.text().to_vec();
        if message.text().len() > MAX_MESSAGE_BYTES {
            return;
        }
        match (message.kind(), &*message.method()) {
            (MessageKind::Request, "initialize") if self.initialize.is_none() => {
                self.initialize = Some(Initialize { id: message.id(), request: text(), result: None });
            }
            (MessageKind::Notification, "notifications/initialized") => self.initialized = Some(text()),
            (MessageKind::Request, "logging/setLevel") => self.log_level = Some(text()),
            (MessageKind::Request, "resources/subscribe") => {
                insert(&mut self.subscriptions, param(message, "uri"), text());
            }
            (MessageKind::Request, "resources/unsubscribe") => drop(self.subscriptions.remove(&param(message, "uri"))),
            (MessageKind::Request, "subscriptions/listen") => {
                insert(&mut self.listens, message.id().to_string(), text());
            }
            (MessageKind::Notification, "notifications/cancelled") => {
                self.listens.remove(&param(message, "requestId"));
            }
            _ => {}
        }
    }

    /// Reports whether the result of `initialize` is still to come.
    pub fn awaits_result(&self) -> bool {
        self.initialize.as_ref().is_some_and(|initialize| initialize.result.is_none())
    }

    /// Notes a message of the gateway.
    pub fn note_output(&mut self, line: &[u8]) {
        let Some(initialize) = self.initialize.as_mut().filter(|initialize| initialize.result.is_none()) else {
            return;
        };
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        if message["id"] == initialize.id && message.get("method").is_none() {
            match message.get("result") {
                Some(result) => initialize.result = Some(result.clone()),
                // The client may try again.
                None => self.initialize = None,
            }
        }
    }

    /// Reports whether a message of the gateway is the end of a subscription, which goes on at the next gateway.
    pub fn is_end_of_subscription(&self, line: &[u8]) -> bool {
        if self.listens.is_empty() {
            return false;
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return false };
        message.get("method").is_none() && self.listens.contains_key(&message["id"].to_string())
    }

    /// Returns the messages for the next gateway, in order.
    pub fn messages(&self) -> Vec<ReplayedMessage> {
        let request = |text: &Vec<u8>| {
            let mut message: Value = serde_json::from_slice(text).unwrap_or_default();
            ReplayedMessage::Request { id: message["id"].take(), text: text.clone() }
        };
        let other = |text: &Vec<u8>| ReplayedMessage::Other(text.clone());
        let opening = self.initialize.iter().map(|initialize| request(&initialize.request));
        let opened = self.initialized.iter().map(other);
        let rest = self.log_level.iter().chain(self.subscriptions.values()).map(request);
        opening.chain(opened).chain(rest).chain(self.listens.values().map(other)).collect()
    }

    /// Checks that the session at the next gateway, whose `initialize` had this result, is the one the client knows.
    ///
    /// # Errors
    ///
    /// Returns what differs.
    pub fn check_result(&self, result: &Value) -> Result<(), String> {
        let Some(known) = self.initialize.as_ref().and_then(|initialize| initialize.result.as_ref()) else {
            return Ok(());
        };
        if known["protocolVersion"] != result["protocolVersion"] {
            let (known, new) = (&known["protocolVersion"], &result["protocolVersion"]);
            return Err(format!("it speaks revision {new}, and this client {known}"));
        }
        let is_missing = |name: &&String| result["capabilities"].get(name.as_str()).is_none();
        match known["capabilities"].as_object().into_iter().flat_map(|declared| declared.keys()).find(is_missing) {
            Some(name) => Err(format!("it does not have the capability `{name}`")),
            None => Ok(()),
        }
    }

    /// Returns the notifications by which a session learns that its lists may differ at the next gateway.
    pub fn list_changes(&self) -> Vec<Vec<u8>> {
        let result = self.initialize.as_ref().and_then(|initialize| initialize.result.as_ref());
        if self.initialized.is_none() {
            return Vec::new();
        }
        let announced =
            |list: &&&str| result.is_some_and(|result| result["capabilities"][**list]["listChanged"] == true);
        let notification = |list: &str| {
            json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")}).to_string().into_bytes()
        };
        ["tools", "resources", "prompts"].iter().filter(announced).map(|list| notification(list)).collect()
    }
}

fn insert(subscriptions: &mut BTreeMap<String, Vec<u8>>, key: String, text: Vec<u8>) {
    if subscriptions.len() < MAX_SUBSCRIPTIONS || subscriptions.contains_key(&key) {
        subscriptions.insert(key, text);
    }
}

/// Returns a parameter as JSON text.
fn param(message: &ClientMessage, name: &str) -> String {
    let value: Option<Value> = message.param(name).and_then(|raw| serde_json::from_slice(raw.as_bytes()).ok());
    value.unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(messages: &[Value]) -> ClientTranscript {
        let mut transcript = ClientTranscript::default();
        for message in messages {
            transcript.note_input(&ClientMessage::parse(message.to_string().into()).unwrap());
        }
        transcript
    }

    fn request(id: u64, method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    fn methods(transcript: &ClientTranscript) -> Vec<String> {
        let text = |message: &ReplayedMessage| match message {
            ReplayedMessage::Request { text, .. } | ReplayedMessage::Other(text) => text.clone(),
        };
        let method = |message| serde_json::from_slice::<Value>(&text(message)).unwrap()["method"].to_string();
        transcript.messages().iter().map(method).collect()
    }

    #[test]
    fn session_is_replayed_in_its_last_state() {
        let mut transcript = noted(&[
            request(1, "initialize", &json!({"protocolVersion": "2025-11-25"})),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            request(2, "logging/setLevel", &json!({"level": "info"})),
            request(3, "tools/call", &json!({"name": "a"})),
            request(4, "logging/setLevel", &json!({"level": "debug"})),
            request(5, "resources/subscribe", &json!({"uri": "a:1"})),
            request(6, "resources/subscribe", &json!({"uri": "a:2"})),
            request(7, "resources/unsubscribe", &json!({"uri": "a:1"})),
        ]);
        let expected = ["initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe"];
        assert_eq!(methods(&transcript), expected.map(|method| format!("{method:?}")));
        assert!(transcript.awaits_result() && transcript.list_changes().is_empty());
        let result =
            |version: &str, capabilities: Value| json!({"protocolVersion": version, "capabilities": capabilities});
        let declared = json!({"tools": {"listChanged": true}, "logging": {}});
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": result("2025-11-25", declared.clone())});
        transcript.note_output(answer.to_string().as_bytes());
        assert!(!transcript.awaits_result());
        assert_eq!(transcript.list_changes().len(), 1);
        assert_eq!(transcript.check_result(&result("2025-11-25", declared.clone())), Ok(()));
        let missing = transcript.check_result(&result("2025-11-25", json!({"tools": {}})));
        assert!(missing.unwrap_err().contains("`logging`"));
        assert!(transcript.check_result(&result("2025-06-18", declared)).unwrap_err().contains("2025-06-18"));
    }

    #[test]
    fn subscriptions_of_a_stateless_client_go_on() {
        let transcript = noted(&[
            request(1, "subscriptions/listen", &json!({})),
            request(2, "subscriptions/listen", &json!({})),
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        ]);
        assert_eq!(methods(&transcript), ["\"subscriptions/listen\""]);
        assert!(transcript.is_end_of_subscription(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#));
        assert!(!transcript.is_end_of_subscription(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        assert!(transcript.list_changes().is_empty());
    }

    #[test]
    fn refused_initialize_opens_no_session() {
        let mut transcript = noted(&[request(1, "initialize", &json!({}))]);
        transcript.note_output(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#);
        assert!(transcript.messages().is_empty() && !transcript.awaits_result());
    }
}
