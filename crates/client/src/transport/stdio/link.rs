//! Writes to a server's stdin: a buffer that callers append to.
//!
//! A caller that finds the buffer empty writes to the pipe itself, which saves a hop. Otherwise the driver writes all
//! buffered messages at once. No caller ever waits.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use crate::engine::{Link, OutgoingMessage, SubmitError, Ticket};
use wharf_guard::{ProcessExit, register_fd};

/// Messages up to this size are copied before they are written: cheaper than a vectored write.
const MAX_COPIED_MESSAGE: usize = 16 << 10;
/// Maximum capacity of the empty buffer.
const MAX_IDLE_CAPACITY: usize = 8 << 20;

pub(super) struct StdioLink {
    out: Mutex<StdinBuffer>,
    /// Maximum buffered bytes before messages are refused.
    limit: usize,
}

struct StdinBuffer {
    /// The server's stdin. `None` once it is closed.
    pipe: Option<AsyncFd<OwnedFd>>,
    /// Bytes to be written, from `head` on.
    buffer: Vec<u8>,
    head: usize,
    /// Total bytes accepted, and total bytes written to the pipe.
    taken: u64,
    written: u64,
    /// The driver's waker.
    driver: Option<Waker>,
    /// Start of the time in which data is waiting and none can be written.
    stuck_since: Option<Instant>,
    /// Several responses arrived at once: their callers are likely to write soon, so buffer instead of writing one by
    /// one.
    gather: bool,
    deadline_moved: bool,
    exited: Option<ProcessExit>,
    /// False if the server ended without reading any of its input. Set when the link ends.
    is_input_read: bool,
    state: LinkState,
}

/// State of the link after a flush.
pub(super) struct FlushStatus {
    pub state: LinkState,
    /// Start of the time in which data is waiting and none can be written.
    pub stuck_since: Option<Instant>,
    /// A call with an earlier deadline than all others was added.
    pub deadline_moved: bool,
    /// Exit status of the server's own process, once it has ended.
    pub exited: Option<ProcessExit>,
}

/// State of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkState {
    Open,
    /// The server accepts no more input.
    Broken,
    /// The connection is closing.
    Closing,
}

impl StdioLink {
    pub fn new(stdin: OwnedFd, limit: usize) -> io::Result<Self> {
        let pipe = register_fd(stdin, Interest::WRITABLE)?;
        let out = Mutex::new(StdinBuffer {
            pipe: Some(pipe),
            buffer: Vec::new(),
            head: 0,
            taken: 0,
            written: 0,
            driver: None,
            stuck_since: None,
            gather: false,
            deadline_moved: false,
            exited: None,
            is_input_read: true,
            state: LinkState::Open,
        });
        Ok(Self { out, limit })
    }

    /// Starts to close: no more messages are accepted, and the driver ends the server.
    pub fn close(&self) {
        let waker = {
            let mut out = self.lock();
            out.state = LinkState::Closing;
            out.driver.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Writes as much as possible and registers the driver's waker. Returns the state of the link.
    pub fn poll_flush(&self, context: &mut Context<'_>, gather: bool) -> FlushStatus {
        let mut out = self.lock();
        out.gather = gather;
        match &mut out.driver {
            Some(known) => known.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        out.poll_write(context);
        FlushStatus {
            state: out.state,
            stuck_since: out.stuck_since,
            deadline_moved: std::mem::take(&mut out.deadline_moved),
            exited: out.exited,
        }
    }

    /// Informs the driver that the server's own process has ended.
    pub fn server_exited(&self, exit: ProcessExit) {
        let waker = {
            let mut out = self.lock();
            out.exited = Some(exit);
            out.driver.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Records whether the server has read any of its input, while the pipe is still open.
    pub fn record_unread_input(&self) {
        let mut out = self.lock();
        let unread = out.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe.get_ref()).ok());
        out.is_input_read = unread.is_none_or(|unread| unread < out.written);
    }

    /// Reports whether the server may have read some of its input.
    pub fn is_input_read(&self) -> bool {
        self.lock().is_input_read
    }

    /// Closes the server's stdin.
    pub fn close_input(&self) {
        let mut out = self.lock();
        out.write_now();
        out.pipe = None;
        if out.state == LinkState::Open {
            out.state = LinkState::Closing;
        }
    }

    fn lock(&self) -> MutexGuard<'_, StdinBuffer> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link for StdioLink {
    fn submit(&self, message: OutgoingMessage<'_>) -> Result<Ticket, SubmitError> {
        let (parts, length) = (message.parts, message.len());
        let (ticket, waker) = {
            let mut out = self.lock();
            match out.state {
                LinkState::Open => {}
                LinkState::Broken => return Err(SubmitError::Broken),
                LinkState::Closing => return Err(SubmitError::Closed),
            }
            let waiting = out.buffer.len() - out.head;
            // One message is always accepted if the buffer is empty: its own size is bounded elsewhere.
            if waiting > 0 && waiting + length > self.limit {
                return Err(SubmitError::Full);
            }
            let ticket = Ticket(out.taken);
            out.accept(parts, length);
            let left = out.head < out.buffer.len() || out.state != LinkState::Open;
            (ticket, if left { out.driver.take() } else { None })
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(ticket)
    }

    fn may_have_been_sent(&self, ticket: Ticket) -> bool {
        self.lock().written > ticket.0
    }

    fn wake(&self) {
        let waker = {
            let mut out = self.lock();
            out.deadline_moved = true;
            out.driver.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl StdinBuffer {
    /// Accepts a message: writes it to the pipe if the buffer is empty, otherwise appends it to the buffer.
    fn accept(&mut self, parts: &[&[u8]], length: usize) {
        self.taken += length as u64;
        let nothing_waits = self.head == self.buffer.len() && !self.gather;
        let mut done = if nothing_waits && length > MAX_COPIED_MESSAGE { self.write_parts(parts) } else { 0 };
        self.make_room(length - done);
        for part in parts {
            let skipped = done.min(part.len());
            done -= skipped;
            self.buffer.extend_from_slice(&part[skipped..]);
        }
        if nothing_waits {
            self.write_now();
        }
    }

    /// Moves the waiting bytes to the front if the written part before them is larger, so that the buffer does not grow
    /// forever under a queue that is never quite empty.
    fn make_room(&mut self, length: usize) {
        if self.head > self.buffer.len() / 2 && self.buffer.capacity() - self.buffer.len() < length {
            self.buffer.copy_within(self.head.., 0);
            self.buffer.truncate(self.buffer.len() - self.head);
            self.head = 0;
        }
    }

    fn write_parts(&mut self, parts: &[&[u8]]) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let mut slices = [IoSlice::new(&[]); 24];
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
        }
        let result = rustix::io::writev(pipe.get_ref(), &slices[..parts.len().min(slices.len())]);
        self.record_write(result).unwrap_or(0)
    }

    /// Writes from the buffer until it is empty or the pipe is full.
    fn write_now(&mut self) {
        while self.head < self.buffer.len() {
            let Some(pipe) = &self.pipe else { return };
            let result = rustix::io::write(pipe.get_ref(), &self.buffer[self.head..]);
            match self.record_write(result) {
                Some(count) => self.head += count,
                None => return,
            }
        }
        self.buffer.clear();
        self.head = 0;
        if self.buffer.capacity() > MAX_IDLE_CAPACITY {
            self.buffer.shrink_to(MAX_COPIED_MESSAGE);
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) {
        loop {
            self.write_now();
            if self.head == self.buffer.len() || self.state != LinkState::Open {
                self.stuck_since = None;
                return;
            }
            let Some(pipe) = &self.pipe else { return };
            match pipe.poll_write_ready(context) {
                Poll::Ready(Ok(mut ready)) => ready.clear_ready(),
                Poll::Ready(Err(_)) => self.state = LinkState::Broken,
                Poll::Pending => {
                    self.stuck_since.get_or_insert_with(Instant::now);
                    return;
                }
            }
        }
    }

    /// Counts written bytes. Returns `None` if the pipe is full or broken.
    fn record_write(&mut self, result: Result<usize, Errno>) -> Option<usize> {
        match result {
            Ok(count) => {
                self.written += count as u64;
                self.stuck_since = None;
                Some(count)
            }
            Err(Errno::INTR) => Some(0),
            Err(Errno::AGAIN) => None,
            Err(_) => {
                self.state = LinkState::Broken;
                None
            }
        }
    }
}
