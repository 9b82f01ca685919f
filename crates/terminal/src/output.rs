//! Writes stdout and stderr on one thread, so that an unread pipe or a stopped terminal blocks only that thread.
//!
//! Both streams share one queue, which keeps the order of their output. Data on stdout is never dropped: its writer
//! waits for room in the queue. Messages on stderr never wait: those that exceed the queue are dropped and counted.

mod stream;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

pub use stream::{OutputStream, write_all, write_within};

/// Maximum bytes of log lines in the queue.
const MAX_QUEUED_LOG_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes in the queue for messages, and for data that does not wait.
const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// Maximum bytes of one system call, after which progress is visible to waiting threads.
const MAX_WRITE_BYTES: usize = 16 * 1024;
/// Time after which a stream that accepts nothing is stalled. Data is queued from then on.
const STALL_TIMEOUT: Duration = Duration::from_millis(50);

/// The queue of both streams and its thread, which starts with the first write. Dropping it ends the thread after the
/// queued writes.
#[derive(Default)]
pub struct OutputQueue(Arc<SharedQueue>);

#[derive(Default)]
struct SharedQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// The same event for async waits.
    progress: Notify,
}

#[derive(Default)]
struct QueueState {
    writer: WriterState,
    chunks: VecDeque<OutputChunk>,
    /// Bytes that are not written yet, including those of the current write.
    bytes: usize,
    /// Number of dropped log lines and messages.
    dropped: usize,
    /// The last data was not accepted in time.
    is_stalled: bool,
    /// Data no longer waits for room.
    is_abandoned: bool,
    /// Error number of a failed write to stdout. Later data is discarded.
    failed: Option<i32>,
    is_closed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum WriterState {
    #[default]
    NotStarted,
    Running,
    /// The thread cannot be started: the caller writes itself.
    Unavailable,
}

/// Importance of a text on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPriority {
    Log,
    Message,
}

struct OutputChunk {
    stream: OutputStream,
    bytes: Vec<u8>,
}

impl OutputQueue {
    /// Writes data to stdout. Returns when the data is written, or after a short time if the stream is stalled. Waits
    /// for room if too much is queued.
    ///
    /// # Errors
    ///
    /// Fails if stdout cannot be written to, or if [`OutputQueue::abandon`] was called while it waited.
    pub fn write_data(&self, bytes: Vec<u8>) -> io::Result<()> {
        let mut state = self.0.lock();
        if !self.is_running(&mut state) {
            // `abandon` takes the lock, also while this write blocks.
            drop(state);
            return write_all(OutputStream::Stdout, &bytes);
        }
        while state.bytes > MAX_QUEUED_BYTES && state.failed.is_none() {
            if state.is_abandoned {
                return Err(io::ErrorKind::Interrupted.into());
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.error()?;
        if bytes.is_empty() {
            return Ok(());
        }
        state.push(OutputStream::Stdout, bytes);
        self.0.changed.notify_all();
        let deadline = Instant::now() + STALL_TIMEOUT;
        while !state.is_drained() && !state.is_stalled && state.failed.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            state.is_stalled = left.is_zero();
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.error()
    }

    /// Writes a text to stderr. Never blocks: what exceeds the queue is dropped.
    pub fn write_text(&self, bytes: Vec<u8>, priority: TextPriority) {
        let mut state = self.0.lock();
        if !self.is_running(&mut state) {
            drop(state);
            // A failed write to stderr cannot be reported.
            return drop(write_all(OutputStream::Stderr, &bytes));
        }
        let max = match priority {
            TextPriority::Log => MAX_QUEUED_LOG_BYTES,
            TextPriority::Message => MAX_QUEUED_BYTES,
        };
        if state.bytes > max {
            state.dropped += 1;
            return;
        }
        state.push(OutputStream::Stderr, bytes);
        self.0.changed.notify_all();
    }

    /// Waits until everything is written, or until nothing is written for the time limit. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Fails if data could not be written to stdout.
    pub async fn drain(&self, limit: Option<Duration>) -> io::Result<()> {
        loop {
            let progress = self.0.progress.notified();
            {
                let state = self.0.lock();
                if state.is_drained() {
                    return state.error();
                }
            }
            match limit {
                None => progress.await,
                Some(limit) if tokio::time::timeout(limit, progress).await.is_err() => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Waits until everything is written, at most for the time limit.
    pub fn drain_blocking(&self, limit: Duration) -> io::Result<()> {
        let wait = self.0.changed.wait_timeout_while(self.0.lock(), limit, |state| !state.is_drained());
        wait.unwrap_or_else(PoisonError::into_inner).0.error()
    }

    /// Makes data that waits for room fail, now and later. For the end of the program.
    pub fn abandon(&self) {
        self.0.lock().is_abandoned = true;
        self.0.changed.notify_all();
    }

    /// Starts the thread if necessary. Returns `false` if that is impossible.
    fn is_running(&self, state: &mut QueueState) -> bool {
        if state.writer == WriterState::NotStarted {
            let shared = Arc::clone(&self.0);
            state.writer = match wharf_threads::start_thread("wharf-output", move || shared.write_chunks()) {
                Ok(()) => WriterState::Running,
                Err(_) => WriterState::Unavailable,
            };
        }
        state.writer == WriterState::Running
    }
}

impl Drop for OutputQueue {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes chunks until the queue is closed.
    fn write_chunks(&self) {
        while let Some(OutputChunk { stream, bytes }) = self.next_chunk() {
            for piece in bytes.chunks(MAX_WRITE_BYTES) {
                let written = write_all(stream, piece);
                let mut state = self.lock();
                state.bytes -= piece.len();
                state.is_stalled = false;
                let failure = written.err().filter(|_| stream == OutputStream::Stdout);
                if let Some(error) = &failure {
                    state.fail(error);
                }
                drop(state);
                self.changed.notify_all();
                self.progress.notify_waiters();
                if failure.is_some() {
                    break;
                }
            }
        }
    }

    /// Waits for the next chunk that can be written. Returns `None` once the queue is closed and empty.
    fn next_chunk(&self) -> Option<OutputChunk> {
        let mut state = self.lock();
        loop {
            match state.pop() {
                Some(chunk) => return Some(chunk),
                None if state.is_closed => return None,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl QueueState {
    fn push(&mut self, stream: OutputStream, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.chunks.push_back(OutputChunk { stream, bytes });
    }

    /// Records that stdout cannot be written to. Discards the data in the queue and the rest of the current chunk.
    fn fail(&mut self, error: &io::Error) {
        self.failed.get_or_insert(error.raw_os_error().unwrap_or_default());
        self.chunks.retain(|chunk| chunk.stream == OutputStream::Stderr);
        self.bytes = self.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    }

    /// Takes the next chunk. After the last one, reports dropped texts.
    fn pop(&mut self) -> Option<OutputChunk> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Some(chunk);
        }
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let note = format!("({dropped} more lines dropped: stderr was not read)\n").into_bytes();
            self.bytes += note.len();
            return Some(OutputChunk { stream: OutputStream::Stderr, bytes: note });
        }
        None
    }

    fn is_drained(&self) -> bool {
        self.bytes == 0 && self.chunks.is_empty()
    }

    fn error(&self) -> io::Result<()> {
        self.failed.map_or(Ok(()), |number| Err(io::Error::from_raw_os_error(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_write_discards_queued_data_at_once() {
        let mut state = QueueState::default();
        state.push(OutputStream::Stdout, vec![b'a'; 10]);
        state.push(OutputStream::Stderr, vec![b'b'; 3]);
        state.push(OutputStream::Stdout, vec![b'c'; 20]);
        let current = state.pop().unwrap();
        state.bytes -= 4;
        state.fail(&io::Error::from_raw_os_error(32));
        assert_eq!((current.bytes.len(), state.bytes, state.chunks.len()), (10, 3, 1));
        assert_eq!(state.error().unwrap_err().raw_os_error(), Some(32));
    }
}
