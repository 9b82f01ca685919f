//! One keep-alive connection of HTTP/1.1, without a library.

use std::io;
use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// A connection with at most one request in progress.
pub struct HttpConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Start of the bytes that are not consumed yet.
    start: usize,
    left: BodyLength,
    /// The last body that came in pieces.
    joined: Vec<u8>,
}

/// The head of a response.
#[derive(Debug, Clone, Default)]
pub struct HttpReply {
    pub status: u16,
    pub session: Option<String>,
    /// Set if the body is an event stream.
    pub is_stream: bool,
}

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyLength {
    Bytes(usize),
    Chunks,
    UntilClose,
}

impl HttpConnection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// Fails if the address does not accept.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect(address).await?)
    }

    /// Connects with a small receive buffer, so that the peer soon notices that nothing is read.
    ///
    /// # Errors
    ///
    /// Fails if the address does not accept.
    pub async fn open_narrow(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        Self::new(socket.connect(address).await?)
    }

    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (buffer, joined) = (Vec::with_capacity(4096), Vec::new());
        Ok(Self { stream, buffer, start: 0, left: BodyLength::Bytes(0), joined })
    }

    /// Sends a whole request.
    ///
    /// # Errors
    ///
    /// Fails if the connection is closed.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// Reads the head of the response.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends before it.
    pub async fn head(&mut self) -> io::Result<HttpReply> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let end = loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.fill().await?;
        };
        let (reply, left) = parse_head(&self.buffer[..end])?;
        self.start = end;
        self.left = left;
        Ok(reply)
    }

    /// Reads the whole body.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends before the body.
    pub async fn body(&mut self) -> io::Result<&[u8]> {
        if let BodyLength::Bytes(length) = self.left {
            return self.sized(length).await;
        }
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            whole.extend_from_slice(&piece);
        }
        self.joined = whole;
        Ok(&self.joined)
    }

    /// Reads the next piece of a body, `None` at its end.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends within a chunk.
    pub async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.left {
            BodyLength::Bytes(0) => Ok(None),
            BodyLength::Bytes(length) => {
                self.left = BodyLength::Bytes(0);
                Ok(Some(self.sized(length).await?.to_vec()))
            }
            BodyLength::Chunks => self.chunk().await,
            BodyLength::UntilClose => {
                if self.start == self.buffer.len() && self.fill().await.is_err() {
                    return Ok(None);
                }
                Ok(Some(self.buffer.split_off(self.start)))
            }
        }
    }

    async fn sized(&mut self, length: usize) -> io::Result<&[u8]> {
        let begin = self.start;
        while self.buffer.len() < begin + length {
            self.fill().await?;
        }
        self.start = begin + length;
        Ok(&self.buffer[begin..begin + length])
    }

    async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = loop {
            if let Some(end) = memmem::find(&self.buffer[self.start..], b"\r\n") {
                break end;
            }
            self.fill().await?;
        };
        let size = std::str::from_utf8(&self.buffer[self.start..self.start + line]).map_err(io::Error::other)?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16).map_err(io::Error::other)?;
        let begin = self.start + line + 2;
        while self.buffer.len() < begin + size + 2 {
            self.fill().await?;
        }
        let chunk = self.buffer[begin..begin + size].to_vec();
        self.start = begin + size + 2;
        if size == 0 {
            self.left = BodyLength::Bytes(0);
            return Ok(None);
        }
        Ok(Some(chunk))
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn parse_head(head: &[u8]) -> io::Result<(HttpReply, BodyLength)> {
    let text = std::str::from_utf8(head).map_err(io::Error::other)?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let mut reply = HttpReply { status: status.ok_or(io::ErrorKind::InvalidData)?, ..HttpReply::default() };
    let mut left = if matches!(reply.status, 202 | 204) { BodyLength::Bytes(0) } else { BodyLength::UntilClose };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            left = BodyLength::Bytes(value.parse().map_err(io::Error::other)?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            left = BodyLength::Chunks;
        } else if name.eq_ignore_ascii_case("content-type") {
            reply.is_stream = value.starts_with("text/event-stream");
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            reply.session = Some(value.to_owned());
        }
    }
    Ok((reply, left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn check(response: &'static [u8], is_stream: bool, body: &str) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut connection = HttpConnection::open(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        // Twice, so that the end of the first is found.
        server.write_all(response).await.unwrap();
        server.write_all(response).await.unwrap();
        for _ in 0..2 {
            let head = connection.head().await.unwrap();
            assert_eq!((head.status, head.is_stream), (200, is_stream));
            assert_eq!(connection.body().await.unwrap(), body.as_bytes());
        }
    }

    #[tokio::test]
    async fn bodies_of_both_lengths_are_read() {
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nahoy", false, "ahoy").await;
        let chunked = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
                        2\r\nah\r\n2\r\noy\r\n0\r\n\r\n";
        check(chunked, true, "ahoy").await;
    }
}
