//! Streams a feed as a response body: server-sent events, and comments while idle.

use std::any::Any;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep};

use super::feed::{EventFeed, FeedPosition};

/// Idle time after which a comment keeps the stream alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Reads a feed for one response.
pub struct EventStream {
    feed: Arc<EventFeed>,
    bookmark: FeedPosition,
    /// Prefix of the event ids, if events have ids.
    stream: Option<u64>,
    /// Text before the first message.
    opening: Option<String>,
    silence: Pin<Box<Sleep>>,
    /// Dropped with the response, whether or not it was read to its end.
    _hold: Box<dyn Any + Send>,
}

impl EventStream {
    /// Creates a reader of `feed`. `hold` is dropped when the response is over or the client disconnects.
    pub fn new(feed: Arc<EventFeed>, bookmark: FeedPosition, hold: impl Any + Send) -> Self {
        let silence = Box::pin(sleep(KEEP_ALIVE_INTERVAL));
        Self { feed, bookmark, stream: None, opening: None, silence, _hold: Box::new(hold) }
    }

    /// Gives every event an id, so that the stream can be resumed.
    pub fn with_event_ids(mut self, stream: u64) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Starts with an event that has only an id (2025-11-25 basic/transports, "Sending Messages to the Server").
    pub fn with_priming_event(mut self) -> Self {
        self.opening = self.stream.map(|stream| format!("id: {stream}-{}\ndata: \n\n", self.bookmark.read));
        self
    }

    /// Starts with the event `name`.
    pub fn with_opening_event(mut self, name: &str, data: &str) -> Self {
        self.opening = Some(format!("event: {name}\ndata: {data}\n\n"));
        self
    }

    fn event(&self, message: &str) -> String {
        // JSON has no raw line breaks, so one data line is enough.
        match self.stream {
            Some(stream) => format!("event: message\nid: {stream}-{}\ndata: {message}\n\n", self.bookmark.read),
            None => format!("event: message\ndata: {message}\n\n"),
        }
    }

    fn poll_text(&mut self, context: &mut Context<'_>) -> Poll<Option<String>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        match self.feed.poll_next(&mut self.bookmark, context) {
            Poll::Ready(message) => Poll::Ready(message.map(|message| self.event(&message))),
            Poll::Pending => self.silence.as_mut().poll(context).map(|()| Some(": still here\n\n".to_owned())),
        }
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let text = self.poll_text(context);
        if text.is_ready() {
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
        }
        text.map(|text| text.map(|text| Ok(Frame::data(text.into()))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use serde_json::json;

    use super::*;

    /// Returns the next part of the body.
    async fn next(reader: &mut EventStream) -> Option<String> {
        poll_fn(|context| Pin::new(&mut *reader).poll_frame(context))
            .await
            .map(|frame| String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
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
        feed.push(&json!({"a": "\n"}));
        assert_eq!(next(&mut reader).await.unwrap(), "event: message\nid: 7-1\ndata: {\"a\":\"\\n\"}\n\n");
        feed.end();
        assert_eq!(next(&mut reader).await, None);
    }
}
