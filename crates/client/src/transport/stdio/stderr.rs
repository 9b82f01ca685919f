//! Reads a server's stderr, so that the server never blocks, and holds the last lines for diagnosis.
//!
//! Secrets are removed before a line is stored or passed on.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::Interest;
use tokio::task::AbortHandle;
use wharf_spec::Redactor;

use crate::budget::ServerBudget;
use crate::limits::Limits;
use crate::process_log::{ProcessNote, ServerProcessLog};
use crate::throttle::ReceiveThrottle;
use wharf_guard::register_fd;

/// Maximum reads and maximum lines before other tasks run.
const MAX_READS_PER_TURN: usize = 8;
const MAX_LINES_PER_TURN: usize = 64;
/// Maximum number of lines held, however short.
const MAX_LINES: usize = 4096;

/// The last lines, each cut and all together bounded.
pub(super) struct StderrBuffer {
    lines: VecDeque<String>,
    current: Vec<u8>,
    /// The current line was cut.
    is_cut: bool,
    kept: usize,
    line_limit: usize,
    limit: usize,
    redactor: Arc<Redactor>,
    log: Option<ServerProcessLog>,
}

impl StderrBuffer {
    pub fn new(limits: &Limits, redactor: Arc<Redactor>, log: Option<ServerProcessLog>) -> Self {
        Self {
            lines: VecDeque::new(),
            current: Vec::new(),
            is_cut: false,
            kept: 0,
            line_limit: limits.stderr_line,
            limit: limits.stderr_kept,
            redactor,
            log,
        }
    }

    /// Reports whether the lines are logged.
    pub fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// Adds up to a maximum number of lines. Returns the remaining bytes.
    fn push<'a>(&mut self, mut bytes: &'a [u8], pace: &ReceiveThrottle) -> &'a [u8] {
        for _ in 0..MAX_LINES_PER_TURN {
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                self.extend(bytes);
                pace.record(bytes.len());
                return &[];
            };
            self.extend(&bytes[..end]);
            self.end_line();
            pace.record(end);
            bytes = &bytes[end + 1..];
        }
        bytes
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.line_limit.saturating_sub(self.current.len()).min(bytes.len());
        self.is_cut |= room < bytes.len();
        self.current.extend_from_slice(&bytes[..room]);
    }

    fn end_line(&mut self) {
        let text = self.current_text();
        let line =
            if self.is_cut { self.redactor.redact_truncated(&text) } else { self.redactor.redact(&text) }.into_owned();
        self.current.clear();
        self.is_cut = false;
        if let Some(log) = &self.log {
            log.record(ProcessNote::Wrote(&line));
        }
        self.kept += line.len() + 1;
        self.lines.push_back(line);
        while self.kept > self.limit || self.lines.len() > MAX_LINES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.kept -= oldest.len() + 1;
        }
    }

    /// Ends the stream: an unterminated line is still a line.
    fn finish(&mut self) {
        if !self.current.is_empty() {
            self.end_line();
        }
    }

    /// Returns the current line as text, unredacted.
    fn current_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.current.trim_ascii_end())
    }

    /// Returns the last lines that are not blank, oldest first.
    pub fn tail(&self, count: usize) -> Vec<String> {
        // The line may be incomplete.
        let current = self.redactor.redact_truncated(&self.current_text()).into_owned();
        let all = self.lines.iter().chain([&current]);
        let mut tail: Vec<String> =
            all.rev().map(|line| line.trim()).filter(|line| !line.is_empty()).take(count).map(str::to_owned).collect();
        tail.reverse();
        tail
    }
}

/// Starts a task that reads until the end of the stream or until the returned reader is dropped.
pub(super) fn spawn_reader(
    stderr: OwnedFd,
    ring: Arc<Mutex<StderrBuffer>>,
    budget: ServerBudget,
) -> io::Result<StderrReader> {
    let stderr = register_fd(stderr, Interest::READABLE)?;
    let task = tokio::spawn(async move {
        let locked = || ring.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = vec![0; 32 << 10];
        let mut reads = 0usize;
        loop {
            reads += 1;
            if reads.is_multiple_of(MAX_READS_PER_TURN) {
                budget.wait_for_turn().await;
            }
            let Ok(mut ready) = stderr.readable().await else { return locked().finish() };
            match ready.try_io(|stderr| Ok(rustix::io::read(stderr.get_ref(), &mut buffer)?)) {
                Ok(Ok(0)) => return locked().finish(),
                Ok(Ok(count)) => {
                    let mut rest = &buffer[..count];
                    while !rest.is_empty() {
                        rest = locked().push(rest, budget.throttle());
                        if !rest.is_empty() || budget.throttle().required_pause().is_some() {
                            budget.wait_for_turn().await;
                        }
                    }
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(_)) => return locked().finish(),
                Err(_would_block) => {}
            }
        }
    });
    Ok(StderrReader { abort: task.abort_handle(), task })
}

/// The task that reads stderr. Dropping it ends the task.
pub(super) struct StderrReader {
    abort: AbortHandle,
    task: tokio::task::JoinHandle<()>,
}

impl StderrReader {
    /// Waits for the end of stderr, up to a limit: a grandchild may hold it open.
    pub async fn finish(&mut self, at_most: std::time::Duration) {
        if !self.task.is_finished() {
            let _ = tokio::time::timeout(at_most, &mut self.task).await;
        }
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throttle::SharedThrottle;

    fn ring(line_limit: usize, limit: usize, secret: &str) -> StderrBuffer {
        let mut limits = Limits::default();
        (limits.stderr_line, limits.stderr_kept) = (line_limit, limit);
        let mut redactor = Redactor::default();
        redactor.add(secret);
        StderrBuffer::new(&limits, Arc::new(redactor), None)
    }

    fn push(ring: &mut StderrBuffer, mut bytes: &[u8]) {
        let pace = ReceiveThrottle::new(Arc::new(SharedThrottle::new()));
        while !bytes.is_empty() {
            bytes = ring.push(bytes, &pace);
        }
    }

    #[test]
    fn ring_keeps_last_lines_within_its_limit() {
        let mut ring = ring(8, 16, "");
        push(&mut ring, b"one\ntwo\n\nthree is long\nfour");
        assert_eq!(ring.tail(9), ["two", "three is", "four"]);
        assert_eq!(ring.tail(1), ["four"]);
        push(&mut ring, &[b'x'; 100_000]);
        assert!(ring.current.len() <= 8 && ring.kept <= 16);
    }

    #[test]
    fn empty_lines_are_limited_by_count() {
        let mut ring = ring(64 << 10, 256 << 10, "");
        push(&mut ring, &[b'\n'; 300_000]);
        assert_eq!(ring.lines.len(), MAX_LINES);
    }

    #[test]
    fn secrets_are_redacted_even_when_split() {
        let mut ring = ring(16, 100, "hush-hush");
        push(&mut ring, b"a hush-hush b\n12345678 hush-h");
        assert_eq!(ring.tail(9), ["a *** b", "12345678 ***"]);
        push(&mut ring, b"ush\nsay: hush-hush");
        assert_eq!(ring.tail(9), ["a *** b", "12345678 ***", "say: ***"]);
        assert!(ring.lines.iter().all(|line| !line.contains("hush")));
    }
}
