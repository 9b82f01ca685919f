//! Standard input and output as streams of bytes, for a command that speaks a protocol on them.
//!
//! Each has a thread of its own: a blocking read or write cannot be interrupted, so shutdown never joins them.

use std::future::Future;
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _, DuplexStream, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// Size of a read or write.
const CHUNK_BYTES: usize = 64 * 1024;

/// Standard input, read by a thread.
pub struct InputPipe {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    used: usize,
}

/// Opens standard input.
///
/// # Errors
///
/// Fails if no thread can be started.
pub fn input() -> io::Result<InputPipe> {
    let (sender, chunks) = mpsc::channel(1);
    wharf_threads::start_thread("wharf-stdin", move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = match stdin.read(&mut chunk) {
                Ok(0) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read,
            };
            let chunk = read.map(|count| {
                chunk.truncate(count);
                chunk
            });
            if sender.blocking_send(chunk).is_err() {
                return;
            }
        }
    })?;
    Ok(InputPipe { chunks, current: Vec::new(), used: 0 })
}

impl AsyncBufRead for InputPipe {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        if this.used == this.current.len() {
            let chunk = ready!(this.chunks.poll_recv(context)).transpose()?;
            (this.current, this.used) = (chunk.unwrap_or_default(), 0);
        }
        Poll::Ready(Ok(&this.current[this.used..]))
    }

    fn consume(self: Pin<&mut Self>, count: usize) {
        self.get_mut().used += count;
    }
}

impl AsyncRead for InputPipe {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let available = ready!(Pin::new(&mut *this).poll_fill_buf(context))?;
        let count = available.len().min(buffer.remaining());
        buffer.put_slice(&available[..count]);
        Pin::new(this).consume(count);
        Poll::Ready(Ok(()))
    }
}

/// Opens standard output: the stream to write to, and a future that resolves once everything written before the stream
/// was dropped is out.
///
/// # Errors
///
/// Fails if no thread can be started.
pub fn output() -> io::Result<(DuplexStream, impl Future<Output = io::Result<()>>)> {
    let (stream, mut written) = tokio::io::duplex(CHUNK_BYTES);
    let (sender, mut chunks) = mpsc::channel::<Vec<u8>>(1);
    let (done, ended) = oneshot::channel();
    wharf_threads::start_thread("wharf-stdout", move || {
        let mut stdout = io::stdout().lock();
        let mut outcome = Ok(());
        while let Some(chunk) = chunks.blocking_recv() {
            outcome = stdout.write_all(&chunk).and_then(|()| stdout.flush());
            if outcome.is_err() {
                break;
            }
        }
        let _ = done.send(outcome);
    })?;
    let pump = async move {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        while written.read_buf(&mut chunk).await? > 0 {
            // The thread has ended with an error, which `ended` has.
            if sender.send(std::mem::take(&mut chunk)).await.is_err() {
                break;
            }
            chunk.reserve(CHUNK_BYTES);
        }
        drop(sender);
        ended.await.unwrap_or(Ok(()))
    };
    Ok((stream, pump))
}
