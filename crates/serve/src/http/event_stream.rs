//! Streams a feed as a response body: server-sent events, and comments while idle.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::time::{Instant, Sleep, sleep};

use crate::event_feed::{EventFeed, FeedPosition};

/// Idle time after which a comment keeps the stream alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Reads a feed for one response.
pub(super) struct EventStream {
    feed: Arc<EventFeed>,
    position: FeedPosition,
    /// Prefix of the event ids, if events have ids.
    stream: Option<u64>,
    /// Text before the first message.
    opening: Option<String>,
    silence: Pin<Box<Sleep>>,
    /// Dropped with the response, whether or not it was read to its end.
    _hold: Box<dyn Any + Send + Sync>,
}

impl EventStream {
    /// Creates a reader of `feed`. `hold` is dropped when the response is over or the client disconnects.
    pub fn new(feed: Arc<EventFeed>, position: FeedPosition, hold: impl Any + Send + Sync) -> Self {
        let silence = Box::pin(sleep(KEEP_ALIVE_INTERVAL));
        Self { feed, position, stream: None, opening: None, silence, _hold: Box::new(hold) }
    }

    /// Gives every event an id, so that the stream can be resumed.
    pub fn with_event_ids(mut self, stream: u64) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Starts with an event that has only an id (2025-11-25 basic/transports, "Sending Messages to the Server").
    pub fn with_priming_event(mut self) -> Self {
        self.opening = self.stream.map(|stream| format!("id: {stream}-{}\ndata: \n\n", self.position.read));
        self
    }

    /// Starts with the event `name`.
    pub fn with_opening_event(mut self, name: &str, data: &str) -> Self {
        self.opening = Some(format!("event: {name}\ndata: {data}\n\n"));
        self
    }

    fn event(&self, message: &[u8]) -> Bytes {
        let mut event = BytesMut::with_capacity(message.len() + 64);
        event.put_slice(b"event: message\n");
        if let Some(stream) = self.stream {
            event.put_slice(format!("id: {stream}-{}\n", self.position.read).as_bytes());
        }
        // JSON text without line breaks needs one data line only.
        event.put_slice(b"data: ");
        event.put_slice(message);
        event.put_slice(b"\n\n");
        event.freeze()
    }

    /// Polls for the next piece of the body. `None` at the end.
    pub fn poll_text(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let text = self.poll_piece(context);
        if text.is_ready() {
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
        }
        text
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening.into()));
        }
        match self.feed.poll_next(&mut self.position, context) {
            Poll::Ready(message) => Poll::Ready(message.map(|message| self.event(&message))),
            Poll::Pending => {
                self.silence.as_mut().poll(context).map(|()| Some(Bytes::from_static(b": still here\n\n")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::service::OutgoingMessage;

    /// Returns the next part of the body.
    async fn next(reader: &mut EventStream) -> Option<String> {
        let text = poll_fn(|context| reader.poll_text(context)).await?;
        Some(String::from_utf8(text.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn idle_stream_sends_keep_alive_comments() {
        let feed = Arc::<EventFeed>::default();
        let mut reader = EventStream::new(Arc::clone(&feed), feed.open(), ()).with_event_ids(7).with_priming_event();
        assert_eq!(next(&mut reader).await.unwrap(), "id: 7-0\ndata: \n\n");
        for _ in 0..2 {
            let started = Instant::now();
            assert_eq!(next(&mut reader).await.unwrap(), ": still here\n\n");
            assert_eq!(started.elapsed().as_secs(), KEEP_ALIVE_INTERVAL.as_secs());
        }
        feed.push(OutgoingMessage::unsolicited(r#"{"a":"\n"}"#)).unwrap();
        assert_eq!(next(&mut reader).await.unwrap(), "event: message\nid: 7-1\ndata: {\"a\":\"\\n\"}\n\n");
        feed.end();
        assert_eq!(next(&mut reader).await, None);
    }
}
