//! A loopback HTTP server that receives the login callback (RFC 8252, 7.3).

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::Instant;
use wharf_net::AuthFuture;

use super::callback_check::{CallbackCheck, CallbackDecision, response_page};
use super::{BrowserVisit, DeviceCodePage, LoginBrowser, LoginCallback, LoginPage, PageOpener, VisitError};
use crate::settings::AuthSettings;

/// Default timeout for the user.
const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum size of a request head in bytes.
const MAX_REQUEST_HEAD_BYTES: usize = 16 << 10;
/// Maximum duration of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections. A further one replaces a silent or slow one.
const MAX_CONNECTIONS: usize = 64;
/// Time in which a connection has to send its request while other connections wait. A browser sends it immediately.
const REQUEST_GRACE_PERIOD: Duration = Duration::from_millis(100);
/// Delay after a failed accept, when the system is out of resources.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time for which repeated callbacks are still answered.
const LINGER: Duration = Duration::from_secs(2);

/// Waits for the login callback on a loopback address.
///
/// Callbacks without the right `state` are rejected and do not end the login.
#[derive(Clone)]
pub struct LoopbackBrowser {
    /// The port. Any free port if absent or already in use.
    pub port: Option<u16>,
    /// The callback path.
    pub path: CallbackPath,
    /// Timeout for the user, on the monotonic clock.
    pub max_wait: Duration,
    /// Opens the login page.
    pub open: Arc<dyn PageOpener>,
}

/// The callback path of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackPath {
    /// `/callback`, as required for preregistered clients.
    Fixed,
    /// An unguessable path.
    Random,
}

impl LoopbackBrowser {
    /// Creates a visitor from a server's settings. A preregistered client uses `/callback`.
    pub fn new(settings: &AuthSettings, open: Arc<dyn PageOpener>) -> Self {
        let is_described =
            settings.callback_port.is_some() || settings.client_id.is_some() || settings.client_metadata_url.is_some();
        let path = if is_described { CallbackPath::Fixed } else { CallbackPath::Random };
        Self { port: settings.callback_port, path, max_wait: PATIENCE, open }
    }

    /// Binds the address and chooses the path.
    pub(super) async fn listen(self) -> Result<LoopbackVisit, VisitError> {
        let failed =
            |error: io::Error| VisitError::NotPossible(format!("cannot listen on a loopback address: {error}"));
        let listener = bind(self.port).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let path = match self.path {
            CallbackPath::Fixed => "/callback".to_owned(),
            CallbackPath::Random => format!("/callback/{}", random_path_segment()?),
        };
        let redirect_uri = format!("http://{address}{path}");
        Ok(LoopbackVisit { listener, address, path, redirect_uri, max_wait: self.max_wait, open: self.open })
    }
}

impl LoginBrowser for LoopbackBrowser {
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        let loopback = self.clone();
        Box::pin(async move { Ok(Box::new(loopback.listen().await?) as Box<dyn BrowserVisit>) })
    }
}

/// Returns 128 random bits in hexadecimal.
fn random_path_segment() -> Result<String, VisitError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| VisitError::NotPossible(format!("no random numbers from the operating system: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Binds the requested port, or any free port. Uses IPv6 only if IPv4 is not available.
async fn bind(port: Option<u16>) -> io::Result<TcpListener> {
    if let Some(port) = port {
        match bind_to(port).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tracing::warn!(port, "the configured callback port is in use, using another port");
            }
            bound => return bound,
        }
    }
    bind_to(0).await
}

async fn bind_to(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Err(error) if matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported) => {
            TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await
        }
        bound => bound,
    }
}

/// A bound address. Connections are not answered before the page is opened.
pub(super) struct LoopbackVisit {
    listener: TcpListener,
    address: SocketAddr,
    path: String,
    redirect_uri: String,
    max_wait: Duration,
    open: Arc<dyn PageOpener>,
}

impl LoopbackVisit {
    /// Starts to answer, opens the page, and waits for the first callback: on this address, or from `otherwise`.
    pub(super) async fn wait_for_callback(
        self,
        page: LoginPage,
        otherwise: impl Future<Output = LoginCallback>,
    ) -> Result<LoginCallback, VisitError> {
        let port = self.address.port();
        let door = CallbackCheck {
            path: self.path,
            hosts: vec![self.address.to_string(), format!("localhost:{port}")],
            state: page.state.clone(),
            is_taken: AtomicBool::new(false),
        };
        let (arrived, mut arrival) = mpsc::channel(1);
        let serving = CallbackServerTask(tokio::spawn(serve(self.listener, Arc::new(door), arrived)));
        let open = self.open;
        // A callback that arrives before the user is asked, or has answered, is accepted. The prompt is dropped.
        let mut shown = pin!(async move {
            open.open(&page).await?;
            Ok(otherwise.await)
        });
        let back = poll_fn(|context| match arrival.poll_recv(context) {
            Poll::Ready(Some(returned)) => Poll::Ready(Ok(returned)),
            _ => shown.as_mut().poll(context),
        });
        let returned = tokio::time::timeout(self.max_wait, back).await;
        let returned = returned.map_err(|_| VisitError::TooLate(self.max_wait.as_secs()))??;
        serving.linger();
        Ok(returned)
    }
}

impl BrowserVisit for LoopbackVisit {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> AuthFuture<Result<LoginCallback, VisitError>> {
        Box::pin(self.wait_for_callback(page, std::future::pending()))
    }

    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        self.open.show_code(page)
    }
}

/// The server task. Dropping it ends the task and all connections.
struct CallbackServerTask(JoinHandle<()>);

impl CallbackServerTask {
    /// Continues for a short time, for browsers that send the request twice.
    fn linger(self) {
        tokio::spawn(async move {
            tokio::time::sleep(LINGER).await;
            drop(self);
        });
    }
}

impl Drop for CallbackServerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(listener: TcpListener, door: Arc<CallbackCheck>, arrived: mpsc::Sender<LoginCallback>) {
    let mut guests = CallbackConnections::default();
    loop {
        guests.make_room().await;
        match listener.accept().await {
            Ok((stream, _)) => guests.add(stream, &door, &arrived),
            // The system is out of resources, which a closing connection may release.
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// The open connections. Dropping it closes them.
#[derive(Default)]
struct CallbackConnections {
    tasks: JoinSet<()>,
    /// In order of arrival.
    open: Vec<CallbackConnection>,
}

struct CallbackConnection {
    since: Instant,
    /// The connection has sent data.
    has_spoken: Arc<AtomicBool>,
    task: AbortHandle,
}

impl CallbackConnections {
    fn add(&mut self, stream: TcpStream, door: &Arc<CallbackCheck>, arrived: &mpsc::Sender<LoginCallback>) {
        let has_spoken = Arc::<AtomicBool>::default();
        let attending = handle_connection(stream, Arc::clone(&has_spoken), Arc::clone(door), arrived.clone());
        let task = self.tasks.spawn(attending);
        self.open.push(CallbackConnection { since: Instant::now(), has_spoken, task });
    }

    /// Waits until another connection may be accepted: until one ends, or until the oldest has used up its time and is
    /// closed.
    async fn make_room(&mut self) {
        loop {
            while self.tasks.try_join_next().is_some() {}
            self.open.retain(|guest| !guest.task.is_finished());
            let Some(oldest) = self.open.first().filter(|_| self.open.len() >= MAX_CONNECTIONS) else { return };
            if tokio::time::timeout_at(oldest.since + REQUEST_GRACE_PERIOD, self.tasks.join_next()).await.is_err() {
                self.drop_oldest();
                return;
            }
        }
    }

    /// Closes the oldest silent connection, or the oldest of all if every one has sent data.
    fn drop_oldest(&mut self) {
        let is_silent = |guest: &CallbackConnection| {
            guest.since.elapsed() >= REQUEST_GRACE_PERIOD && !guest.has_spoken.load(Ordering::Relaxed)
        };
        let place = self.open.iter().position(is_silent).unwrap_or_default();
        if place < self.open.len() {
            self.open.remove(place).task.abort();
        }
    }
}

/// Handles the only request of a connection. The callback is delivered after its page is written, so that the user sees
/// the page even if the program exits right after the login.
async fn handle_connection(
    stream: TcpStream,
    has_spoken: Arc<AtomicBool>,
    door: Arc<CallbackCheck>,
    arrived: mpsc::Sender<LoginCallback>,
) {
    let (found, mut let_in) = mpsc::channel(1);
    let answer = service_fn(move |request| {
        let verdict = door.decide(&request);
        let response = response_page(&verdict);
        if let CallbackDecision::Welcome(returned) = verdict {
            // Cannot be full: a connection has only one request.
            let _ = found.try_send(returned);
        }
        async move { Ok::<_, std::convert::Infallible>(response) }
    });
    let connection = async {
        let _ = stream.readable().await;
        has_spoken.store(true, Ordering::Relaxed);
        let stream = TokioIo::new(stream);
        http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(MAX_REQUEST_HEAD_BYTES)
            .serve_connection(stream, answer)
            .await
    };
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
    if let Ok(returned) = let_in.try_recv() {
        let _ = arrived.send(returned).await;
    }
}

#[cfg(test)]
mod tests;
