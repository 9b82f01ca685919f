//! Requests of the server to the client, as sent before 2026-07-28.
//!
//! Maps questions to the capabilities they need, and responses to the waiting calls. Other modules choose the questions
//! and use the answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::call_signal::CallSignal;
use super::message::{Outbox, lock_unpoisoned};

/// A client capability that a question requires.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClientNeed {
    Form,
    Url,
    Sampling,
    SamplingWithTools,
    Roots,
}

impl ClientNeed {
    /// Reports whether a client's declared `capabilities` include this one.
    pub fn is_met_by(self, capabilities: &Value) -> bool {
        let has = |path: &str| capabilities.pointer(path).is_some_and(Value::is_object);
        match self {
            // 2025-11-25 client/elicitation, "Capabilities": an empty object means forms.
            Self::Form => has("/elicitation/form") || capabilities["elicitation"] == json!({}),
            Self::Url => has("/elicitation/url"),
            Self::Sampling => has("/sampling"),
            Self::SamplingWithTools => has("/sampling/tools"),
            Self::Roots => has("/roots"),
        }
    }

    /// Returns a capabilities object with only this capability.
    pub fn as_capabilities(self) -> Value {
        match self {
            Self::Form => json!({"elicitation": {"form": {}}}),
            Self::Url => json!({"elicitation": {"url": {}}}),
            Self::Sampling => json!({"sampling": {}}),
            Self::SamplingWithTools => json!({"sampling": {"tools": {}}}),
            Self::Roots => json!({"roots": {}}),
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling | Self::SamplingWithTools => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

/// A request to the client.
#[derive(Debug, Clone)]
pub struct ServerQuestion {
    /// Key of the question within its call.
    pub key: String,
    pub need: ClientNeed,
    pub params: Option<Value>,
}

impl ServerQuestion {
    /// Returns the question as a request without an id, the form in which a result carries it.
    pub fn to_request(&self) -> Value {
        let mut request = json!({"method": self.need.method()});
        if let Some(params) = &self.params {
            request["params"] = params.clone();
        }
        request
    }
}

/// Requests of the server that the client has not answered yet.
#[derive(Default)]
pub struct PendingQuestions {
    asked: AtomicU64,
    /// Waiting threads by request id. Bounded by the number of calls and tasks.
    waiting: Mutex<HashMap<String, Arc<CallSignal>>>,
}

impl PendingQuestions {
    /// Sends a request and waits for its response: an object with `result` or `error`.
    ///
    /// Returns `None` if the alarm rings first. The request is then cancelled.
    pub fn ask(&self, mut request: Value, alarm: &Arc<CallSignal>, out: &dyn Outbox) -> Option<Value> {
        let id = format!("question-{}", self.asked.fetch_add(1, Ordering::Relaxed) + 1);
        lock_unpoisoned(&self.waiting).insert(id.clone(), Arc::clone(alarm));
        request["jsonrpc"] = "2.0".into();
        request["id"] = id.as_str().into();
        out.send(request);
        let response = alarm.wait_for_answer(&id);
        if lock_unpoisoned(&self.waiting).remove(&id).is_some() && response.is_none() {
            let params = json!({"requestId": id, "reason": "the call that asked has ended"});
            out.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        }
        response
    }

    /// Delivers a response to the waiting thread. Ignores unknown ids.
    pub fn answer(&self, id: &Value, response: Value) {
        let Some(id) = id.as_str() else { return };
        if let Some(alarm) = lock_unpoisoned(&self.waiting).remove(id) {
            alarm.deliver(id, response);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_match_the_declared_capabilities() {
        let all =
            [ClientNeed::Form, ClientNeed::Url, ClientNeed::Sampling, ClientNeed::SamplingWithTools, ClientNeed::Roots];
        let table = [
            (json!({}), vec![]),
            (json!({"elicitation": {}}), vec![ClientNeed::Form]),
            (json!({"elicitation": {"url": {}}}), vec![ClientNeed::Url]),
            (json!({"elicitation": {"form": {}, "url": {}}}), vec![ClientNeed::Form, ClientNeed::Url]),
            (json!({"sampling": {}, "roots": {"listChanged": true}}), vec![ClientNeed::Sampling, ClientNeed::Roots]),
            (json!({"sampling": {"tools": {}}}), vec![ClientNeed::Sampling, ClientNeed::SamplingWithTools]),
            (json!({"elicitation": true, "sampling": [], "roots": null}), vec![]),
        ];
        for (capabilities, expected) in table {
            let met: Vec<_> = all.into_iter().filter(|need| need.is_met_by(&capabilities)).collect();
            assert_eq!(met, expected, "{capabilities}");
        }
        assert!(all.into_iter().all(|need| need.is_met_by(&need.as_capabilities())));
    }
}
