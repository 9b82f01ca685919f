//! Sessions of the handshake revisions, and their resumable streams.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::feed::{EventFeed, FeedPosition};
use super::spawn_tide_changes;
use crate::message::lock_unpoisoned;
use crate::server::DemoServer;

/// Maximum number of sessions. The least recently used one is removed.
const MAX_SESSIONS: usize = 64;

/// Maximum number of resumable request streams per session.
const MAX_STREAMS: usize = 64;

/// Number of the session's own stream. Request streams are numbered from 1.
pub const OWN_STREAM: u64 = 0;

/// The sessions, least recently used first.
#[derive(Default)]
pub struct SessionTable {
    all: Mutex<Vec<Arc<HttpSession>>>,
}

pub struct HttpSession {
    pub id: String,
    pub server: Arc<DemoServer>,
    /// Stream for messages that belong to no request.
    pub own: Arc<EventFeed>,
    streams: Mutex<VecDeque<(u64, Arc<EventFeed>)>>,
    last_stream: AtomicU64,
}

impl SessionTable {
    /// Adds a session.
    pub fn add(&self, session: &Arc<HttpSession>) {
        let mut all = lock_unpoisoned(&self.all);
        if all.len() >= MAX_SESSIONS {
            all.remove(0).close();
        }
        all.push(Arc::clone(session));
    }

    /// Finds the session `id` and marks it as used.
    pub fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        let mut all = lock_unpoisoned(&self.all);
        let place = all.iter().position(|session| session.id == id)?;
        let session = all.remove(place);
        all.push(Arc::clone(&session));
        Some(session)
    }

    /// Ends the session `id`. Returns whether it existed.
    pub fn end(&self, id: &str) -> bool {
        let mut all = lock_unpoisoned(&self.all);
        let ended = all.iter().position(|session| session.id == id).map(|place| all.remove(place));
        drop(all);
        ended.inspect(|session| session.close()).is_some()
    }
}

impl HttpSession {
    /// Creates a session on `server` and starts its periodic changes, if the server's options ask for them.
    ///
    /// # Errors
    ///
    /// Fails if no random id or no thread can be created.
    pub fn new(server: DemoServer) -> io::Result<Self> {
        let (server, own) = (Arc::new(server), Arc::<EventFeed>::default());
        spawn_tide_changes(&server, Arc::clone(&own) as _)?;
        let (streams, last_stream) = (Mutex::default(), AtomicU64::new(OWN_STREAM));
        Ok(Self { id: random_id()?, server, own, streams, last_stream })
    }

    /// Stores a request's stream and returns its number.
    pub fn store_stream(&self, feed: &Arc<EventFeed>) -> u64 {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let mut streams = lock_unpoisoned(&self.streams);
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
        let bookmark = feed.reopen(read)?;
        Some((stream, feed, bookmark))
    }

    fn find_stream(&self, number: u64) -> Option<Arc<EventFeed>> {
        let streams = lock_unpoisoned(&self.streams);
        streams.iter().find(|(kept, _)| *kept == number).map(|(_, feed)| Arc::clone(feed))
    }

    /// Ends all calls and streams of the session.
    pub fn close(&self) {
        self.server.close();
        self.own.end();
    }
}

/// Returns a 256-bit random id. It is the session's only credential.
fn random_id() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::DemoServerOptions;

    fn session() -> Arc<HttpSession> {
        let options = DemoServerOptions { revision: None, name: "demo".to_owned(), crash_after: None, tide: None };
        let root = DemoServer::new(options, Vec::new()).unwrap();
        Arc::new(HttpSession::new(root.for_session().unwrap()).unwrap())
    }

    #[test]
    fn least_recently_used_session_is_evicted() {
        let sessions = SessionTable::default();
        let made: Vec<_> = (0..=MAX_SESSIONS).map(|_| session()).collect();
        for session in &made[..MAX_SESSIONS] {
            sessions.add(session);
        }
        assert!(sessions.find(&made[0].id).is_some());
        sessions.add(&made[MAX_SESSIONS]);
        let is_there = |session: &Arc<HttpSession>| sessions.find(&session.id).is_some();
        assert!(is_there(&made[0]) && !is_there(&made[1]) && is_there(&made[2]));
        assert!(!made[1].own.push(&true.into()), "its stream has ended");
        assert!(sessions.end(&made[2].id) && !sessions.end(&made[2].id));
        assert_eq!(made[0].id.len(), 64);
    }

    #[test]
    fn only_stored_streams_can_be_resumed() {
        let session = session();
        let feeds: Vec<_> = (0..=MAX_STREAMS).map(|_| Arc::<EventFeed>::default()).collect();
        let numbers: Vec<_> = feeds.iter().map(|feed| session.store_stream(feed)).collect();
        let is_kept = |stream: u64| session.resume(&format!("{stream}-0")).is_some();
        assert!(is_kept(OWN_STREAM) && !is_kept(numbers[0]) && is_kept(numbers[1]));
        for nonsense in ["", "1", "-", "1-", "-1", "1-x", "2-1"] {
            assert!(session.resume(nonsense).is_none(), "{nonsense:?}");
        }
    }
}
