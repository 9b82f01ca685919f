//! The way of the listening sockets from a gateway to the one that replaces it.
//!
//! The new gateway gets copies of the sockets, prepares its servers, and commits. Until then the old one goes on as if
//! nothing had happened; it accepts no client afterwards. A client that connects meanwhile waits in the queue of the
//! socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_store::{LockError, LockFile};

use super::{
    GatewayListener, GatewayPlace, GatewayReply, GatewayRequest, GatewaySocketFile, LOCK_FILE, SOCKET_FILE,
    TakeoverRequest,
};

/// Maximum number of sockets in one message.
const MAX_SOCKETS: usize = 2;
/// Maximum bytes of the reply that they come with.
const MAX_REPLY_BYTES: usize = 4096;
/// Maximum time for a reply, and for the old gateway to release its lock.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Byte by which the new gateway commits, and the old one confirms.
const COMMIT: u8 = b'!';

/// The start of a takeover.
pub enum TakeoverStart {
    /// No gateway runs.
    NoGateway,
    /// The running gateway does not hand over its sockets, for this reason.
    Refused(String),
    /// The sockets are here.
    Offered(GatewayTakeover),
}

/// A gateway that is being replaced. Dropping it leaves the other gateway as it is.
pub struct GatewayTakeover {
    /// Process of the other gateway.
    pub pid: u32,
    /// Reports whether it keeps running after the last client.
    pub stays: bool,
    /// Its listening socket for clients over HTTP.
    pub http: Option<TcpListener>,
    attached: UnixListener,
    stream: UnixStream,
    place: GatewayPlace,
}

impl GatewayPlace {
    /// Asks the running gateway for its listening sockets. The caller holds the lock of the start.
    pub async fn begin_takeover(&self, address: Option<SocketAddr>) -> TakeoverStart {
        let failed = |error: io::Error| TakeoverStart::Refused(format!("the running gateway did not reply: {error}"));
        match timeout(TAKEOVER_TIMEOUT, self.ask_for_listeners(address)).await {
            Ok(Ok(start)) => start,
            Ok(Err(error)) if is_absent(&error) => TakeoverStart::NoGateway,
            Ok(Err(error)) => failed(error),
            Err(_) => failed(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn ask_for_listeners(&self, address: Option<SocketAddr>) -> io::Result<TakeoverStart> {
        let stream = self.connect_and_send(GatewayRequest::TakeOver(TakeoverRequest { address })).await?;
        let (reply, sockets) = receive_reply(&stream).await?;
        let (pid, stays) = match reply {
            GatewayReply::Offered { pid, stays } => (pid, stays),
            GatewayReply::Refused { reason } => return Ok(TakeoverStart::Refused(reason)),
            GatewayReply::Attached { .. } | GatewayReply::Done { .. } => return Err(io::ErrorKind::InvalidData.into()),
        };
        let mut sockets = sockets.into_iter();
        let attached = UnixListener::from(sockets.next().ok_or(io::ErrorKind::InvalidData)?);
        let http = sockets.next().map(TcpListener::from);
        if http.is_some() != address.is_some() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let place = self.clone();
        Ok(TakeoverStart::Offered(GatewayTakeover { pid, stays, http, attached, stream, place }))
    }
}

/// Reports whether an error says that no process listens.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

impl GatewayTakeover {
    /// Replaces the other gateway, which accepts no client from now on.
    ///
    /// # Errors
    ///
    /// Fails if the other gateway has ended meanwhile, or keeps its lock.
    pub async fn complete(mut self) -> Result<GatewayListener, LockError> {
        let path = self.place.file(SOCKET_FILE);
        let failed = |source| LockError::Io { path: path.clone(), source };
        let committed = async {
            self.stream.write_all(&[COMMIT]).await?;
            self.stream.read_u8().await
        };
        let committed =
            timeout(TAKEOVER_TIMEOUT, committed).await.map_err(|_| failed(io::ErrorKind::TimedOut.into()))?;
        committed.map_err(failed)?;
        let lock = self.place.file(LOCK_FILE);
        let locked = wharf_threads::run_blocking(move || LockFile::acquire(&lock, TAKEOVER_TIMEOUT)).await;
        let lock = locked.map_err(|error| failed(io::Error::other(error)))??;
        Ok(GatewayListener { listener: self.attached, file: GatewaySocketFile(Some(path.clone())), _lock: lock })
    }
}

/// Sends the listening sockets to a process that takes over.
///
/// # Errors
///
/// Fails if the process is gone or does not read.
pub async fn offer_listeners(stream: &UnixStream, reply: &GatewayReply, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let send = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        if !attached.push(SendAncillaryMessage::ScmRights(sockets)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(sendmsg(stream.as_fd(), &[IoSlice::new(&line)], &mut attached, SendFlags::NOSIGNAL)?)
    };
    match stream.async_io(Interest::WRITABLE, send).await? {
        sent if sent == line.len() => Ok(()),
        // The line is shorter than the buffer of any socket.
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Waits until the process that takes over commits, and confirms it. Reports whether it has.
pub async fn wait_for_commit(stream: &mut UnixStream) -> bool {
    let committed = matches!(stream.read_u8().await, Ok(COMMIT));
    committed && stream.write_all(&[COMMIT]).await.is_ok()
}

/// Receives a reply and the sockets that come with it.
async fn receive_reply(stream: &UnixStream) -> io::Result<(GatewayReply, Vec<OwnedFd>)> {
    let (mut line, mut sockets) = (Vec::new(), Vec::new());
    while line.last() != Some(&b'\n') {
        let mut chunk = [0; MAX_REPLY_BYTES];
        let receive = || receive_part(stream, &mut chunk, &mut sockets);
        let count = stream.async_io(Interest::READABLE, receive).await?;
        if count == 0 || line.len() + count > MAX_REPLY_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        line.extend_from_slice(&chunk[..count]);
    }
    Ok((serde_json::from_slice(&line)?, sockets))
}

fn receive_part(stream: &UnixStream, chunk: &mut [u8], sockets: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream.as_fd(), &mut [IoSliceMut::new(chunk)], &mut attached, flags)?;
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sockets.extend(descriptors);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) || sockets.len() > MAX_SOCKETS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;
    use crate::gateway_socket::read_first_line;

    /// Hands the sockets of a gateway over, as far as the test wants.
    async fn offer(listening: &GatewayListener, http: Option<&TcpListener>) -> UnixStream {
        let listener = tokio::net::UnixListener::from_std(listening.listener.try_clone().unwrap()).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        read_first_line(&mut stream).await.unwrap();
        let stream = stream.into_inner();
        let sockets: Vec<BorrowedFd<'_>> =
            [Some(listening.listener.as_fd()), http.map(TcpListener::as_fd)].into_iter().flatten().collect();
        offer_listeners(&stream, &GatewayReply::Offered { pid: 7, stays: true }, &sockets).await.unwrap();
        stream
    }

    fn offered(start: TakeoverStart) -> GatewayTakeover {
        match start {
            TakeoverStart::Offered(takeover) => takeover,
            TakeoverStart::NoGateway => panic!("no gateway"),
            TakeoverStart::Refused(reason) => panic!("{reason}"),
        }
    }

    #[tokio::test]
    async fn sockets_change_hands_without_a_moment_in_which_no_process_listens() {
        let directory = tempfile::tempdir().unwrap();
        let place = GatewayPlace { directory: directory.path().join("run") };
        assert!(matches!(place.begin_takeover(None).await, TakeoverStart::NoGateway));
        let old = place.listen().unwrap();
        let http = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = http.local_addr().unwrap();
        let (takeover, mut stream) = tokio::join!(place.begin_takeover(Some(address)), offer(&old, Some(&http)));
        let takeover = offered(takeover);
        assert_eq!((takeover.pid, takeover.stays), (7, true));
        assert_eq!(takeover.http.as_ref().unwrap().local_addr().unwrap(), address);
        // A client of the moment between the two.
        let waiting = std::os::unix::net::UnixStream::connect(place.file(SOCKET_FILE)).unwrap();
        let leaving = async {
            assert!(wait_for_commit(&mut stream).await);
            old.hand_over();
        };
        let (new, ()) = tokio::join!(takeover.complete(), leaving);
        let new = new.unwrap();
        new.listener.set_nonblocking(false).unwrap();
        assert!(new.listener.accept().is_ok());
        assert!(matches!(place.listen(), Err(LockError::Held { .. })));
        drop((waiting, new));
        assert!(!place.file(SOCKET_FILE).exists());
    }

    #[tokio::test]
    async fn gateway_goes_on_if_the_new_one_does_not_commit() {
        let directory = tempfile::tempdir().unwrap();
        let place = GatewayPlace { directory: directory.path().join("run") };
        let old = place.listen().unwrap();
        let (takeover, mut stream) = tokio::join!(place.begin_takeover(None), offer(&old, None));
        drop(offered(takeover));
        assert!(!wait_for_commit(&mut stream).await);
        assert!(std::os::unix::net::UnixStream::connect(place.file(SOCKET_FILE)).is_ok());
    }

    #[tokio::test]
    async fn takeover_fails_if_the_other_gateway_ends() {
        let directory = tempfile::tempdir().unwrap();
        let place = GatewayPlace { directory: directory.path().join("run") };
        let old = place.listen().unwrap();
        let (takeover, stream) = tokio::join!(place.begin_takeover(None), offer(&old, None));
        drop((stream, old));
        assert!(offered(takeover).complete().await.is_err());
        drop(place.listen().unwrap());
    }
}
