//! Outbox of one request: its own stream, and after the reply the session's.

use std::sync::Arc;

use serde_json::Value;

use super::feed::EventFeed;
use crate::message::Outbox;

/// Sends the messages of one POST. The feed ends with the reply, or when the last outbox is dropped.
pub struct CallOutbox {
    feed: Arc<EventFeed>,
    /// Stream of the request's session.
    session: Option<Arc<EventFeed>>,
}

impl CallOutbox {
    /// Creates the outbox and its feed.
    pub fn open(session: Option<Arc<EventFeed>>) -> (Arc<EventFeed>, Arc<dyn Outbox>) {
        let feed = Arc::<EventFeed>::default();
        (Arc::clone(&feed), Arc::new(Self { feed, session }))
    }
}

impl Outbox for CallOutbox {
    fn send(&self, message: Value) {
        let is_reply = message.get("method").is_none();
        let is_taken = if is_reply { self.feed.finish(&message) } else { self.feed.push(&message) };
        if let (false, Some(session)) = (is_taken, &self.session) {
            session.send(message);
        }
    }

    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        self.session.clone().map(|session| session as _)
    }
}

impl Drop for CallOutbox {
    fn drop(&mut self) {
        self.feed.end();
    }
}
