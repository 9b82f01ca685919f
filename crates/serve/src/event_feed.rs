//! The messages of one stream, written by a server and read by one reader at a time.
//!
//! Independent of HTTP. Only the newest messages are buffered. The stream ends for a reader that falls behind or is
//! replaced.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::service::{Outbox, OutgoingMessage};
use crate::session_streams::SessionStreams;

/// Maximum number of buffered messages.
const MAX_BUFFERED_MESSAGES: usize = 256;

/// Maximum number of buffered bytes. A single message may be larger.
const MAX_BUFFERED_BYTES: usize = 1024 * 1024;

/// A stream of messages with a bounded buffer.
#[derive(Default)]
pub(crate) struct EventFeed {
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    buffered: VecDeque<OutgoingMessage>,
    bytes: usize,
    /// Number of messages dropped from the buffer. Messages are numbered from 1.
    dropped: u64,
    /// Number of the last message read.
    seen: u64,
    is_ended: bool,
    /// Number of readers so far. Only the last one may read.
    readers: u64,
    waker: Option<Waker>,
}

/// Position of a reader in a feed.
#[derive(Debug)]
pub(crate) struct FeedPosition {
    reader: u64,
    /// Number of the last message read.
    pub read: u64,
}

/// Start of a feed.
#[derive(Debug, PartialEq)]
pub(crate) enum FeedStart {
    /// The feed ended without a message.
    Nothing,
    /// The feed ended after this single message.
    Sole(OutgoingMessage),
    /// The feed has, or may get, more messages.
    More,
}

impl EventFeed {
    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. Returns it if the feed has ended.
    pub fn push(&self, message: OutgoingMessage) -> Result<(), OutgoingMessage> {
        let mut state = self.state();
        state.push(message)?;
        state.evict();
        Ok(())
    }

    /// Adds the last message and ends the feed atomically. Returns the message if the feed had ended before. Nothing is
    /// dropped for it, whatever its size: a reader that has read everything so far gets it.
    pub fn finish(&self, message: OutgoingMessage) -> Result<(), OutgoingMessage> {
        let mut state = self.state();
        let pushed = state.push(message);
        state.is_ended = true;
        pushed
    }

    /// Ends the feed. Buffered messages can still be read.
    pub fn end(&self) {
        let mut state = self.state();
        state.is_ended = true;
        state.wake();
    }

    /// Returns the bytes of the buffered messages.
    pub fn buffered_bytes(&self) -> usize {
        self.state().bytes
    }

    /// Reports whether no message can follow.
    pub fn is_ended(&self) -> bool {
        self.state().is_ended
    }

    /// Waits until the start of the feed is known.
    pub async fn wait_for_start(&self) -> FeedStart {
        poll_fn(|context| {
            let mut state = self.state();
            match (state.is_ended, state.buffered.front()) {
                (true, None) => Poll::Ready(FeedStart::Nothing),
                (true, Some(sole)) if state.last() == 1 => Poll::Ready(FeedStart::Sole(sole.clone())),
                (_, Some(_)) => Poll::Ready(FeedStart::More),
                (false, None) => state.sleep(context),
            }
        })
        .await
    }

    /// Creates a reader that continues after the last one and replaces it.
    pub fn open(&self) -> FeedPosition {
        let mut state = self.state();
        let seen = state.seen;
        state.replace_reader(seen)
    }

    /// Creates a reader that continues after message `read`, if all later messages are buffered.
    pub fn reopen(&self, read: u64) -> Option<FeedPosition> {
        let mut state = self.state();
        (state.dropped..=state.last()).contains(&read).then(|| state.replace_reader(read))
    }

    /// Polls for the next message of a reader. `None` at the end.
    pub fn poll_next(&self, position: &mut FeedPosition, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        if position.reader != state.readers || position.read < state.dropped {
            return Poll::Ready(None);
        }
        let index = usize::try_from(position.read - state.dropped).unwrap_or(usize::MAX);
        match state.buffered.get(index).map(|message| message.text.clone()) {
            Some(text) => {
                position.read += 1;
                state.seen = state.seen.max(position.read);
                Poll::Ready(Some(text))
            }
            None if state.is_ended => Poll::Ready(None),
            None => state.sleep(context),
        }
    }
}

impl FeedState {
    fn push(&mut self, message: OutgoingMessage) -> Result<(), OutgoingMessage> {
        if self.is_ended {
            return Err(message);
        }
        if message.text.is_empty() {
            return Ok(());
        }
        self.bytes += message.text.len();
        self.buffered.push_back(message);
        self.wake();
        Ok(())
    }

    /// Drops the oldest messages over the limits.
    fn evict(&mut self) {
        let is_over = |state: &Self| state.buffered.len() > MAX_BUFFERED_MESSAGES || state.bytes > MAX_BUFFERED_BYTES;
        while is_over(self) && self.buffered.len() > 1 {
            let oldest = self.buffered.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.text.len());
            self.dropped += 1;
        }
    }

    /// Returns the number of the last message.
    fn last(&self) -> u64 {
        self.dropped + self.buffered.len() as u64
    }

    fn replace_reader(&mut self, read: u64) -> FeedPosition {
        self.readers += 1;
        self.wake();
        FeedPosition { reader: self.readers, read }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn sleep<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Drops messages sent after the end.
impl Outbox for EventFeed {
    fn send(&self, message: OutgoingMessage) {
        let _ = self.push(message);
    }
}

/// Sends the messages of one request: to its own stream, and after the response to the session's. The stream ends with
/// the response, or when the last outbox is dropped.
pub(crate) struct RequestOutbox {
    feed: Arc<EventFeed>,
    session: Option<Arc<SessionStreams>>,
}

impl RequestOutbox {
    /// Creates the outbox and its feed.
    pub fn open(session: Option<Arc<SessionStreams>>) -> (Arc<EventFeed>, Arc<dyn Outbox>) {
        let feed = Arc::<EventFeed>::default();
        (Arc::clone(&feed), Arc::new(Self { feed, session }))
    }
}

impl Outbox for RequestOutbox {
    fn send(&self, message: OutgoingMessage) {
        let sent = if message.is_response { self.feed.finish(message) } else { self.feed.push(message) };
        let Some(session) = &self.session else { return };
        if let Err(message) = sent {
            session.own.send(message);
        }
        // The stream may be one of those that can be resumed.
        session.trim();
    }

    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        self.session.as_ref().map(|session| Arc::clone(&session.own) as _)
    }
}

impl Drop for RequestOutbox {
    fn drop(&mut self) {
        self.feed.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: impl ToString) -> OutgoingMessage {
        OutgoingMessage { text: text.to_string().into(), is_response: false, error_code: None }
    }

    /// Returns the next message of a reader, `-` if there is none yet, or `.` at the end.
    fn next(feed: &EventFeed, position: &mut FeedPosition) -> String {
        match feed.poll_next(position, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(text)) => String::from_utf8(text.to_vec()).unwrap(),
            Poll::Ready(None) => ".".to_owned(),
            Poll::Pending => "-".to_owned(),
        }
    }

    #[test]
    fn reader_resumes_at_its_position() {
        let feed = EventFeed::default();
        for number in 1..=3 {
            feed.push(message(number)).unwrap();
        }
        let mut first = feed.open();
        assert_eq!([next(&feed, &mut first), next(&feed, &mut first)], ["1", "2"]);
        let mut second = feed.open();
        assert_eq!(next(&feed, &mut first), ".", "only one reads");
        assert_eq!([next(&feed, &mut second), next(&feed, &mut second)], ["3", "-"]);
        let mut third = feed.reopen(1).unwrap();
        feed.end();
        assert!(feed.push(message(4)).is_err());
        assert_eq!([next(&feed, &mut third), next(&feed, &mut third), next(&feed, &mut third)], ["2", "3", "."]);
        assert!(feed.reopen(3).is_some() && feed.reopen(4).is_none());
    }

    #[test]
    fn large_response_after_a_notification_is_delivered() {
        let feed = EventFeed::default();
        let mut reader = feed.open();
        feed.push(message("progress")).unwrap();
        feed.finish(message("x".repeat(MAX_BUFFERED_BYTES + 1))).unwrap();
        assert_eq!(next(&feed, &mut reader), "progress");
        assert_eq!(next(&feed, &mut reader).len(), MAX_BUFFERED_BYTES + 1);
    }

    #[test]
    fn buffer_is_limited() {
        let feed = EventFeed::default();
        let mut slow = feed.open();
        for number in 0..=MAX_BUFFERED_MESSAGES {
            feed.push(message(number)).unwrap();
        }
        assert_eq!(next(&feed, &mut slow), ".", "it fell behind");
        assert!(feed.reopen(0).is_none());
        assert_eq!(next(&feed, &mut feed.reopen(1).unwrap()), "1");
        feed.push(message("x".repeat(MAX_BUFFERED_BYTES + 1))).unwrap();
        let last = MAX_BUFFERED_MESSAGES as u64 + 1;
        assert!(feed.reopen(last - 1).is_none() && feed.reopen(last).is_some());
    }
}
