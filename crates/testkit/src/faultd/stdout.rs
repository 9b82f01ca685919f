//! Output to stdout: unbuffered, one writer at a time.

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard};

/// Stdout as descriptor 1 only, so that closing it closes the pipe.
#[derive(Default)]
pub struct StdoutWriter {
    turn: Mutex<()>,
}

impl StdoutWriter {
    /// Sends one line in one write. Errors are ignored: the end of stdin ends the server.
    pub fn line(&self, line: impl AsRef<[u8]>) {
        let mut bytes = line.as_ref().to_vec();
        bytes.push(b'\n');
        self.bytes(&bytes);
    }

    /// Sends raw bytes. Returns false once a write fails.
    pub fn bytes(&self, bytes: &[u8]) -> bool {
        self.hold().write(bytes)
    }

    /// Blocks other writers until the returned guard is dropped.
    pub fn hold(&self) -> StdoutGuard<'_> {
        StdoutGuard { _turn: self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) }
    }

    /// Reports whether a writer holds stdout.
    pub fn is_held(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// Closes the pipe; later output is discarded.
    pub fn close(&self) -> io::Result<()> {
        let nowhere = File::options().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(nowhere)?;
        Ok(())
    }
}

pub struct StdoutGuard<'a> {
    _turn: MutexGuard<'a, ()>,
}

impl StdoutGuard<'_> {
    pub fn write(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stdout(), bytes)) {
                Ok(written) => bytes = &bytes[written..],
                Err(_) => return false,
            }
        }
        true
    }

    /// Writes `total` bytes of `filler` without allocating them all.
    pub fn fill(&self, filler: u8, total: usize) -> bool {
        let chunk = vec![filler; 1 << 16];
        let mut left = total;
        while left > 0 {
            let now = left.min(chunk.len());
            if !self.write(&chunk[..now]) {
                return false;
            }
            left -= now;
        }
        true
    }
}

/// Closes stdin; the next read returns end of file.
pub fn close_stdin() -> io::Result<()> {
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(())
}
