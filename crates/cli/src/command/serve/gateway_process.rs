//! The gateway that serves all clients of this user: attached ones at a socket, and others over HTTP.

use std::future::Future;
use std::io::{Cursor, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wharf_serve::{RequestDrain, Service, serve_relay};
use wharf_spec::UntrustedText;
use wharf_terminal::config_context::ConfigArgs;
use wharf_terminal::console::Console;
use wharf_terminal::failure::Failure;
use wharf_terminal::gateway_socket::{
    AttachRequest, GatewayListener, GatewayReply, GatewayRequest, RequestLine, SOCKET_PROTOCOL, is_same_user,
    read_first_line,
};
use wharf_terminal::session::CommandSession;

use super::attach::log_file;
use super::log_limit::limit_log;
use super::open_questions;
use super::project::ProjectTable;
use super::status::GatewayStatus;
use super::takeover;

/// Maximum number of clients at the socket.
const MAX_CLIENTS: usize = 1024;
/// Maximum time for a client's first line, and for writing the reply.
const FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time without a first client. The process that started the gateway may have been killed.
const FIRST_CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time for which servers keep running without a client, for one that connects again.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// The same in a gateway that stays.
const STAY_LINGER_TIME: Duration = Duration::from_mins(10);

/// Maximum time for requests in progress when a gateway ends, by default.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Time for which a gateway that is replaced serves requests on idle connections over HTTP.
const IDLE_CONNECTION_TIME: Duration = Duration::from_secs(2);

/// Maximum time for the last messages to clients.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Line by which a gateway in the background tells that it listens.
pub const READY_LINE: &str = "ready";

/// The state that all clients share.
pub struct GatewayProcess {
    console: Arc<Console>,
    pub projects: Arc<ProjectTable>,
    stays: AtomicBool,
    clients: AtomicUsize,
    /// The requests in progress of all clients.
    drain: RequestDrain,
    /// Maximum time for them when the gateway ends.
    grace: Duration,
    /// Reports requests that do not finish in time.
    late_requests: Once,
    /// Becomes true with the first signal.
    signal: watch::Receiver<bool>,
    /// Becomes true when a client asks for the end.
    is_stopped: watch::Sender<bool>,
    /// Becomes true when all connections end.
    is_closing: watch::Sender<bool>,
    /// Becomes true when another process has taken over the listening sockets.
    is_replaced: watch::Sender<bool>,
    attached_listener: OnceLock<std::os::unix::net::UnixListener>,
    http_listener: OnceLock<(SocketAddr, OwnedFd)>,
}

/// The listening sockets of a gateway.
pub struct ServedListeners<'a> {
    pub attached: &'a std::os::unix::net::UnixListener,
    pub http: Option<&'a (SocketAddr, OwnedFd)>,
}

/// An event of the accept loop.
enum ProcessEvent {
    Came(std::io::Result<UnixStream>),
    Left,
    /// A signal or a request ends the gateway.
    Stopped,
    /// Another process has taken over.
    Replaced,
    /// No client came.
    Unused,
}

/// Runs the gateway that attached clients share, in the background. Returns when the last client has left.
///
/// # Errors
///
/// Fails if the socket cannot be created.
pub async fn run_background(session: &CommandSession) -> Result<(), Failure> {
    let (listener, stays) = takeover::listen_in_background(session).await?;
    let process = Arc::new(GatewayProcess::new(session, DEFAULT_GRACE));
    if stays {
        process.stay();
    }
    // The process that waits for this may be gone.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{READY_LINE}").and_then(|()| stdout.flush());
    let log = log_file(session).unwrap_or_default();
    let served = tokio::select! {
        served = process.serve(listener) => served,
        () = limit_log(&log) => Ok(()),
    };
    process.projects.close().await;
    served
}

impl GatewayProcess {
    /// Creates the state, and takes over the signals of the session.
    pub fn new(session: &CommandSession, grace: Duration) -> Self {
        Self {
            console: Arc::clone(&session.console),
            projects: Arc::default(),
            stays: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
            drain: RequestDrain::default(),
            grace,
            late_requests: Once::new(),
            signal: session.handle_signal(),
            is_stopped: watch::Sender::default(),
            is_closing: watch::Sender::default(),
            is_replaced: watch::Sender::default(),
            attached_listener: OnceLock::new(),
            http_listener: OnceLock::new(),
        }
    }

    /// Sets the listening socket of clients over HTTP, which another process may take over.
    pub fn set_http_listener(&self, listener: (SocketAddr, OwnedFd)) {
        let _ = self.http_listener.set(listener);
    }

    /// Returns the listening sockets.
    ///
    /// # Errors
    ///
    /// Returns the reason if they cannot be handed over.
    pub fn listeners(&self) -> Result<ServedListeners<'_>, String> {
        let is_leaving = *self.is_replaced.borrow() || *self.is_stopped.borrow() || *self.signal.borrow();
        match self.attached_listener.get() {
            Some(attached) if !is_leaving => Ok(ServedListeners { attached, http: self.http_listener.get() }),
            _ => Err("the running gateway is ending".to_owned()),
        }
    }

    /// Leaves the clients to the process that has taken over the listening sockets.
    pub fn leave(&self) {
        self.console.say("another process has taken over; requests in progress are still answered");
        self.is_replaced.send_replace(true);
    }

    /// Waits until another process has taken over the listening sockets.
    pub async fn wait_for_replacement(&self) {
        let _ = self.is_replaced.subscribe().wait_for(|is_replaced| *is_replaced).await;
    }

    /// Keeps the gateway running after the last client.
    pub fn stay(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    /// Waits for a signal, or for a client that ends the gateway.
    async fn wait_for_stop(&self) {
        let (mut signal, mut is_stopped) = (self.signal.clone(), self.is_stopped.subscribe());
        tokio::select! {
            _ = signal.wait_for(|is_received| *is_received) => {}
            _ = is_stopped.wait_for(|is_stopped| *is_stopped) => {}
        }
    }

    /// Returns a service whose requests the gateway waits for before it ends.
    pub fn drainable(&self, service: impl Service) -> Arc<dyn Service> {
        self.drain.wrap(Arc::new(service))
    }

    /// Waits for the end: a signal, a client or another process, then the requests in progress, within their grace. New
    /// requests are refused meanwhile, unless another process has taken over.
    pub async fn wait_for_end(&self) {
        tokio::select! {
            () = self.wait_for_stop() => {
                self.drain.begin();
                self.wait_within_grace(self.drain.wait_until_idle()).await;
            }
            () = self.wait_until_left() => {}
        }
    }

    /// Waits until attached clients have to leave. Those that move to another process leave by themselves.
    async fn wait_for_close(&self) {
        let is_replaced = *self.is_replaced.borrow();
        if !is_replaced || timeout(self.grace, self.wait_for_stop()).await.is_ok() {
            self.wait_for_end().await;
        }
    }

    /// Waits until another process has taken over and the requests in progress have ended.
    async fn wait_until_left(&self) {
        self.wait_for_replacement().await;
        let left = async {
            // A connection of a client is closed after the next request on it.
            sleep(IDLE_CONNECTION_TIME).await;
            self.drain.wait_until_idle().await;
        };
        self.wait_within_grace(left).await;
    }

    async fn wait_within_grace(&self, idle: impl Future<Output = ()>) {
        if timeout(self.grace, idle).await.is_err() {
            let warn = || self.console.warn("requests in progress did not finish in time and are cancelled");
            self.late_requests.call_once(warn);
        }
    }

    fn status(&self) -> GatewayStatus {
        GatewayStatus { stays: self.stays(), projects: self.projects.status() }
    }

    /// Reports whether the gateway keeps running after the last client.
    pub fn stays(&self) -> bool {
        self.stays.load(Ordering::Relaxed)
    }

    /// Serves clients at the socket until the last one has left, or a signal arrives.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be used.
    pub async fn serve(self: &Arc<Self>, listening: GatewayListener) -> Result<(), Failure> {
        let listener = listening.listener.try_clone().and_then(UnixListener::from_std).map_err(Failure::other)?;
        let _ = listening.listener.try_clone().map(|copy| self.attached_listener.set(copy));
        let mut connections = JoinSet::new();
        let mut has_had_client = false;
        loop {
            let is_unused = !has_had_client && !self.stays();
            let event = tokio::select! {
                accepted = listener.accept() => ProcessEvent::Came(accepted.map(|(stream, _)| stream)),
                Some(_) = connections.join_next() => ProcessEvent::Left,
                () = self.wait_for_stop() => ProcessEvent::Stopped,
                () = self.wait_for_replacement() => ProcessEvent::Replaced,
                () = sleep(FIRST_CLIENT_TIMEOUT), if is_unused => ProcessEvent::Unused,
            };
            match event {
                ProcessEvent::Came(Ok(stream)) => {
                    has_had_client = true;
                    drop(connections.spawn(serve_client(Arc::clone(self), stream)));
                }
                ProcessEvent::Came(Err(error)) => {
                    self.console.warn(format_args!("accepting a client failed: {error}"));
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
                ProcessEvent::Left if !connections.is_empty() || self.stays() => {}
                ProcessEvent::Left | ProcessEvent::Unused => return Ok(()),
                // The next client starts a new gateway.
                ProcessEvent::Stopped => break drop(listening),
                ProcessEvent::Replaced => break listening.hand_over(),
            }
        }
        drop(listener);
        tokio::select! {
            () = self.wait_for_close() => {}
            () = join_all(&mut connections) => return Ok(()),
        }
        self.is_closing.send_replace(true);
        let _ = timeout(CLOSE_TIMEOUT, join_all(&mut connections)).await;
        Ok(())
    }

    /// Serves a client that attaches until it leaves.
    async fn serve_attached(self: &Arc<Self>, request: &AttachRequest, mut stream: BufReader<UnixStream>) {
        let session = CommandSession::for_environment(&self.console, request.environment(), ConfigArgs::default());
        let joined = match session {
            Ok(session) => self.projects.join(session, &request.view.clone().into()).await,
            Err(failure) => Err(failure),
        };
        let (lease, gateway, warnings) = match joined {
            Ok(joined) => joined,
            Err(failure) => return send_reply(&mut stream, &refused(failure.error.message.as_str())).await,
        };
        if request.stay {
            self.stay();
        }
        send_reply(&mut stream, &GatewayReply::Attached { pid: std::process::id(), warnings }).await;
        self.serve_stream(&*self.drainable(gateway), stream).await;
        if !*self.is_closing.borrow() && !*self.is_replaced.borrow() {
            lease.release(if self.stays() { STAY_LINGER_TIME } else { LINGER_TIME }).await;
        }
    }
}

impl GatewayProcess {
    /// Serves MCP on a stream until the client ends it, or the gateway closes.
    async fn serve_stream(&self, service: &dyn Service, stream: BufReader<UnixStream>) {
        let early = Cursor::new(stream.buffer().to_vec());
        let stream = stream.into_inner();
        let Ok(input_end) = stream.as_fd().try_clone_to_owned() else { return };
        let (input, output) = stream.into_split();
        let input = BufReader::new(early.chain(input));
        let mut serving = pin!(serve_relay(service, input, output, self.wait_for_replacement()));
        let mut is_closing = self.is_closing.subscribe();
        let closing = async { drop(is_closing.wait_for(|is_closing| *is_closing).await) };
        // A client that is cut off sees the end of its stream, so errors need no report.
        tokio::select! {
            _ = &mut serving => return,
            () = closing => {}
        }
        // As if the client had ended its input: what waits is still written.
        let _ = rustix::net::shutdown(&input_end, rustix::net::Shutdown::Read);
        let _ = serving.await;
    }
}

async fn join_all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Counts a client while it exists.
struct CountedClient(Arc<GatewayProcess>);

impl Drop for CountedClient {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_client(process: Arc<GatewayProcess>, stream: UnixStream) {
    // The permissions of the socket exclude other users already.
    if !is_same_user(&stream) {
        return;
    }
    let is_full = process.clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS;
    let _counted = CountedClient(Arc::clone(&process));
    let mut stream = BufReader::new(stream);
    let Ok(Ok(line)) = timeout(FIRST_LINE_TIMEOUT, read_first_line(&mut stream)).await else { return };
    match parse_request(&line) {
        Ok(_) if is_full => send_reply(&mut stream, &refused("the gateway has too many clients")).await,
        Ok(GatewayRequest::Attach(request)) => process.serve_attached(&request, stream).await,
        Ok(GatewayRequest::TakeOver(request)) => {
            let mut stream = stream.into_inner();
            if let Err(reason) = takeover::offer(&process, &request, &mut stream).await {
                send_reply(&mut BufReader::new(stream), &refused(reason)).await;
            }
        }
        Ok(GatewayRequest::Status) => send_reply(&mut stream, &done(json!(process.status()))).await,
        Ok(GatewayRequest::Questions { id }) => {
            send_reply(&mut stream, &done(json!(open_questions::list(&process.projects, id)))).await;
        }
        Ok(GatewayRequest::Answer { id, answer }) => {
            let reply = match open_questions::answer(&process.projects, id, &answer) {
                Ok(()) => done(json!({})),
                Err(error) => refused(error.to_string()),
            };
            send_reply(&mut stream, &reply).await;
        }
        Ok(GatewayRequest::Stop) => {
            send_reply(&mut stream, &done(json!({}))).await;
            process.is_stopped.send_replace(true);
        }
        Err(reason) => send_reply(&mut stream, &refused(reason)).await,
    }
}

fn done(result: Value) -> GatewayReply {
    GatewayReply::Done { pid: std::process::id(), result }
}

fn refused(reason: impl Into<String>) -> GatewayReply {
    GatewayReply::Refused { reason: reason.into() }
}

/// Writes a reply. A client that does not read it is gone or stuck; the next step notices.
async fn send_reply(stream: &mut BufReader<UnixStream>, reply: &GatewayReply) {
    let mut line = serde_json::to_vec(reply).unwrap_or_default();
    line.push(b'\n');
    let _ = timeout(FIRST_LINE_TIMEOUT, stream.write_all(&line)).await;
}

/// Reads a request. Returns the reason if it cannot be served.
fn parse_request(line: &[u8]) -> Result<GatewayRequest, String> {
    #[derive(Deserialize)]
    struct ClientVersion {
        version: String,
        #[serde(default)]
        protocol: u32,
    }
    let invalid = |_| "the request is not valid".to_owned();
    let client: ClientVersion = serde_json::from_slice(line).map_err(invalid)?;
    let own = env!("CARGO_PKG_VERSION");
    let is_same = client.version == own;
    let version = UntrustedText::new(client.version);
    let other_version = || format!("the running gateway is of version {own}, and this is version {version}");
    if !is_same && client.protocol != SOCKET_PROTOCOL {
        return Err(other_version());
    }
    let line: RequestLine =
        serde_json::from_slice(line).map_err(|error| if is_same { invalid(error) } else { other_version() })?;
    match is_same || line.request.crosses_versions() {
        true => Ok(line.request),
        false => Err(format!("{}; `wharf serve --upgrade` replaces it", other_version())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_of_another_version_is_refused() {
        let line = |version: &str, protocol: u32, request: &str| {
            format!(r#"{{"version":{version:?},"protocol":{protocol},"request":{request}}}"#)
        };
        let attach = |is_moving: bool| {
            let view = r#"{"servers":[],"plain_names":null,"profile":null}"#;
            format!(r#"{{"attach":{{"cwd":"/","variables":[],"view":{view},"stay":false,"is_moving":{is_moving}}}}}"#)
        };
        let own = env!("CARGO_PKG_VERSION");
        for line in [
            line(own, SOCKET_PROTOCOL, "\"stop\""),
            line(own, SOCKET_PROTOCOL, &attach(false)),
            line("0.0.1", SOCKET_PROTOCOL, "\"stop\""),
            line("0.0.1", SOCKET_PROTOCOL, r#"{"take_over":{"address":null}}"#),
            line("0.0.1", SOCKET_PROTOCOL, &attach(true)),
        ] {
            assert!(parse_request(line.as_bytes()).is_ok(), "{line}");
        }
        for (line, complaint) in [
            (line("0.0.1", SOCKET_PROTOCOL, &attach(false)), "and this is version 0.0.1; `wharf serve --upgrade`"),
            (line("0.0.1", SOCKET_PROTOCOL + 1, "\"stop\""), "and this is version 0.0.1"),
            (r#"{"version":"9","request":{"fly":{}}}"#.to_owned(), "and this is version 9"),
            (line("9", SOCKET_PROTOCOL, r#"{"fly":{}}"#), "and this is version 9"),
            ("nonsense".to_owned(), "not valid"),
            (r#"{"request":"stop"}"#.to_owned(), "not valid"),
            (line(own, SOCKET_PROTOCOL, "{}"), "not valid"),
        ] {
            assert!(parse_request(line.as_bytes()).unwrap_err().contains(complaint), "{line}");
        }
    }
}
