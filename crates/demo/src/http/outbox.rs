//! The way back of one request: its own stream, and after the reply the session's.

use std::sync::Arc;

use serde_json::Value;

use super::feed::Feed;
use crate::message::Outbox;

/// Feeds the answer of one POST. The feed ends with the reply, or when nobody is left to send one.
pub struct CallOutbox {
    feed: Arc<Feed>,
    /// The stream of the session that the request belongs to.
    session: Option<Arc<Feed>>,
}

impl CallOutbox {
    /// Opens the way back, and the feed at its end.
    pub fn open(session: Option<Arc<Feed>>) -> (Arc<Feed>, Arc<dyn Outbox>) {
        let feed = Arc::<Feed>::default();
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

    fn aside(&self) -> Option<Arc<dyn Outbox>> {
        self.session.clone().map(|session| session as _)
    }
}

impl Drop for CallOutbox {
    fn drop(&mut self) {
        self.feed.end();
    }
}
