//! What a server writes to stderr: always read, so that it never blocks; kept within a bound, for diagnosis.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::Interest;
use tokio::task::AbortHandle;

use crate::guard::watched;

/// The last lines, each cut and all together bounded.
#[derive(Debug)]
pub(super) struct Ring {
    lines: VecDeque<Vec<u8>>,
    current: Vec<u8>,
    kept: usize,
    line_limit: usize,
    limit: usize,
}

impl Ring {
    pub fn new(line_limit: usize, limit: usize) -> Self {
        Self { lines: VecDeque::new(), current: Vec::new(), kept: 0, line_limit, limit }
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
        self.current.extend_from_slice(&bytes[..room]);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.current);
        self.kept += line.len() + 1;
        self.lines.push_back(line);
        while self.kept > self.limit {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.kept -= oldest.len() + 1;
        }
    }

    /// The last lines that are not blank, oldest first, as text.
    pub fn tail(&self, count: usize) -> Vec<String> {
        let all = self.lines.iter().map(Vec::as_slice).chain([self.current.as_slice()]);
        let mut tail: Vec<String> = all
            .rev()
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty())
            .take(count)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        tail.reverse();
        tail
    }
}

/// Reads until the end, in a task that the caller stops when it needs no more.
pub(super) fn drain(stderr: OwnedFd, ring: Arc<Mutex<Ring>>) -> io::Result<StderrReader> {
    let stderr = watched(stderr, Interest::READABLE)?;
    let task = tokio::spawn(async move {
        let mut buffer = vec![0; 32 << 10];
        loop {
            let Ok(mut ready) = stderr.readable().await else { return };
            match ready.try_io(|stderr| Ok(rustix::io::read(stderr.get_ref(), &mut buffer)?)) {
                Ok(Ok(0)) => return,
                Ok(Ok(count)) => ring.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(_)) => return,
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

    #[test]
    fn the_ring_keeps_the_end_within_its_bound() {
        let mut ring = Ring::new(8, 16);
        ring.push(b"one\ntwo\n\nthree is long\nfour");
        assert_eq!(ring.tail(9), ["two", "three is", "four"]);
        assert_eq!(ring.tail(1), ["four"]);
        ring.push(&[b'x'; 100_000]);
        assert!(ring.current.len() <= 8 && ring.kept <= 16);
    }
}
