//! Line framing over a Unix socket, with a length limit.

use std::io;

use tokio::net::UnixStream;

/// Maximum bytes of a line in either direction.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// A socket read and written as lines.
pub struct SocketLines {
    stream: UnixStream,
    /// Bytes received after the last complete line.
    begun: Vec<u8>,
}

impl SocketLines {
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, begun: Vec::new() }
    }

    /// Reads the next line without its newline, or `None` at end of stream. Cancel-safe.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut seen = 0;
        loop {
            if let Some(end) = self.begun[seen..].iter().position(|byte| *byte == b'\n').map(|at| seen + at) {
                let rest = self.begun.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.begun, rest);
                line.truncate(end);
                return Ok(Some(line));
            }
            seen = self.begun.len();
            if seen > MAX_LINE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the line exceeds the size limit"));
            }
            self.stream.readable().await?;
            let mut chunk = [0; 16 << 10];
            match self.stream.try_read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => self.begun.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a line. Not cancel-safe: part of the line may have been written.
    pub async fn send(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        let mut rest = &line[..];
        while !rest.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
