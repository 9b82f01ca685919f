//! The resumable streams of one session, bounded in number and bytes, alone and together.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event_feed::{EventFeed, FeedPosition};

/// Maximum number of resumable request streams per session.
pub(crate) const MAX_STREAMS: usize = 64;

/// Maximum bytes of the resumable request streams of one session. The newest stream may be larger.
pub(crate) const MAX_SESSION_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of the resumable request streams of all sessions, above which each session stores only its newest one.
const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;

/// Number of the session's own stream. Request streams are numbered from 1.
pub(crate) const OWN_STREAM: u64 = 0;

/// Bytes of the resumable streams of all sessions.
#[derive(Debug, Default)]
pub(crate) struct StoredTotal(AtomicUsize);

impl StoredTotal {
    fn replace(&self, old: usize, new: usize) {
        if new >= old {
            self.0.fetch_add(new - old, Ordering::Relaxed);
        } else {
            self.0.fetch_sub(old - new, Ordering::Relaxed);
        }
    }
}

/// A session's own stream, and the streams of its newest requests.
pub(crate) struct SessionStreams {
    /// Stream for messages that belong to no request.
    pub own: Arc<EventFeed>,
    stored: Mutex<StoredStreams>,
    total: Arc<StoredTotal>,
}

#[derive(Default)]
struct StoredStreams {
    /// Streams by number, oldest first.
    streams: VecDeque<(u64, Arc<EventFeed>)>,
    last: u64,
    /// Bytes counted in the total.
    counted: usize,
}

impl SessionStreams {
    pub fn new(total: Arc<StoredTotal>) -> Self {
        Self { own: Arc::default(), stored: Mutex::default(), total }
    }

    fn stored(&self) -> MutexGuard<'_, StoredStreams> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a request's stream and returns its number.
    pub fn store(&self, feed: &Arc<EventFeed>) -> u64 {
        let mut stored = self.stored();
        stored.last += 1;
        let number = stored.last;
        if stored.streams.len() >= MAX_STREAMS {
            stored.streams.pop_front();
        }
        stored.streams.push_back((number, Arc::clone(feed)));
        drop(stored);
        self.trim();
        number
    }

    /// Drops the oldest streams over the limits, those of finished requests first. Their readers are not affected.
    pub fn trim(&self) {
        let mut stored = self.stored();
        if stored.streams.is_empty() {
            return;
        }
        let mut bytes: usize = stored.streams.iter().map(|(_, feed)| feed.buffered_bytes()).sum();
        let others = self.total.0.load(Ordering::Relaxed).saturating_sub(stored.counted);
        let limit = if others + bytes > MAX_TOTAL_BYTES { 0 } else { MAX_SESSION_BYTES };
        while bytes > limit && stored.streams.len() > 1 {
            let older = stored.streams.len() - 1;
            let ended = stored.streams.iter().take(older).position(|(_, feed)| feed.is_ended());
            let dropped = stored.streams.remove(ended.unwrap_or(0));
            bytes = bytes.saturating_sub(dropped.map_or(0, |(_, feed)| feed.buffered_bytes()));
        }
        self.total.replace(stored.counted, bytes);
        stored.counted = bytes;
    }

    /// Resumes the stream after the event `last`, if all later events are buffered.
    pub fn resume(&self, last: &str) -> Option<(u64, Arc<EventFeed>, FeedPosition)> {
        let (stream, read) = last.split_once('-')?;
        let (stream, read) = (stream.parse().ok()?, read.parse().ok()?);
        let feed = if stream == OWN_STREAM { Arc::clone(&self.own) } else { self.find(stream)? };
        let position = feed.reopen(read)?;
        Some((stream, feed, position))
    }

    fn find(&self, number: u64) -> Option<Arc<EventFeed>> {
        self.stored().streams.iter().find(|(known, _)| *known == number).map(|(_, feed)| Arc::clone(feed))
    }

    /// Ends all streams.
    pub fn end(&self) {
        self.own.end();
        let mut stored = self.stored();
        stored.streams.drain(..).for_each(|(_, feed)| feed.end());
        self.total.replace(stored.counted, 0);
        stored.counted = 0;
    }
}

impl Drop for SessionStreams {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_feed::RequestOutbox;
    use crate::service::OutgoingMessage;

    fn response(bytes: usize) -> OutgoingMessage {
        OutgoingMessage::response(format!("\"{}\"", "x".repeat(bytes - 2)))
    }

    /// Stores the stream of a request that is finished by a response of this size.
    fn store_finished(streams: &Arc<SessionStreams>, bytes: usize) -> u64 {
        let (feed, out) = RequestOutbox::open(Some(Arc::clone(streams)));
        let number = streams.store(&feed);
        out.send(response(bytes));
        number
    }

    fn is_resumable(streams: &SessionStreams, stream: u64) -> bool {
        streams.resume(&format!("{stream}-0")).is_some()
    }

    #[test]
    fn only_stored_streams_can_be_resumed() {
        let streams = Arc::new(SessionStreams::new(Arc::default()));
        let numbers: Vec<u64> = (0..=MAX_STREAMS).map(|_| streams.store(&Arc::default())).collect();
        assert!(is_resumable(&streams, OWN_STREAM));
        assert!(!is_resumable(&streams, numbers[0]) && is_resumable(&streams, numbers[1]));
        for nonsense in ["", "1", "-", "1-", "-1", "1-x", "2-1"] {
            assert!(streams.resume(nonsense).is_none(), "{nonsense:?}");
        }
    }

    #[test]
    fn responses_together_exceeding_the_limit_drop_the_oldest_finished_stream() {
        let total = Arc::<StoredTotal>::default();
        let streams = Arc::new(SessionStreams::new(Arc::clone(&total)));
        let running = streams.store(&Arc::default());
        let half = MAX_SESSION_BYTES / 2;
        let numbers: Vec<u64> = (0..3).map(|_| store_finished(&streams, half)).collect();
        assert!(!is_resumable(&streams, numbers[0]), "too much together");
        assert!(is_resumable(&streams, numbers[1]) && is_resumable(&streams, numbers[2]));
        assert!(is_resumable(&streams, running), "a running request keeps its stream");
        assert_eq!(total.0.load(Ordering::Relaxed), 2 * half);
        let large = store_finished(&streams, MAX_SESSION_BYTES + 1);
        assert!(is_resumable(&streams, large) && !is_resumable(&streams, numbers[2]));
        drop(streams);
        assert_eq!(total.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn sessions_together_exceeding_the_total_store_only_their_newest_stream() {
        let total = Arc::<StoredTotal>::default();
        let count = MAX_TOTAL_BYTES / MAX_SESSION_BYTES;
        let sessions: Vec<_> = (0..=count).map(|_| Arc::new(SessionStreams::new(Arc::clone(&total)))).collect();
        for streams in &sessions[..count] {
            store_finished(streams, MAX_SESSION_BYTES);
        }
        let first = store_finished(&sessions[count], 10);
        let second = store_finished(&sessions[count], 10);
        assert!(!is_resumable(&sessions[count], first) && is_resumable(&sessions[count], second));
    }
}
