//! A client's TCP stream with deadlines for the head of a request and for writing.
//!
//! Between two requests a client may be silent for longer than in the middle of one. A client that does not read its
//! responses is disconnected: without a deadline it would hold its connection for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The requests of one connection, counted by its service.
#[derive(Debug, Default)]
pub(super) struct RequestProgress {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl RequestProgress {
    /// Marks a request whose head is complete. It lasts until the returned value is dropped.
    pub fn begin(self: &Arc<Self>) -> ActiveRequest {
        self.begun.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(Arc::clone(self))
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    fn is_answering(&self) -> bool {
        self.begun() != self.ended.load(Ordering::Relaxed)
    }
}

/// A request that is being answered, its body included.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<RequestProgress>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Deadlines of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamDeadlines {
    /// Maximum time from the first byte of a request to the end of its head. On a new connection it starts at once.
    pub head: Duration,
    /// Maximum time for which the client may read nothing while something is to be written.
    pub write: Duration,
}

/// A stream that fails at its deadlines.
pub(super) struct TimedStream<S> {
    stream: S,
    progress: Arc<RequestProgress>,
    deadlines: StreamDeadlines,
    /// Number of requests before the current head, and the time of the head's first byte.
    head: Option<(u64, Instant)>,
    head_timer: Pin<Box<Sleep>>,
    /// Time since which nothing could be written.
    blocked: Option<Instant>,
    write_timer: Pin<Box<Sleep>>,
}

impl<S> TimedStream<S> {
    pub fn new(stream: S, progress: Arc<RequestProgress>, deadlines: StreamDeadlines) -> Self {
        let timer = || Box::pin(sleep(deadlines.head));
        let head = Some((0, Instant::now()));
        let (head_timer, write_timer) = (timer(), timer());
        Self { stream, progress, deadlines, head, head_timer, blocked: None, write_timer }
    }

    /// Fails once the head of a request takes too long.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let begun = self.progress.begun();
        match self.head {
            Some((number, start)) if number == begun && !self.progress.is_answering() => {
                ready!(poll_until(&mut self.head_timer, start + self.deadlines.head, context));
                Poll::Ready(Err(timed_out("the head of a request took too long")))
            }
            _ => Poll::Pending,
        }
    }

    /// Notes received bytes, which may begin a head.
    fn note_received(&mut self) {
        let begun = self.progress.begun();
        let is_known = self.head.is_some_and(|(number, _)| number == begun);
        if !is_known && !self.progress.is_answering() {
            self.head = Some((begun, Instant::now()));
        }
    }

    /// Fails once the client has not read anything for too long.
    fn check_written<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let since = *self.blocked.get_or_insert_with(Instant::now);
        ready!(poll_until(&mut self.write_timer, since + self.deadlines.write, context));
        Poll::Ready(Err(timed_out("the client does not read")))
    }
}

fn poll_until(timer: &mut Pin<Box<Sleep>>, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
    if timer.deadline() != deadline {
        timer.as_mut().reset(deadline);
    }
    timer.as_mut().poll(context)
}

fn timed_out(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, reason)
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            return self.poll_head(context);
        }
        if buffer.filled().len() > before {
            self.note_received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check_written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    const DEADLINES: StreamDeadlines =
        StreamDeadlines { head: Duration::from_secs(10), write: Duration::from_secs(30) };

    fn pair() -> (TimedStream<DuplexStream>, DuplexStream, Arc<RequestProgress>) {
        let (own, theirs) = duplex(16);
        let progress = Arc::<RequestProgress>::default();
        (TimedStream::new(own, Arc::clone(&progress), DEADLINES), theirs, progress)
    }

    /// Reads once and returns the number of bytes, or the seconds after which the read timed out.
    async fn read(stream: &mut TimedStream<DuplexStream>) -> Result<usize, u64> {
        let started = Instant::now();
        stream.read(&mut [0; 16]).await.map_err(|error| {
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            started.elapsed().as_secs()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn silent_new_connection_times_out() {
        let (mut stream, _client, _) = pair();
        assert_eq!(read(&mut stream).await, Err(10));
    }

    #[tokio::test(start_paused = true)]
    async fn head_that_comes_slowly_times_out_and_idle_time_does_not_count() {
        let (mut stream, mut client, progress) = pair();
        client.write_all(b"GET / HTTP").await.unwrap();
        assert_eq!(read(&mut stream).await, Ok(10));
        drop(progress.begin());
        tokio::select! {
            read = read(&mut stream) => panic!("idle connection ended: {read:?}"),
            () = sleep(Duration::from_secs(60)) => {}
        }
        client.write_all(b"G").await.unwrap();
        assert_eq!(read(&mut stream).await, Ok(1));
        sleep(Duration::from_secs(4)).await;
        client.write_all(b"E").await.unwrap();
        assert_eq!(read(&mut stream).await, Ok(1), "more of the same head");
        assert_eq!(read(&mut stream).await, Err(6));
    }

    #[tokio::test(start_paused = true)]
    async fn stream_that_is_being_answered_has_no_deadline_for_reading() {
        let (mut stream, _client, progress) = pair();
        let _active = progress.begin();
        tokio::select! {
            read = read(&mut stream) => panic!("ended: {read:?}"),
            () = sleep(Duration::from_secs(600)) => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_read_times_out() {
        let (mut stream, mut client, _) = pair();
        stream.write_all(&[b'x'; 16]).await.unwrap();
        let started = Instant::now();
        // Each byte that the client reads starts the deadline again.
        let slow_reader = async {
            sleep(Duration::from_secs(20)).await;
            client.read_exact(&mut [0; 1]).await.unwrap();
            std::future::pending::<()>().await;
        };
        let written = tokio::select! {
            written = stream.write_all(b"yz") => written,
            () = slow_reader => unreachable!(),
        };
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), 50);
    }
}
