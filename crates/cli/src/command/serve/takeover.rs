//! One gateway replaces another: the old one offers its listening sockets, the new one prepares and commits.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_spec::UntrustedText;
use wharf_store::LockFile;
use wharf_terminal::failure::Failure;
use wharf_terminal::gateway_socket::{
    GatewayListener, GatewayPlace, GatewayReply, GatewayTakeover, TakeoverRequest, TakeoverStart, offer_listeners,
    wait_for_commit,
};
use wharf_terminal::session::CommandSession;

use super::attach::lock_start;
use super::gateway_process::{GatewayProcess, ServedListeners};

/// Maximum time that a process that takes over has for its preparations.
const PREPARATION_TIMEOUT: Duration = Duration::from_mins(2);

/// Offers the listening sockets to a process that takes over. Once it commits, this process leaves.
pub async fn offer(process: &GatewayProcess, request: &TakeoverRequest, stream: &mut UnixStream) -> Result<(), String> {
    let listeners = process.listeners()?;
    check_address(&listeners, request)?;
    let reply = GatewayReply::Offered { pid: std::process::id(), stays: process.stays() };
    let http = listeners.http.as_ref().map(|(_, socket)| socket.as_fd());
    let sockets: Vec<_> = [Some(listeners.attached.as_fd()), http].into_iter().flatten().collect();
    let offered = offer_listeners(stream, &reply, &sockets).await;
    if offered.is_ok() && timeout(PREPARATION_TIMEOUT, wait_for_commit(stream)).await == Ok(true) {
        process.leave();
    }
    Ok(())
}

/// Checks that the process that takes over serves the same clients.
fn check_address(listeners: &ServedListeners, request: &TakeoverRequest) -> Result<(), String> {
    match (&listeners.http, request.address) {
        (None, None) => Ok(()),
        (Some((own, _)), Some(address)) if *own == address => Ok(()),
        (Some((own, _)), _) => {
            Err(format!("the running gateway serves {own}: `wharf serve --http {own}` of the new version replaces it"))
        }
        (None, Some(_)) => Err("the running gateway does not serve HTTP".to_owned()),
    }
}

/// A gateway that starts in the place of another, if one runs.
pub struct GatewaySuccession {
    takeover: Option<GatewayTakeover>,
    /// The reason that the other gateway does not hand over its sockets.
    pub refusal: Option<String>,
    /// No other process starts or replaces a gateway meanwhile.
    _starting: Option<LockFile>,
}

impl GatewaySuccession {
    /// Asks the gateway at an address for its sockets.
    pub async fn begin(session: &CommandSession, address: SocketAddr) -> Self {
        let none = |refusal| Self { takeover: None, refusal, _starting: None };
        let Some(place) = GatewayPlace::new(session).filter(|_| address.port() != 0) else { return none(None) };
        let starting = match lock_start(&place).await {
            Ok(lock) => Some(lock),
            Err(reason) => return none(Some(reason)),
        };
        let (takeover, refusal) = match place.begin_takeover(Some(address)).await {
            TakeoverStart::NoGateway => (None, None),
            TakeoverStart::Refused(reason) => (None, Some(UntrustedText::new(reason).to_string())),
            TakeoverStart::Offered(takeover) => (Some(takeover), None),
        };
        Self { takeover, refusal, _starting: starting }
    }

    /// Returns the listening socket for clients over HTTP, if the other gateway has offered it.
    pub fn take_http_listener(&mut self) -> Option<std::net::TcpListener> {
        self.takeover.as_mut()?.http.take()
    }

    /// Becomes the gateway for attached clients: takes over those of the other gateway, or listens, unless another
    /// process does.
    ///
    /// # Errors
    ///
    /// Fails if the other gateway has offered its sockets and goes on all the same.
    pub async fn listen(self, session: &CommandSession) -> Result<Option<GatewayListener>, Failure> {
        let replaced = self.takeover.as_ref().map(|takeover| takeover.pid);
        if let Some(takeover) = self.takeover
            && let Ok(listener) = takeover.complete().await
        {
            let pid = replaced.unwrap_or_default();
            session.console.say(format_args!("replaces the gateway (process {pid})"));
            return Ok(Some(listener));
        }
        let Some(place) = GatewayPlace::new(session) else { return Ok(None) };
        let listening = wharf_threads::run_blocking(move || place.listen()).await.map_err(Failure::other)?;
        match (listening, replaced) {
            // The other gateway may have ended meanwhile.
            (Ok(listener), _) => Ok(Some(listener)),
            (Err(error), None) => {
                session.console.say(format_args!("clients on stdin and stdout are served by another process: {error}"));
                Ok(None)
            }
            // Two processes must not accept the connections of one socket.
            (Err(_), Some(pid)) => {
                Err(Failure::other(format_args!("the running gateway (process {pid}) did not hand over its clients")))
            }
        }
    }
}

/// Becomes the gateway in the background, in the place of another if one runs. Returns whether it stays after the last
/// client.
///
/// # Errors
///
/// Fails if the running gateway does not hand over its sockets, or the socket cannot be created.
pub async fn listen_in_background(session: &CommandSession) -> Result<(GatewayListener, bool), Failure> {
    let place = GatewayPlace::new(session).ok_or_else(|| Failure::other("no directory for the socket"))?;
    match place.begin_takeover(None).await {
        TakeoverStart::Refused(reason) => Err(Failure::other(UntrustedText::new(reason))),
        TakeoverStart::Offered(takeover) => {
            let stays = takeover.stays;
            Ok((takeover.complete().await.map_err(Failure::other)?, stays))
        }
        TakeoverStart::NoGateway => {
            let listener = wharf_threads::run_blocking(move || place.listen()).await.map_err(Failure::other)?;
            Ok((listener.map_err(Failure::other)?, false))
        }
    }
}
