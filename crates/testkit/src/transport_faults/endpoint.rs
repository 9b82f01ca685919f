//! A listening socket on loopback: one thread accepts, one thread serves each connection, and dropping ends them all.
//!
//! Every wait can be interrupted: it also polls a pipe held open by the [`Endpoint`]. Once that end closes, reads and
//! writes fail and the threads exit. The protocol on a connection is defined by the caller.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::pipe::{PipeFlags, pipe_with};

/// A server on `127.0.0.1` and a free port. Dropping it closes every connection and joins every thread.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    tally: Arc<EndpointCounters>,
    life: Option<OwnedFd>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct EndpointCounters {
    connections: AtomicU64,
    requests: AtomicU64,
}

impl Endpoint {
    /// Listens, and serves each connection on its own thread.
    pub fn start(serve: impl Fn(AcceptedConnection) + Send + Sync + 'static) -> io::Result<Endpoint> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (life, ending) = ShutdownSignal::new()?;
        let tally = Arc::<EndpointCounters>::default();
        let door = EndpointAcceptor { listener, ending, tally: Arc::clone(&tally), serve: Arc::new(serve) };
        let acceptor = std::thread::spawn(move || door.run());
        Ok(Endpoint { address, tally, life: Some(life), acceptor: Some(acceptor) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> u64 {
        self.tally.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of requests received completely, answered or not.
    pub fn requests(&self) -> u64 {
        self.tally.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.life = None;
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
    }
}

/// The accepting side of an endpoint, on its own thread.
struct EndpointAcceptor<F> {
    listener: TcpListener,
    ending: ShutdownSignal,
    tally: Arc<EndpointCounters>,
    serve: Arc<F>,
}

impl<F: Fn(AcceptedConnection) + Send + Sync + 'static> EndpointAcceptor<F> {
    fn run(self) {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        while self.ending.wait_for(&self.listener, PollFlags::IN).is_ok() {
            // The peer may disconnect before its connection is accepted.
            let Ok((stream, _)) = self.listener.accept() else { continue };
            let Ok(guest) = self.admit(stream) else { continue };
            let serve = Arc::clone(&self.serve);
            threads.retain(|thread| !thread.is_finished());
            threads.push(std::thread::spawn(move || serve(guest)));
        }
        for thread in threads {
            thread.join().ok();
        }
    }

    fn admit(&self, stream: TcpStream) -> io::Result<AcceptedConnection> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let number = self.tally.connections.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(AcceptedConnection { stream, number, ending: self.ending.clone(), tally: Arc::clone(&self.tally) })
    }
}

/// An accepted connection. Reads and writes block, and fail once the endpoint is dropped.
pub struct AcceptedConnection {
    stream: TcpStream,
    number: u64,
    ending: ShutdownSignal,
    tally: Arc<EndpointCounters>,
}

impl AcceptedConnection {
    /// Returns the number of the connection; the first is 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Counts a completely received request.
    pub fn count_request(&self) {
        self.tally.requests.fetch_add(1, Ordering::SeqCst);
    }

    /// Neither reads nor writes until the peer disconnects.
    pub fn wait_for_disconnect(&self) {
        self.ending.wait_for(&self.stream, PollFlags::RDHUP).ok();
    }

    /// Reports whether the peer has closed its side.
    pub fn is_disconnected(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.stream, PollFlags::RDHUP)], Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Closes the connection with RST.
    pub fn reset(self) {
        close_with_reset(self.stream);
    }

    /// Sends FIN, then reads until the peer closes too.
    ///
    /// Closing with unread bytes would send RST, which can overtake data written before.
    pub fn finish(mut self) {
        self.stream.shutdown(Shutdown::Write).ok();
        io::copy(&mut self, &mut io::sink()).ok();
    }

    pub(super) fn into_parts(self) -> (TcpStream, ShutdownSignal) {
        (self.stream, self.ending)
    }
}

impl Read for AcceptedConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ending.wait_for(&self.stream, PollFlags::IN)?;
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
        }
    }
}

impl Write for AcceptedConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.ending.wait_for(&self.stream, PollFlags::OUT)?;
            match self.stream.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Closes a socket with RST and discards unsent data.
pub(super) fn close_with_reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).ok();
    drop(stream);
}

/// The read end of a pipe that is never written to: it hangs up when the write end is dropped.
#[derive(Clone)]
pub(super) struct ShutdownSignal(Arc<OwnedFd>);

impl ShutdownSignal {
    /// Returns the write end, to be held until shutdown, and the read end.
    pub(super) fn new() -> io::Result<(OwnedFd, ShutdownSignal)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((write, ShutdownSignal(Arc::new(read))))
    }

    fn wait_for(&self, source: impl AsFd, flags: PollFlags) -> io::Result<()> {
        self.wait(&mut [PollFd::new(&source, flags)], None)
    }

    /// Waits for any of `sources` or until `due`. An error means shutdown.
    pub(super) fn wait(&self, sources: &mut [PollFd<'_>], due: Option<Instant>) -> io::Result<()> {
        let mut all = vec![PollFd::new(&*self.0, PollFlags::IN)];
        all.extend(sources.iter().cloned());
        loop {
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut all, timeout.as_ref()) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if !all[0].revents().is_empty() => return Err(io::ErrorKind::ConnectionAborted.into()),
                Ok(_) => return Ok(()),
            }
        }
    }
}
