//! Blocking writes to stdout and stderr.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// One of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Bytes that a writable pipe or terminal accepts without blocking.
const MAX_READY_BYTES: usize = 256;

impl OutputStream {
    fn descriptor(self) -> BorrowedFd<'static> {
        match self {
            Self::Stdout => rustix::stdio::stdout(),
            Self::Stderr => rustix::stdio::stderr(),
        }
    }
}

/// Writes all bytes without buffering. A closed descriptor accepts everything, as in the standard library.
pub fn write_all(stream: OutputStream, mut bytes: &[u8]) -> io::Result<()> {
    let descriptor = stream.descriptor();
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::BADF) => return Ok(()),
            Err(Errno::INTR) => {}
            // Another process made the stream non-blocking.
            Err(Errno::AGAIN) => drop(is_writable(descriptor, None)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes bytes as long as the stream accepts them within the time limit. Ignores errors.
pub fn write_within(stream: OutputStream, bytes: &[u8], limit: Duration) {
    let (descriptor, deadline) = (stream.descriptor(), Instant::now() + limit);
    for piece in bytes.chunks(MAX_READY_BYTES) {
        let left = deadline.saturating_duration_since(Instant::now());
        if !is_writable(descriptor, Some(left)) || write_all(stream, piece).is_err() {
            return;
        }
    }
}

fn is_writable(descriptor: BorrowedFd<'_>, limit: Option<Duration>) -> bool {
    let limit = limit.and_then(|limit| limit.try_into().ok());
    let mut polled = [PollFd::new(&descriptor, PollFlags::OUT)];
    poll(&mut polled, limit.as_ref()).is_ok() && polled[0].revents().contains(PollFlags::OUT)
}
