//! A client of either era with one interface, for what does not differ.

use serde_json::{Value, json};
use wharf::wire::Era;

use crate::client::{SessionClient, StatelessClient};
use crate::fixture::Fixture;

pub enum AnyClient {
    Session(Box<SessionClient>),
    Stateless(Box<StatelessClient>),
}

/// A response and the notifications before it.
pub struct Answered {
    pub response: Value,
    pub notifications: Vec<Value>,
}

impl AnyClient {
    pub async fn open(fixture: &Fixture, era: Era, capabilities: Value) -> Self {
        match era {
            Era::Handshake => Self::Session(Box::new(fixture.session(capabilities).await)),
            Era::Stateless => Self::Stateless(Box::new(fixture.stateless(capabilities))),
        }
    }

    pub async fn call(&mut self, method: &str, params: Value) -> Answered {
        match self {
            Self::Session(client) => {
                let id = client.next_id();
                client.request(id, method, params).await;
                let mut notifications = Vec::new();
                loop {
                    let message = client.next().await;
                    if message["method"].is_null() && message["id"] == id {
                        return Answered { response: message, notifications };
                    }
                    notifications.push(message);
                }
            }
            Self::Stateless(client) => {
                let response = client.call(method, params).await;
                Answered { response, notifications: std::mem::take(&mut client.notifications) }
            }
        }
    }

    /// Calls a tool of the server `s` and returns the response.
    pub async fn tool(&mut self, name: &str) -> Value {
        self.call("tools/call", json!({"name": format!("s__{name}"), "arguments": {}})).await.response
    }

    pub async fn close(self) {
        match self {
            Self::Session(client) => client.close().await,
            Self::Stateless(client) => client.close().await,
        }
    }
}
