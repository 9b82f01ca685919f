//! Sessions of the handshake revisions, and their resumable streams.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::service::ClientConnection;
use crate::session_streams::{SessionStreams, StoredTotal};

/// All sessions by id.
pub(super) struct SessionTable {
    all: Mutex<HashMap<String, Arc<HttpSession>>>,
    limit: usize,
    /// Counts uses, to find the least recently used session.
    uses: AtomicU64,
    /// Bytes of the streams of all sessions.
    stored: Arc<StoredTotal>,
}

/// A session: its client, and what the client can still read.
pub(super) struct HttpSession {
    pub id: String,
    /// The principal that opened it.
    principal: Arc<str>,
    pub connection: Arc<dyn ClientConnection>,
    pub streams: Arc<SessionStreams>,
    last_use: AtomicU64,
    activity: Mutex<SessionActivity>,
}

/// What tells whether a session is in use.
struct SessionActivity {
    /// Number of requests being answered and of open streams.
    open: usize,
    /// End of the last one.
    last: Instant,
}

impl SessionTable {
    pub fn new(limit: usize) -> Self {
        Self { all: Mutex::default(), limit, uses: AtomicU64::new(0), stored: Arc::default() }
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

    /// Finds the session `id` of a principal and marks it as used.
    pub fn find(&self, id: &str, principal: &str) -> Option<Arc<HttpSession>> {
        let session = self.all().get(id).filter(|session| &*session.principal == principal).cloned()?;
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

    /// Ends the sessions that have had no request and no open stream for `idle`.
    pub fn end_idle(&self, idle: Duration) {
        let ended: Vec<_> = self.all().extract_if(|_, session| session.is_idle(idle)).collect();
        ended.into_iter().for_each(|(_, session)| session.close());
    }

    /// Ends all sessions of a principal.
    pub fn end_of_principal(&self, principal: &str) {
        let is_theirs = |_: &String, session: &mut Arc<HttpSession>| &*session.principal == principal;
        let ended: Vec<_> = self.all().extract_if(is_theirs).collect();
        ended.iter().for_each(|(_, session)| session.close());
    }

    /// Creates the session of a principal's connection, without adding it.
    ///
    /// # Errors
    ///
    /// Fails if no random id can be made, or the connection cannot be kept.
    pub fn create(&self, principal: Arc<str>, connection: Arc<dyn ClientConnection>) -> io::Result<Arc<HttpSession>> {
        HttpSession::new(principal, connection, Arc::clone(&self.stored)).map(Arc::new)
    }

    fn mark_used(&self, session: &HttpSession) {
        session.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl HttpSession {
    fn new(principal: Arc<str>, connection: Arc<dyn ClientConnection>, stored: Arc<StoredTotal>) -> io::Result<Self> {
        let streams = Arc::new(SessionStreams::new(stored));
        let id = random_id()?;
        connection.attach(Arc::clone(&streams.own) as _)?;
        let activity = Mutex::new(SessionActivity { open: 0, last: Instant::now() });
        Ok(Self { id, principal, connection, streams, last_use: AtomicU64::new(0), activity })
    }

    fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    fn activity(&self) -> MutexGuard<'_, SessionActivity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the session from becoming idle until the returned value is dropped.
    pub fn hold(self: &Arc<Self>) -> SessionHold {
        self.activity().open += 1;
        SessionHold(Arc::clone(self))
    }

    fn is_idle(&self, idle: Duration) -> bool {
        let activity = self.activity();
        activity.open == 0 && activity.last.elapsed() >= idle
    }

    /// Ends the connection and all streams.
    pub fn close(&self) {
        self.connection.close();
        self.streams.end();
    }
}

/// A request being answered, or an open stream.
pub(super) struct SessionHold(Arc<HttpSession>);

impl Drop for SessionHold {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.open -= 1;
        activity.last = Instant::now();
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
    use super::*;
    use crate::drain::tests::HeldRequests;
    use crate::service::OutgoingMessage;

    #[tokio::test]
    async fn least_recently_used_session_is_evicted() {
        let sessions = SessionTable::new(3);
        let made: Vec<_> =
            (0..4).map(|_| sessions.create("ada".into(), Arc::<HeldRequests>::default()).unwrap()).collect();
        made[..3].iter().for_each(|session| sessions.add(session));
        assert!(sessions.find(&made[0].id, "ada").is_some() && sessions.find(&made[0].id, "bob").is_none());
        sessions.add(&made[3]);
        let is_there = |session: &Arc<HttpSession>| sessions.find(&session.id, "ada").is_some();
        assert!(is_there(&made[0]) && !is_there(&made[1]) && is_there(&made[2]));
        assert!(made[1].streams.own.push(OutgoingMessage::unsolicited("1")).is_err(), "its stream has ended");
        sessions.end(&made[2].id);
        assert!(!is_there(&made[2]));
        sessions.end_of_principal("bob");
        assert!(is_there(&made[0]));
        sessions.end_of_principal("ada");
        assert!(!is_there(&made[0]) && !is_there(&made[3]));
        assert_eq!(made[0].id.len(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn session_without_requests_and_streams_ends() {
        let idle = Duration::from_secs(3600);
        let sessions = SessionTable::new(3);
        let made: Vec<_> =
            (0..2).map(|_| sessions.create("ada".into(), Arc::<HeldRequests>::default()).unwrap()).collect();
        made.iter().for_each(|session| sessions.add(session));
        let is_there = |session: &Arc<HttpSession>| sessions.find(&session.id, "ada").is_some();
        let open_stream = made[1].hold();
        tokio::time::advance(idle - Duration::from_secs(1)).await;
        sessions.end_idle(idle);
        assert!(is_there(&made[0]) && is_there(&made[1]));
        tokio::time::advance(Duration::from_secs(1)).await;
        sessions.end_idle(idle);
        assert!(!is_there(&made[0]) && is_there(&made[1]));
        drop(open_stream);
        sessions.end_idle(idle);
        assert!(is_there(&made[1]), "its stream has just ended");
        tokio::time::advance(idle).await;
        sessions.end_idle(idle);
        assert!(!is_there(&made[1]));
    }
}
