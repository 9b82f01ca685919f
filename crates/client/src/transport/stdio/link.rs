//! Writes to a server's stdin: a buffer that callers append to.
//!
//! If no burst is expected, a caller that finds the buffer empty writes to the pipe itself, which saves a hop. The
//! driver writes everything else, all buffered messages at once. No caller ever waits.

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
    state: Mutex<StdioLinkState>,
    /// Maximum buffered bytes before messages are refused.
    limit: usize,
}

/// The buffer of messages for the server, and the state that the driver reads with every flush.
struct StdioLinkState {
    /// The server's stdin. `None` once it is closed.
    stdin: Option<AsyncFd<OwnedFd>>,
    /// Bytes to be written, from `head` on.
    buffer: Vec<u8>,
    head: usize,
    /// Total bytes accepted, and total bytes written to the pipe.
    accepted: u64,
    written: u64,
    /// The driver's waker.
    driver: Option<Waker>,
    /// Start of the time in which data is waiting and none can be written.
    stuck_since: Option<Instant>,
    /// Several responses arrived at once: their callers are likely to write soon, so buffer instead of writing one by
    /// one.
    burst: bool,
    deadline_moved: bool,
    exited: Option<ProcessExit>,
    /// False if the server ended without reading any of its input. Set when the link ends.
    has_read_input: bool,
    state: LinkState,
}

/// State of the link after a flush.
pub(super) struct FlushStatus {
    pub state: LinkState,
    /// Start of the time in which data is waiting and none can be written.
    pub stuck_since: Option<Instant>,
    /// The deadlines must be checked again: a call with an earlier deadline was added, or a pause has ended.
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
        let stdin = register_fd(stdin, Interest::WRITABLE)?;
        let state = Mutex::new(StdioLinkState {
            stdin: Some(stdin),
            buffer: Vec::new(),
            head: 0,
            accepted: 0,
            written: 0,
            driver: None,
            stuck_since: None,
            burst: false,
            deadline_moved: false,
            exited: None,
            has_read_input: true,
            state: LinkState::Open,
        });
        Ok(Self { state, limit })
    }

    /// Starts to close: no more messages are accepted, and the driver ends the server.
    pub fn close(&self) {
        let waker = {
            let mut link = self.lock();
            link.state = LinkState::Closing;
            link.driver.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Writes as much as possible and registers the driver's waker. Returns the state of the link.
    pub fn poll_flush(&self, context: &mut Context<'_>, burst: bool) -> FlushStatus {
        let mut link = self.lock();
        link.burst = burst;
        match &mut link.driver {
            Some(known) => known.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        link.poll_write(context);
        FlushStatus {
            state: link.state,
            stuck_since: link.stuck_since,
            deadline_moved: std::mem::take(&mut link.deadline_moved),
            exited: link.exited,
        }
    }

    /// Informs the driver that the server's own process has ended.
    pub fn server_exited(&self, exit: ProcessExit) {
        let waker = {
            let mut link = self.lock();
            link.exited = Some(exit);
            link.driver.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Records whether the server has read any of its input, while the pipe is still open.
    pub fn record_whether_input_was_read(&self) {
        let mut link = self.lock();
        link.has_read_input = link.unread_in_pipe().is_none_or(|unread| unread < link.written);
    }

    /// Reports whether messages wait in the buffer or in the pipe.
    pub fn has_unread_input(&self) -> bool {
        let link = self.lock();
        link.head < link.buffer.len() || link.unread_in_pipe().is_some_and(|unread| unread > 0)
    }

    /// Reports whether the server may have read some of its input.
    pub fn has_read_input(&self) -> bool {
        self.lock().has_read_input
    }

    /// Closes the server's stdin.
    pub fn close_stdin(&self) {
        let mut link = self.lock();
        link.write_now();
        link.stdin = None;
        if link.state == LinkState::Open {
            link.state = LinkState::Closing;
        }
    }

    fn lock(&self) -> MutexGuard<'_, StdioLinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link for StdioLink {
    fn submit(&self, message: OutgoingMessage<'_>) -> Result<Ticket, SubmitError> {
        let (parts, length) = (message.parts, message.len());
        let (ticket, waker) = {
            let mut link = self.lock();
            match link.state {
                LinkState::Open => {}
                LinkState::Broken => return Err(SubmitError::Broken),
                LinkState::Closing => return Err(SubmitError::Closed),
            }
            let waiting = link.buffer.len() - link.head;
            // One message is always accepted if the buffer is empty: its own size is bounded elsewhere.
            if waiting > 0 && waiting + length > self.limit {
                return Err(SubmitError::Full);
            }
            let ticket = Ticket(link.accepted);
            link.accept(parts, length);
            let needs_driver = link.head < link.buffer.len() || link.state != LinkState::Open;
            (ticket, if needs_driver { link.driver.take() } else { None })
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(ticket)
    }

    fn may_have_been_sent(&self, ticket: Ticket) -> bool {
        self.lock().written > ticket.0
    }

    fn wake(&self) {
        let waker = {
            let mut link = self.lock();
            link.deadline_moved = true;
            link.driver.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl StdioLinkState {
    /// Returns the bytes in the pipe that the server has not read, if the pipe is open.
    fn unread_in_pipe(&self) -> Option<u64> {
        self.stdin.as_ref().and_then(|stdin| rustix::io::ioctl_fionread(stdin.get_ref()).ok())
    }

    /// Accepts a message. If the buffer is empty and no burst is expected, writes as much as the pipe takes. The rest
    /// stays in the buffer for the driver.
    fn accept(&mut self, parts: &[&[u8]], length: usize) {
        self.accepted += length as u64;
        let writes_now = self.head == self.buffer.len() && !self.burst;
        let mut done = if writes_now && length > MAX_COPIED_MESSAGE { self.write_parts(parts) } else { 0 };
        self.make_room(length - done);
        for part in parts {
            let skipped = done.min(part.len());
            done -= skipped;
            self.buffer.extend_from_slice(&part[skipped..]);
        }
        if writes_now {
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
        let Some(stdin) = &self.stdin else { return 0 };
        let mut slices = [IoSlice::new(&[]); 24];
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
        }
        let result = rustix::io::writev(stdin.get_ref(), &slices[..parts.len().min(slices.len())]);
        self.record_write(result).unwrap_or(0)
    }

    /// Writes from the buffer until it is empty or the pipe is full.
    fn write_now(&mut self) {
        while self.head < self.buffer.len() {
            let Some(stdin) = &self.stdin else { return };
            let result = rustix::io::write(stdin.get_ref(), &self.buffer[self.head..]);
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
            let Some(stdin) = &self.stdin else { return };
            match stdin.poll_write_ready(context) {
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
