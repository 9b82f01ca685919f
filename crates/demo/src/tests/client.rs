//! A test client with declared capabilities, which answers questions in either era.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use super::{DemoServerHarness, MODERN, modern_meta};

pub struct DemoTestClient {
    pub harness: DemoServerHarness,
    pub revision: &'static str,
    capabilities: Value,
    last_id: Cell<u64>,
}

impl DemoTestClient {
    pub fn new(revision: &'static str, capabilities: Value) -> Self {
        let client = Self { harness: DemoServerHarness::new(None), revision, capabilities, last_id: Cell::new(0) };
        if revision != MODERN {
            let params = json!({"protocolVersion": revision, "capabilities": client.capabilities});
            client.request("initialize", params);
        }
        client
    }

    pub fn is_modern(&self) -> bool {
        self.revision == MODERN
    }

    /// Sends a request and returns its id. Adds the `params._meta` that the revision requires.
    pub fn send(&self, method: &str, mut params: Value) -> u64 {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        if self.is_modern() {
            for (key, value) in modern_meta().as_object().unwrap() {
                params["_meta"][key] = value.clone();
            }
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.harness.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn receive(&self) -> Value {
        self.harness.receive()
    }

    /// Returns the reply to a request. No other message may come first.
    #[track_caller]
    pub fn request(&self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let reply = self.receive();
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    pub fn start_call(&self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.harness.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn respond(&self, request: &Value, result: Value) {
        self.harness.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Calls a tool and answers its questions with `answer`.
    pub fn converse(&self, tool: &str, arguments: Value, answer: impl Fn(&Value) -> Value) -> CallTranscript {
        let mut params = json!({"name": tool, "arguments": arguments});
        let mut conversation = CallTranscript::default();
        let mut id = self.send("tools/call", params.clone());
        loop {
            let message = self.receive();
            if message["result"]["resultType"] == "input_required" {
                params["requestState"] = message["result"]["requestState"].clone();
                params.as_object_mut().unwrap().remove("inputResponses");
                if let Some(asked) = message["result"]["inputRequests"].as_object() {
                    let answers: Map<_, _> = asked.iter().map(|(key, asked)| (key.clone(), answer(asked))).collect();
                    params["inputResponses"] = answers.into();
                    conversation.asked.extend(asked.values().cloned());
                }
                conversation.rounds.push(message["result"].clone());
                id = self.send("tools/call", params.clone());
            } else if message["id"] == id {
                conversation.reply = message;
                return conversation;
            } else if message.get("id").is_some() {
                self.respond(&message, answer(&message));
                conversation.asked.push(message);
            } else {
                conversation.told.push(message);
            }
        }
    }
}

/// Messages of one call.
#[derive(Default)]
pub struct CallTranscript {
    /// The questions, as requests or in results.
    pub asked: Vec<Value>,
    /// Results that required another round.
    pub rounds: Vec<Value>,
    pub told: Vec<Value>,
    pub reply: Value,
}

impl CallTranscript {
    pub fn text(&self) -> &str {
        self.reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {}", self.reply))
    }
}
