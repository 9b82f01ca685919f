//! A service whose requests are answered at once, later or never.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;
use wharf_serve::{
    ClientConnection, ClientMessage, HeaderMap, MessageKind, Outbox, OutgoingMessage, RawJson, Revision, Service,
    error_reply,
};

/// A service for sessions only. The method `later` is answered when `release` is notified.
#[derive(Clone, Default)]
pub struct TestService {
    pub release: Arc<Notify>,
    pub cancelled: Arc<Notify>,
}

impl Service for TestService {
    fn has_sessions(&self) -> bool {
        true
    }

    fn open_session(&self) -> Option<Arc<dyn ClientConnection>> {
        Some(Arc::new(self.clone()))
    }

    fn open_request(&self, _: &HeaderMap) -> Option<Arc<dyn ClientConnection>> {
        None
    }
}

impl ClientConnection for TestService {
    fn receive(&self, message: ClientMessage, out: Arc<dyn Outbox>) {
        if message.kind() != MessageKind::Request {
            return;
        }
        let id = message.id();
        let done = move || OutgoingMessage::response(json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string());
        match &*message.method() {
            "refuse" => out.send(error_reply(&message.id(), -32600, "the server does not like it")),
            "malformed" => {
                let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[1,}}}}"#, message.id());
                out.send(OutgoingMessage::response(text));
            }
            "later" => {
                let release = Arc::clone(&self.release);
                drop(tokio::spawn(async move {
                    release.notified().await;
                    out.send(done());
                }));
            }
            _ => out.send(done()),
        }
    }

    fn admit(&self, _: &ClientMessage) -> Result<(), OutgoingMessage> {
        Ok(())
    }

    fn input_schema(&self, _: &str) -> Option<RawJson> {
        None
    }

    fn revision(&self) -> Option<Revision> {
        Some(Revision::V2025_06_18)
    }

    fn attach(&self, _: Arc<dyn Outbox>) -> io::Result<()> {
        Ok(())
    }

    fn cancel_pending(&self) {
        self.cancelled.notify_one();
    }

    fn close(&self) {}
}
