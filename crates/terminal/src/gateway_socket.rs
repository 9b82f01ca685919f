//! The socket of the one gateway that runs for this user: its place, its lock and its first lines.
//!
//! The gateway holds the lock for as long as it runs, so a socket file that exists while the lock is free is stale. A
//! client sends one line that says what it wants. The gateway answers with one line, and a client that attaches then
//! speaks MCP on the same connection.

mod message;
mod takeover;

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_spec::Environment;
use wharf_store::{LockError, LockFile, create_private_directory};

use crate::control::sockets::{check_private, effective_uid, socket_directory};
use crate::session::CommandSession;

pub use message::{
    AttachRequest, GatewayReply, GatewayRequest, RequestLine, SOCKET_PROTOCOL, TakeoverRequest, ViewRequest,
};
pub use takeover::{GatewayTakeover, TakeoverStart, offer_listeners, wait_for_commit};

const SOCKET_FILE: &str = "gateway.socket";
const LOCK_FILE: &str = "gateway.lock";
/// Lock of a process that starts a gateway, so that two of them do not start two.
const START_LOCK_FILE: &str = "gateway-start.lock";

/// Maximum bytes of a first line, in either direction.
const MAX_FIRST_LINE_BYTES: u64 = 1 << 20;
/// Maximum time for a first line. A client's project may have secrets to look up.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// The place of this user's gateway.
#[derive(Debug, Clone)]
pub struct GatewayPlace {
    directory: PathBuf,
}

/// The socket of a running gateway, with its lock. Dropping it removes the socket, then releases the lock.
pub struct GatewayListener {
    /// Listens for clients.
    pub listener: UnixListener,
    file: GatewaySocketFile,
    _lock: LockFile,
}

impl GatewayListener {
    /// Releases the lock and leaves the socket to the process that has taken it over.
    pub fn hand_over(mut self) {
        self.file.0 = None;
    }
}

/// A connection to a running gateway after its reply.
pub struct GatewayConnection {
    /// The stream, with what the gateway has sent since.
    pub stream: BufReader<UnixStream>,
    /// The gateway's reply.
    pub reply: GatewayReply,
}

/// The file of the socket, removed on drop.
struct GatewaySocketFile(Option<PathBuf>);

impl Drop for GatewaySocketFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl GatewayPlace {
    /// Returns the place for a session. `None` without a runtime directory and a state directory.
    pub fn new(session: &CommandSession) -> Option<Self> {
        Self::for_environment(&session.environment, session.configuration.state.as_deref())
    }

    /// Returns the place for an environment and a state directory.
    pub fn for_environment(environment: &Environment, state: Option<&Path>) -> Option<Self> {
        socket_directory(environment, state).map(|directory| Self { directory })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Takes the lock for starting a gateway. Blocks up to `max_wait`.
    ///
    /// # Errors
    ///
    /// Fails if the directory is not private, or another process keeps the lock.
    pub fn lock_start(&self, max_wait: Duration) -> Result<LockFile, LockError> {
        let path = self.file(START_LOCK_FILE);
        let created = create_private_directory(&self.directory);
        created.map_err(|source| LockError::Io { path: path.clone(), source })?;
        LockFile::acquire(&path, max_wait)
    }

    /// Becomes the gateway of this user. Blocks on the file system only.
    ///
    /// # Errors
    ///
    /// Fails if another gateway runs ([`LockError::Held`]), or the socket cannot be created.
    pub fn listen(&self) -> Result<GatewayListener, LockError> {
        let (path, lock) = (self.file(SOCKET_FILE), self.file(LOCK_FILE));
        let failed = |source| LockError::Io { path: path.clone(), source };
        create_private_directory(&self.directory).map_err(failed)?;
        let lock = LockFile::acquire(&lock, Duration::ZERO)?;
        let listener = bind(&path).map_err(failed)?;
        Ok(GatewayListener { listener, file: GatewaySocketFile(Some(path.clone())), _lock: lock })
    }

    /// Connects to the running gateway, sends a request and waits for the reply. `None` if no gateway runs, or it ended
    /// before it replied.
    pub async fn request(&self, request: GatewayRequest) -> Option<GatewayConnection> {
        let connected = timeout(REPLY_TIMEOUT, self.connect_and_ask(request)).await;
        let failed = |error: &io::Error| tracing::debug!(%error, "no gateway replied");
        connected.ok()?.inspect_err(failed).ok()
    }

    async fn connect_and_ask(&self, request: GatewayRequest) -> io::Result<GatewayConnection> {
        let mut stream = BufReader::new(self.connect_and_send(request).await?);
        let line = read_first_line(&mut stream).await?;
        Ok(GatewayConnection { reply: serde_json::from_slice(&line)?, stream })
    }

    async fn connect_and_send(&self, request: GatewayRequest) -> io::Result<UnixStream> {
        check_private(&self.directory)?;
        let mut stream = UnixStream::connect(self.file(SOCKET_FILE)).await?;
        if stream.peer_cred()?.uid() != effective_uid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut line = serde_json::to_vec(&RequestLine::new(request))?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        Ok(stream)
    }
}

/// Binds the socket. Replaces a stale one: the caller holds the lock.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let begun = path.with_extension("new");
    let _ = std::fs::remove_file(&begun);
    let listener = UnixListener::bind(&begun)?;
    std::fs::set_permissions(&begun, Permissions::from_mode(0o600))?;
    std::fs::rename(&begun, path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Reads the first line of a connection, without its line break.
///
/// # Errors
///
/// Fails if the stream ends before the line does, or the line is too long.
pub async fn read_first_line(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    stream.take(MAX_FIRST_LINE_BYTES).read_until(b'\n', &mut line).await?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reports whether a client of the socket is this user.
pub fn is_same_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == effective_uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn place(directory: &Path) -> GatewayPlace {
        GatewayPlace { directory: directory.join("run") }
    }

    #[tokio::test]
    async fn one_gateway_listens_at_a_private_socket() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path());
        assert!(place.request(GatewayRequest::Stop).await.is_none(), "no gateway runs");
        let first = place.listen().unwrap();
        assert!(matches!(place.listen(), Err(LockError::Held { .. })));
        let mode = |name: &str| std::fs::metadata(place.file(name)).unwrap().mode() & 0o777;
        assert_eq!((mode(""), mode(SOCKET_FILE)), (0o700, 0o600));
        drop(first);
        assert!(!place.file(SOCKET_FILE).exists() && !place.file(LOCK_FILE).exists());
    }

    #[tokio::test]
    async fn stale_socket_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path());
        create_private_directory(&place.directory).unwrap();
        drop(UnixListener::bind(place.file(SOCKET_FILE)).unwrap());
        assert!(place.request(GatewayRequest::Stop).await.is_none());
        let listening = place.listen().unwrap();
        assert!(std::os::unix::net::UnixStream::connect(place.file(SOCKET_FILE)).is_ok());
        drop(listening);
    }

    #[tokio::test]
    async fn first_line_is_bounded_and_complete() {
        assert_eq!(read_first_line(&mut &b"a\nb"[..]).await.unwrap(), b"a");
        assert!(read_first_line(&mut &b"a"[..]).await.is_err());
        let long = vec![b' '; usize::try_from(MAX_FIRST_LINE_BYTES).unwrap() + 2];
        assert!(read_first_line(&mut &long[..]).await.is_err());
    }
}
