//! The messages of one stream: numbered, buffered, and read by one reader at a time.
//!
//! Independent of HTTP. Only the newest messages are buffered. The stream ends for a reader that falls behind or is
//! replaced.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use crate::message::{Outbox, lock_unpoisoned};

/// Maximum number of buffered messages.
const MAX_BUFFERED_MESSAGES: usize = 512;

/// Maximum number of buffered bytes. A single message may be larger.
const MAX_BUFFERED_BYTES: usize = 4 * 1024 * 1024;

#[derive(Default)]
pub struct EventFeed {
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    kept: VecDeque<String>,
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
pub struct FeedPosition {
    reader: u64,
    /// Number of the last message read.
    pub read: u64,
}

/// Start of a feed.
#[derive(Debug, PartialEq)]
pub enum FeedStart {
    /// The feed ended without a message.
    Nothing,
    /// The feed ended after this single message.
    Sole(String),
    /// The feed has, or may get, more messages.
    More,
}

impl EventFeed {
    /// Adds a message. Returns false if the feed has ended.
    pub fn push(&self, message: &Value) -> bool {
        lock_unpoisoned(&self.state).push(message)
    }

    /// Adds the last message and ends the feed atomically. Returns false if the feed had ended before.
    pub fn finish(&self, message: &Value) -> bool {
        let mut state = lock_unpoisoned(&self.state);
        let is_taken = state.push(message);
        state.is_ended = true;
        is_taken
    }

    /// Ends the feed. Buffered messages can still be read.
    pub fn end(&self) {
        let mut state = lock_unpoisoned(&self.state);
        state.is_ended = true;
        state.wake();
    }

    /// Waits until the start of the feed is known.
    pub async fn wait_for_start(&self) -> FeedStart {
        poll_fn(|context| {
            let mut state = lock_unpoisoned(&self.state);
            match (state.is_ended, state.kept.front()) {
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
        let mut state = lock_unpoisoned(&self.state);
        let seen = state.seen;
        state.replace_reader(seen)
    }

    /// Creates a reader that continues after message `read`, if all later messages are buffered.
    pub fn reopen(&self, read: u64) -> Option<FeedPosition> {
        let mut state = lock_unpoisoned(&self.state);
        (state.dropped..=state.last()).contains(&read).then(|| state.replace_reader(read))
    }

    /// Polls for the next message of a reader. `None` at the end.
    pub fn poll_next(&self, bookmark: &mut FeedPosition, context: &mut Context<'_>) -> Poll<Option<String>> {
        let mut state = lock_unpoisoned(&self.state);
        if bookmark.reader != state.readers || bookmark.read < state.dropped {
            return Poll::Ready(None);
        }
        let place = usize::try_from(bookmark.read - state.dropped).unwrap_or(usize::MAX);
        match state.kept.get(place).cloned() {
            Some(text) => {
                bookmark.read += 1;
                state.seen = state.seen.max(bookmark.read);
                Poll::Ready(Some(text))
            }
            None if state.is_ended => Poll::Ready(None),
            None => state.sleep(context),
        }
    }
}

impl FeedState {
    fn push(&mut self, message: &Value) -> bool {
        if self.is_ended {
            return false;
        }
        let text = message.to_string();
        self.bytes += text.len();
        self.kept.push_back(text);
        while self.kept.len() > MAX_BUFFERED_MESSAGES || (self.bytes > MAX_BUFFERED_BYTES && self.kept.len() > 1) {
            let oldest = self.kept.pop_front().unwrap_or_default();
            self.bytes -= oldest.len();
            self.dropped += 1;
        }
        self.wake();
        true
    }

    /// Returns the number of the last message.
    fn last(&self) -> u64 {
        self.dropped + self.kept.len() as u64
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
    fn send(&self, message: Value) {
        self.push(&message);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use serde_json::json;

    use super::{EventFeed, FeedPosition, MAX_BUFFERED_BYTES, MAX_BUFFERED_MESSAGES};

    /// Returns the next message of a reader, `-` if there is none yet, or `.` at the end.
    fn next(feed: &EventFeed, bookmark: &mut FeedPosition) -> String {
        match feed.poll_next(bookmark, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(text)) => text,
            Poll::Ready(None) => ".".to_owned(),
            Poll::Pending => "-".to_owned(),
        }
    }

    #[test]
    fn reader_resumes_at_its_position() {
        let feed = EventFeed::default();
        for number in 1..=3 {
            feed.push(&json!(number));
        }
        let mut first = feed.open();
        assert_eq!([next(&feed, &mut first), next(&feed, &mut first)], ["1", "2"]);
        let mut second = feed.open();
        assert_eq!(next(&feed, &mut first), ".", "only one reads");
        assert_eq!([next(&feed, &mut second), next(&feed, &mut second)], ["3", "-"]);
        let mut third = feed.reopen(1).unwrap();
        feed.end();
        assert!(!feed.push(&json!(4)));
        assert_eq!([next(&feed, &mut third), next(&feed, &mut third), next(&feed, &mut third)], ["2", "3", "."]);
        assert!(feed.reopen(3).is_some() && feed.reopen(4).is_none());
    }

    #[test]
    fn buffer_is_limited() {
        let feed = EventFeed::default();
        let mut slow = feed.open();
        for number in 0..=MAX_BUFFERED_MESSAGES {
            feed.push(&json!(number));
        }
        assert_eq!(next(&feed, &mut slow), ".", "it fell behind");
        assert!(feed.reopen(0).is_none());
        assert_eq!(next(&feed, &mut feed.reopen(1).unwrap()), "1");
        let large = "x".repeat(MAX_BUFFERED_BYTES);
        feed.push(&json!(large));
        let last = MAX_BUFFERED_MESSAGES as u64 + 1;
        assert!(feed.reopen(last - 1).is_none() && feed.reopen(last).is_some());
    }
}
