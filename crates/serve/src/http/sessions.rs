//! Sessions of the handshake revisions, and their resumable streams.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event_feed::{EventFeed, FeedPosition};
use crate::service::ClientConnection;

/// Maximum number of resumable request streams per session.
const MAX_STREAMS: usize = 64;

/// Number of the session's own stream. Request streams are numbered from 1.
pub(super) const OWN_STREAM: u64 = 0;

/// All sessions by id.
pub(super) struct SessionTable {
    all: Mutex<HashMap<String, Arc<HttpSession>>>,
    limit: usize,
    /// Counts uses, to find the least recently used session.
    uses: AtomicU64,
}

/// A session: its client, and what the client can still read.
pub(super) struct HttpSession {
    pub id: String,
    pub connection: Arc<dyn ClientConnection>,
    /// Stream for messages that belong to no request.
    pub own: Arc<EventFeed>,
    streams: Mutex<VecDeque<(u64, Arc<EventFeed>)>>,
    last_stream: AtomicU64,
    last_use: AtomicU64,
}

impl SessionTable {
    pub fn new(limit: usize) -> Self {
        Self { all: Mutex::default(), limit, uses: AtomicU64::new(0) }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session. If there are too many, the least recently used one ends.
    pub fn add(&self, session: &Arc<HttpSession>) {
        self.mark_used(session);
        let mut all = self.all();
        let oldest = (all.len() >= self.limit).then(|| all.values().min_by_key(|session| session.last_use()).cloned());
        let oldest = oldest.flatten().inspect(|oldest| drop(all.remove(&oldest.id)));
        all.insert(session.id.clone(), Arc::clone(session));
        drop(all);
        if let Some(oldest) = oldest {
            oldest.close();
        }
    }

    /// Finds the session `id` and marks it as used.
    pub fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.all().get(id).cloned()?;
        self.mark_used(&session);
        Some(session)
    }

    /// Ends the session `id`, if it exists.
    pub fn end(&self, id: &str) {
        let ended = self.all().remove(id);
        if let Some(session) = ended {
            session.close();
        }
    }

    fn mark_used(&self, session: &HttpSession) {
        session.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl HttpSession {
    /// Creates the session of a connection.
    ///
    /// # Errors
    ///
    /// Fails if no random id can be made, or the connection cannot be kept.
    pub fn new(connection: Arc<dyn ClientConnection>) -> io::Result<Self> {
        let own = Arc::<EventFeed>::default();
        let id = random_id()?;
        connection.attach(Arc::clone(&own) as _)?;
        let (streams, last_stream) = (Mutex::default(), AtomicU64::new(OWN_STREAM));
        Ok(Self { id, connection, own, streams, last_stream, last_use: AtomicU64::new(0) })
    }

    fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    fn streams(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<EventFeed>)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a request's stream and returns its number.
    pub fn store_stream(&self, feed: &Arc<EventFeed>) -> u64 {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let mut streams = self.streams();
        if streams.len() >= MAX_STREAMS {
            streams.pop_front();
        }
        streams.push_back((number, Arc::clone(feed)));
        number
    }

    /// Resumes the stream after the event `last`, if all later events are buffered.
    pub fn resume(&self, last: &str) -> Option<(u64, Arc<EventFeed>, FeedPosition)> {
        let (stream, read) = last.split_once('-')?;
        let (stream, read) = (stream.parse().ok()?, read.parse().ok()?);
        let feed = if stream == OWN_STREAM { Arc::clone(&self.own) } else { self.find_stream(stream)? };
        let position = feed.reopen(read)?;
        Some((stream, feed, position))
    }

    fn find_stream(&self, number: u64) -> Option<Arc<EventFeed>> {
        self.streams().iter().find(|(known, _)| *known == number).map(|(_, feed)| Arc::clone(feed))
    }

    /// Ends the connection and all streams.
    pub fn close(&self) {
        self.connection.close();
        self.own.end();
        self.streams().drain(..).for_each(|(_, feed)| feed.end());
    }
}

/// Returns a 256-bit random id. Where clients are not authenticated, it is the session's only credential.
fn random_id() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use wharf_wire::{RawJson, Revision};

    use super::*;
    use crate::message::ClientMessage;
    use crate::service::{Outbox, OutgoingMessage};

    struct SilentConnection;

    impl ClientConnection for SilentConnection {
        fn receive(&self, _: ClientMessage, _: Arc<dyn Outbox>) {}

        fn admit(&self, _: &ClientMessage) -> Result<(), OutgoingMessage> {
            Ok(())
        }

        fn input_schema(&self, _: &str) -> Option<RawJson> {
            None
        }

        fn revision(&self) -> Option<Revision> {
            None
        }

        fn attach(&self, _: Arc<dyn Outbox>) -> io::Result<()> {
            Ok(())
        }

        fn cancel_pending(&self) {}

        fn close(&self) {}
    }

    fn session() -> Arc<HttpSession> {
        Arc::new(HttpSession::new(Arc::new(SilentConnection)).unwrap())
    }

    #[test]
    fn least_recently_used_session_is_evicted() {
        let sessions = SessionTable::new(3);
        let made: Vec<_> = (0..4).map(|_| session()).collect();
        made[..3].iter().for_each(|session| sessions.add(session));
        assert!(sessions.find(&made[0].id).is_some());
        sessions.add(&made[3]);
        let is_there = |session: &Arc<HttpSession>| sessions.find(&session.id).is_some();
        assert!(is_there(&made[0]) && !is_there(&made[1]) && is_there(&made[2]));
        assert!(made[1].own.push(OutgoingMessage::unsolicited("1")).is_err(), "its stream has ended");
        sessions.end(&made[2].id);
        assert!(!is_there(&made[2]));
        assert_eq!(made[0].id.len(), 64);
    }

    #[test]
    fn only_stored_streams_can_be_resumed() {
        let session = session();
        let feeds: Vec<_> = (0..=MAX_STREAMS).map(|_| Arc::<EventFeed>::default()).collect();
        let numbers: Vec<_> = feeds.iter().map(|feed| session.store_stream(feed)).collect();
        let is_resumable = |stream: u64| session.resume(&format!("{stream}-0")).is_some();
        assert!(is_resumable(OWN_STREAM) && !is_resumable(numbers[0]) && is_resumable(numbers[1]));
        for nonsense in ["", "1", "-", "1-", "-1", "1-x", "2-1"] {
            assert!(session.resume(nonsense).is_none(), "{nonsense:?}");
        }
    }
}
