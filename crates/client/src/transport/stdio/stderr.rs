//! What a server writes to stderr: always read, so that it never blocks; kept within a bound, for diagnosis.
//!
//! Secrets are taken out before a line is kept or handed on, so that nobody downstream ever has them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::Interest;
use tokio::task::AbortHandle;
use wharf_spec::Redactor;

use crate::guard::watched;
use crate::limits::Limits;
use crate::process_log::{Logging, ProcessNote};

/// The last lines, each cut and all together bounded.
pub(super) struct Ring {
    lines: VecDeque<String>,
    current: Vec<u8>,
    /// The current line was longer than what is kept of it.
    is_cut: bool,
    kept: usize,
    line_limit: usize,
    limit: usize,
    redactor: Arc<Redactor>,
    log: Option<Logging>,
}

impl Ring {
    pub fn new(limits: &Limits, redactor: Arc<Redactor>, log: Option<Logging>) -> Self {
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

    /// Whether somebody keeps a log of the lines.
    pub fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.line_limit.saturating_sub(self.current.len()).min(bytes.len());
        self.is_cut |= room < bytes.len();
        self.current.extend_from_slice(&bytes[..room]);
    }

    fn end_line(&mut self) {
        let text = self.text();
        let line = if self.is_cut { self.redactor.redact_cut(&text) } else { self.redactor.redact(&text) }.into_owned();
        self.current.clear();
        self.is_cut = false;
        if let Some(log) = &self.log {
            log.note(ProcessNote::Wrote(&line));
        }
        self.kept += line.len() + 1;
        self.lines.push_back(line);
        while self.kept > self.limit {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.kept -= oldest.len() + 1;
        }
    }

    /// Nothing more comes: what has no line end is a line all the same.
    fn end(&mut self) {
        if !self.current.is_empty() {
            self.end_line();
        }
    }

    /// The current line as text, with whatever is secret in it.
    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.current.trim_ascii_end())
    }

    /// The last lines that are not blank, oldest first.
    pub fn tail(&self, count: usize) -> Vec<String> {
        // More of it may be on its way.
        let current = self.redactor.redact_cut(&self.text()).into_owned();
        let all = self.lines.iter().chain([&current]);
        let mut tail: Vec<String> =
            all.rev().map(|line| line.trim()).filter(|line| !line.is_empty()).take(count).map(str::to_owned).collect();
        tail.reverse();
        tail
    }
}

/// Reads until the end, in a task that the caller stops when it needs no more.
pub(super) fn drain(stderr: OwnedFd, ring: Arc<Mutex<Ring>>) -> io::Result<StderrReader> {
    let stderr = watched(stderr, Interest::READABLE)?;
    let task = tokio::spawn(async move {
        let locked = || ring.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = vec![0; 32 << 10];
        loop {
            let Ok(mut ready) = stderr.readable().await else { return locked().end() };
            match ready.try_io(|stderr| Ok(rustix::io::read(stderr.get_ref(), &mut buffer)?)) {
                Ok(Ok(0)) => return locked().end(),
                Ok(Ok(count)) => locked().push(&buffer[..count]),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(_)) => return locked().end(),
                Err(_would_block) => {}
            }
        }
    });
    Ok(StderrReader { abort: task.abort_handle(), task })
}

/// The task that reads; it ends with this.
pub(super) struct StderrReader {
    abort: AbortHandle,
    task: tokio::task::JoinHandle<()>,
}

impl StderrReader {
    /// Waits for the end of stderr, but not long: a grandchild may hold it open.
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

    fn ring(line_limit: usize, limit: usize, secret: &str) -> Ring {
        let mut limits = Limits::default();
        (limits.stderr_line, limits.stderr_kept) = (line_limit, limit);
        let mut redactor = Redactor::default();
        redactor.add(secret);
        Ring::new(&limits, Arc::new(redactor), None)
    }

    #[test]
    fn the_ring_keeps_the_end_within_its_bound() {
        let mut ring = ring(8, 16, "");
        ring.push(b"one\ntwo\n\nthree is long\nfour");
        assert_eq!(ring.tail(9), ["two", "three is", "four"]);
        assert_eq!(ring.tail(1), ["four"]);
        ring.push(&[b'x'; 100_000]);
        assert!(ring.current.len() <= 8 && ring.kept <= 16);
    }

    #[test]
    fn no_secret_is_kept_whole_or_in_part() {
        let mut ring = ring(16, 100, "hush-hush");
        ring.push(b"a hush-hush b\n12345678 hush-h");
        assert_eq!(ring.tail(9), ["a *** b", "12345678 ***"]);
        ring.push(b"ush\nsay: hush-hush");
        assert_eq!(ring.tail(9), ["a *** b", "12345678 ***", "say: ***"]);
        assert!(ring.lines.iter().all(|line| !line.contains("hush")));
    }
}
