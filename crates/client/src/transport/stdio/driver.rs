//! The task that reads a server's stdout, flushes its stdin and owns its process.
//!
//! One future polls all events in order of priority: stdout, stdin, process, deadlines. Reading never waits for
//! writing, and shutdown waits for neither.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use wharf_wire::Scanner;

use super::lines::{LineExcess, LineFrame, LineSplitter};
use super::link::{LinkState, StdioLink};
use super::stderr::{StderrBuffer, StderrReader};
use crate::engine::{Engine, NotMcpPeer};
use crate::error::{DisconnectCause, DisconnectReport};
use crate::limits::Limits;
use crate::services::BoxedFuture;
use wharf_guard::{LaunchedServer, ProcessExit, register_fd};

/// Maximum reads in one poll, and maximum duration of a poll.
const MAX_READS_PER_POLL: usize = 16;
const MAX_POLL_TIME: Duration = Duration::from_micros(250);
/// Messages of one read between two checks of the rate.
const MAX_MESSAGES_PER_POLL: usize = 64;
/// Lines of stderr included in an error.
const MAX_STDERR_LINES: usize = 20;

pub(super) struct StdioDriver {
    engine: Arc<Engine>,
    link: Arc<StdioLink>,
    stdout: AsyncFd<OwnedFd>,
    frames: LineSplitter,
    process: LaunchedServer,
    exited: Option<ProcessExit>,
    stdout_ended: bool,
    /// The cause of the shutdown, and the time until which stdout is still read.
    ending: Option<(DisconnectCause, Instant)>,
    clock: Pin<Box<Sleep>>,
    /// Several responses arrived at once, so several calls are likely to follow.
    burst: bool,
    wakers: Vec<Waker>,
    /// A large message being processed, the scan of an oversized line, a pause or the wait for a turn. Stdout is not read
    /// meanwhile.
    read_blocked_on: Option<BoxedFuture<Result<Option<Scanner>, NotMcpPeer>>>,
    limits: Limits,
}

impl StdioDriver {
    pub fn new(
        engine: Arc<Engine>,
        link: Arc<StdioLink>,
        stdout: OwnedFd,
        process: LaunchedServer,
        limits: Limits,
    ) -> io::Result<Self> {
        Ok(Self {
            stdout: register_fd(stdout, Interest::READABLE)?,
            frames: LineSplitter::new(&limits, engine.budget().clone()),
            engine,
            link,
            process,
            exited: None,
            stdout_ended: false,
            ending: None,
            clock: Box::pin(tokio::time::sleep(Duration::ZERO)),
            burst: false,
            wakers: Vec::new(),
            read_blocked_on: None,
            limits,
        })
    }

    /// Drives the link to its end, then shuts the server down, and returns its exit status. Dropping the future ends
    /// the server at once.
    pub async fn run(mut self, mut stderr: StderrReader, lines: Arc<Mutex<StderrBuffer>>) -> ProcessExit {
        let cause = std::future::poll_fn(|context| self.poll(context)).await;
        if self.exited.is_some() {
            stderr.finish(self.limits.exit_wait).await;
        }
        let (shown, is_logged) = {
            let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            (lines.tail(MAX_STDERR_LINES), lines.is_logged())
        };
        let hint = if cause == DisconnectCause::Closed { None } else { self.engine.last_anomaly() };
        self.link.record_whether_input_was_read();
        self.engine.close(DisconnectReport { cause, exit: self.exited, stderr: shown, hint });
        let (mut exit, exit_wait) = (self.process.exit(), self.limits.exit_wait);
        self.stop().await;
        if is_logged {
            // The last stderr lines belong before the log line about the exit.
            stderr.finish(exit_wait).await;
        }
        wait_for_exit(&mut exit).await
    }

    /// Closes the server's stdin, waits, sends SIGTERM, waits, sends SIGKILL; then waits until all processes have
    /// ended.
    async fn stop(self) {
        let Self { link, stdout, process, limits, exited: known, mut frames, .. } = self;
        link.close_stdin();
        if known.is_none() {
            let mut exit = process.exit();
            let escalation = async {
                if tokio::time::timeout(limits.stop_grace, wait_for_exit(&mut exit)).await.is_ok() {
                    return;
                }
                process.terminate();
                if tokio::time::timeout(limits.term_grace, wait_for_exit(&mut exit)).await.is_err() {
                    process.kill();
                }
            };
            tokio::select! {
                () = escalation => {}
                // Keep reading stdout, so that the server can exit normally instead of with a broken pipe.
                () = discard_stdout(&stdout, &mut frames) => unreachable!("reading on never ends"),
            }
        }
        drop(stdout);
        process.wait_until_gone().await;
    }

    /// Ready when the link has ended.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<DisconnectCause> {
        if let Poll::Ready(cause) = self.poll_read(context) {
            return Poll::Ready(cause);
        }
        let flushed = self.link.poll_flush(context, self.burst);
        match flushed.state {
            LinkState::Closing => return Poll::Ready(DisconnectCause::Closed),
            LinkState::Broken => self.end_soon(DisconnectCause::ClosedInput, self.limits.drain),
            LinkState::Open => {}
        }
        if self.exited.is_none() && flushed.exited.is_some() {
            self.exited = flushed.exited;
            self.end_soon(DisconnectCause::Exited, self.limits.drain);
        }
        if self.exited.is_some() && self.stdout_ended {
            return Poll::Ready(DisconnectCause::Exited);
        }
        let stuck = flushed.stuck_since.map(|since| since + self.limits.write_stall);
        // The common case: no deadline has moved up and none has passed.
        if self.ending.is_none() && stuck.is_none() && !flushed.deadline_moved && !self.clock.is_elapsed() {
            return Poll::Pending;
        }
        self.poll_clock(context, stuck)
    }

    /// Reads and delivers messages. All responses of one poll are delivered before any caller is woken.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<DisconnectCause> {
        if self.stdout_ended {
            return Poll::Pending;
        }
        let mut end = ready!(self.poll_delivered(context));
        let (mut reads, mut began) = (0, None);
        while end.is_pending() && self.read_blocked_on.is_none() {
            if self.engine.budget().throttle().required_pause().is_some() {
                self.wait_for_turn();
                break;
            }
            // One read is the common case and needs no clock.
            if reads == MAX_READS_PER_POLL
                || (reads > 0 && began.get_or_insert_with(Instant::now).elapsed() > MAX_POLL_TIME)
            {
                if self.engine.budget().throttle().is_over_rate() {
                    self.wait_for_turn();
                } else {
                    // Woken after the runtime has polled all other ready tasks.
                    let _ = pin!(tokio::task::yield_now()).poll(context);
                }
                break;
            }
            reads += 1;
            let Poll::Ready(read) = self.poll_read_once(context) else { break };
            end = match read {
                Ok(0) => {
                    self.stdout_ended = true;
                    self.on_stdout_end();
                    break;
                }
                Ok(_) => self.deliver(),
                Err(error) => Poll::Ready(DisconnectCause::Unreadable(error.kind())),
            };
        }
        if self.read_blocked_on.is_some() {
            // Poll it at once, so that it registers this task's waker.
            context.waker().wake_by_ref();
        }
        if !self.wakers.is_empty() {
            self.burst = self.wakers.len() > 1;
        }
        self.wakers.drain(..).for_each(Waker::wake);
        end
    }

    /// Ready when no large message is being processed and there is no pause; then with the result of
    /// [`Self::deliver`] for the lines that followed.
    fn poll_delivered(&mut self, context: &mut Context<'_>) -> Poll<Poll<DisconnectCause>> {
        let Some(pending) = &mut self.read_blocked_on else { return Poll::Ready(Poll::Pending) };
        let delivered = ready!(pending.as_mut().poll(context));
        self.read_blocked_on = None;
        Poll::Ready(match delivered {
            Ok(scanner) => {
                scanner.into_iter().for_each(|scanner| self.frames.return_scanner(scanner));
                self.deliver()
            }
            Err(peer) => Poll::Ready(DisconnectCause::NotMcp(peer.0)),
        })
    }

    fn poll_read_once(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = match ready!(self.stdout.poll_read_ready(context)) {
                Ok(ready) => ready,
                Err(error) => return Poll::Ready(Err(error)),
            };
            let space = self.frames.read_space();
            match rustix::io::read(self.stdout.get_ref(), &mut *space) {
                Ok(count) => {
                    // A short read has emptied the pipe: another read would return EAGAIN.
                    if count < space.len() {
                        ready.clear_ready();
                    }
                    self.frames.record_read(count);
                    return Poll::Ready(Ok(count));
                }
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Pauses until it is this reader's turn.
    fn wait_for_turn(&mut self) {
        let budget = self.engine.budget().clone();
        self.read_blocked_on = Some(Box::pin(async move {
            budget.wait_for_turn().await;
            Ok(None)
        }));
    }

    fn deliver(&mut self) -> Poll<DisconnectCause> {
        if self.frames.looks_like_utf16() {
            return Poll::Ready(DisconnectCause::NotMcp("output is UTF-16, MCP requires UTF-8"));
        }
        let mut messages = 0usize;
        while let Some(frame) = self.frames.next() {
            messages += 1;
            match frame {
                LineFrame::Line(line) => {
                    if let Err(peer) = self.engine.deliver(line, &mut self.wakers) {
                        return Poll::Ready(DisconnectCause::NotMcp(peer.0));
                    }
                }
                LineFrame::Large(message) => {
                    let engine = Arc::clone(&self.engine);
                    self.read_blocked_on =
                        Some(Box::pin(async move { engine.deliver_by_size(message).await.map(|()| None) }));
                    return Poll::Pending;
                }
                LineFrame::Oversized(partial, LineExcess::Message) => {
                    self.engine.deliver_oversized(&partial, &mut self.wakers);
                }
                LineFrame::Oversized(partial, LineExcess::Budget(exceeded)) => {
                    self.engine.deliver_discarded(&partial, exceeded, &mut self.wakers);
                }
                LineFrame::Endless => return Poll::Ready(DisconnectCause::EndlessLine),
            }
            if messages.is_multiple_of(MAX_MESSAGES_PER_POLL) && self.engine.budget().throttle().is_over_rate() {
                self.wait_for_turn();
                break;
            }
        }
        if let Some((mut scanner, unscanned)) = self.frames.take_unscanned() {
            let (budget, bytes) = (self.engine.budget().clone(), unscanned.len());
            let scan = move || {
                scanner.push(&unscanned);
                scanner
            };
            self.read_blocked_on = Some(Box::pin(async move { Ok(budget.offload_if_large(bytes, scan).await) }));
        }
        Poll::Pending
    }

    /// Handles the end of stdout. Waits briefly for the exit status. An unterminated line is not a message.
    fn on_stdout_end(&mut self) {
        if !self.frames.unfinished_line().is_empty() {
            self.engine
                .counters
                .count_and_warn(crate::counters::CounterKind::Broken, "output ended in the middle of a line");
        }
        self.end_soon(DisconnectCause::ClosedOutput, self.limits.exit_wait);
    }

    fn end_soon(&mut self, cause: DisconnectCause, after: Duration) {
        let until = Instant::now() + after;
        match &mut self.ending {
            // The exit explains all other symptoms.
            Some((known, _)) if cause == DisconnectCause::Exited => *known = cause,
            Some(_) => {}
            none => *none = Some((cause, until)),
        }
    }

    fn poll_clock(&mut self, context: &mut Context<'_>, stuck: Option<Instant>) -> Poll<DisconnectCause> {
        loop {
            let now = Instant::now();
            if let Some((cause, until)) = &self.ending
                && now >= *until
            {
                return Poll::Ready(cause.clone());
            }
            if stuck.is_some_and(|stuck| now >= stuck) {
                return Poll::Ready(DisconnectCause::StoppedReading(self.limits.write_stall));
            }
            let calls = self.engine.next_deadline();
            if now >= calls {
                self.engine.expire(now, &mut self.wakers);
                self.wakers.drain(..).for_each(Waker::wake);
                continue;
            }
            let mut due = calls;
            if let Some((_, until)) = self.ending {
                due = due.min(until);
            }
            if let Some(stuck) = stuck {
                due = due.min(stuck);
            }
            // Resetting a timer is expensive; one that fires too early is not.
            if due < self.clock.deadline() || self.clock.is_elapsed() {
                self.clock.as_mut().reset(due);
            }
            if self.clock.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// Waits until the server's own process has ended.
pub(super) async fn wait_for_exit(exit: &mut watch::Receiver<Option<ProcessExit>>) -> ProcessExit {
    match exit.wait_for(Option::is_some).await {
        Ok(exit) => exit.unwrap_or(ProcessExit::Unknown),
        Err(_) => ProcessExit::Unknown,
    }
}

/// Reads and discards stdout, forever.
async fn discard_stdout(stdout: &AsyncFd<OwnedFd>, frames: &mut LineSplitter) {
    let buffer = frames.read_space();
    loop {
        let Ok(mut ready) = stdout.readable().await else { return std::future::pending().await };
        let read = ready.try_io(|stdout| Ok(rustix::io::read(stdout.get_ref(), &mut *buffer)?));
        if matches!(read, Ok(Ok(0) | Err(_))) {
            return std::future::pending().await;
        }
    }
}
