//! MCP over HTTP: the listener, the limits, and the way of a request to its form.

mod event_stream;
mod exposure;
mod header_match;
mod refusal;
mod responses;
mod sessions;
mod sse;
mod stateless;
mod streamable;
mod timed_stream;
mod unproven;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

use crate::admission::{AllowedHosts, AuthenticatedClient, ClientAccess};
use crate::service::Service;
pub use exposure::{HttpExposure, HttpProtection, TlsIdentity};
use refusal::HttpRefusal;
use responses::{AnsweringBody, ResponseBody};
use sessions::SessionTable;
use timed_stream::{RequestProgress, StreamDeadlines, TimedStream};
use unproven::{ConnectionProof, UnprovenConnections};

/// A form of MCP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpForm {
    /// Streamable HTTP of both eras, at `/mcp`.
    Streamable,
    /// HTTP+SSE of 2024-11-05, at `/sse`.
    Sse,
}

/// Maximum time for responses in progress when the server ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// What clients may use together and alone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Maximum size of a request's headers.
    pub header_bytes: usize,
    /// Maximum time for a request's headers, from their first byte on, and on a new connection from the start.
    pub header_timeout: Duration,
    /// Maximum time until the next request on an idle connection.
    pub idle_timeout: Duration,
    /// Maximum time for which a client may read nothing of a response. An event stream can be resumed after that.
    pub write_timeout: Duration,
    /// Maximum size of a request's body.
    pub body_bytes: usize,
    /// Maximum time for a request's body.
    pub body_timeout: Duration,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of requests in progress and open streams.
    pub exchanges: usize,
    /// Maximum number of sessions. The least recently used one ends for a new one.
    pub sessions: usize,
    /// Time without a request and an open stream after which a session ends.
    pub session_idle_timeout: Duration,
    /// Time to wait for a response before the event stream starts without it.
    pub stream_delay: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            header_bytes: 16 * 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            body_bytes: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            connections: 1024,
            exchanges: 1024,
            sessions: 1024,
            session_idle_timeout: Duration::from_secs(3600),
            stream_delay: Duration::from_millis(150),
        }
    }
}

/// Size of the buffer that a connection is read into. Most bodies fit.
const MAX_READ_BYTES: usize = 64 * 1024;

/// Maximum size and time of a refused request's body that is read.
const MAX_DISCARDED_BYTES: usize = 64 * 1024;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// Time between two searches for idle sessions.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A bound listener that serves MCP clients.
pub struct HttpServer {
    listener: TcpListener,
    tls: Option<TlsIdentity>,
    site: Arc<HttpSite>,
}

/// The service of an HTTP server, with its access and limits.
pub struct HttpContent {
    /// The form of MCP over HTTP.
    pub form: HttpForm,
    /// The server for clients that are not told apart.
    pub service: Arc<dyn Service>,
    /// Access of clients.
    pub access: ClientAccess,
    /// Limits of clients.
    pub limits: HttpLimits,
}

/// Shared state of all requests.
struct HttpSite {
    service: Arc<dyn Service>,
    form: HttpForm,
    hosts: AllowedHosts,
    access: ClientAccess,
    limits: HttpLimits,
    sessions: SessionTable,
    exchanges: Arc<Semaphore>,
    /// Set when another process accepts the connections. Each connection closes after its next response.
    is_leaving: AtomicBool,
}

/// The sessions of a server.
#[derive(Clone)]
pub struct HttpSessions(Arc<HttpSite>);

impl HttpSessions {
    /// Ends the sessions and streams of a principal that may no longer use the server. Stateless requests in progress
    /// finish.
    pub fn end_of_principal(&self, principal: &str) {
        self.0.sessions.end_of_principal(principal);
    }
}

/// A request whose body has been read.
struct HttpRequest {
    client: AuthenticatedClient,
    headers: HeaderMap,
    query: Option<String>,
    body: Bytes,
}

impl HttpServer {
    /// Binds a loopback address. Port 0 picks a free port.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound, or is not a loopback address. See [`HttpServer::bind_exposed`] for others.
    pub async fn bind(
        address: SocketAddr,
        form: HttpForm,
        service: Arc<dyn Service>,
        access: ClientAccess,
        limits: HttpLimits,
    ) -> io::Result<Self> {
        Self::bind_exposed(address, &HttpExposure::default(), HttpContent { form, service, access, limits }).await
    }

    /// Binds an address that other machines can reach, if it is protected. Port 0 picks a free port.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound, or is not a loopback address and neither TLS nor a proxy, authentication and
    /// a public origin are given.
    pub async fn bind_exposed(address: SocketAddr, exposure: &HttpExposure, content: HttpContent) -> io::Result<Self> {
        exposure.check(address, &content.access)?;
        Self::from_listener(TcpListener::bind(address).await?, exposure, content)
    }

    /// Serves clients at a listener, which may be that of a process that leaves.
    ///
    /// # Errors
    ///
    /// Fails if the listener's address cannot be read, or is not protected as [`HttpServer::bind_exposed`] demands.
    pub fn from_listener(listener: TcpListener, exposure: &HttpExposure, content: HttpContent) -> io::Result<Self> {
        let HttpContent { form, service, access, limits } = content;
        let address = listener.local_addr()?;
        exposure.check(address, &access)?;
        let (hosts, tls) = (exposure.hosts(address), exposure.tls());
        let exchanges = Arc::new(Semaphore::new(limits.exchanges));
        let sessions = SessionTable::new(limits.sessions);
        let is_leaving = AtomicBool::new(false);
        let site = HttpSite { service, form, hosts, access, limits, sessions, exchanges, is_leaving };
        Ok(Self { listener, tls, site: Arc::new(site) })
    }

    /// Returns the address and a copy of the listening socket, for a process that takes over.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be copied.
    pub fn copy_listener(&self) -> io::Result<(SocketAddr, OwnedFd)> {
        Ok((self.listener.local_addr()?, self.listener.as_fd().try_clone_to_owned()?))
    }

    /// Returns the URL of the server.
    ///
    /// # Errors
    ///
    /// Fails if the listener's address cannot be read.
    pub fn url(&self) -> io::Result<String> {
        let path = match self.site.form {
            HttpForm::Streamable => streamable::PATH,
            HttpForm::Sse => sse::PATH,
        };
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}{path}", self.listener.local_addr()?))
    }

    /// Returns a handle on the sessions.
    pub fn sessions(&self) -> HttpSessions {
        HttpSessions(Arc::clone(&self.site))
    }

    /// Serves clients until `ended` resolves. Requests in progress have a moment to finish then. The others are dropped
    /// without a response.
    pub async fn run(self, ended: impl Future<Output = ()>) {
        self.run_until_left(std::future::pending(), ended).await;
    }

    /// Like [`HttpServer::run`], until `leaving` resolves: no connection is accepted then, open ones are closed after
    /// their next response, and the server ends with the last one.
    pub async fn run_until_left(self, leaving: impl Future<Output = ()>, ended: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let permits = Arc::new(Semaphore::new(self.site.limits.connections));
        let is_ending = watch::Sender::new(false);
        let unproven = UnprovenConnections::default();
        let mut session_check = interval(SESSION_CHECK_INTERVAL);
        tokio::pin!(leaving, ended);
        let has_left = loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &permits, &unproven) => accepted,
                Some(_) = connections.join_next() => continue,
                _ = session_check.tick() => {
                    self.site.sessions.end_idle(self.site.limits.session_idle_timeout);
                    continue;
                }
                () = &mut leaving => break true,
                () = &mut ended => break false,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let proof = Arc::<ConnectionProof>::default();
                    let connection = HttpConnection {
                        stream,
                        tls: self.tls.clone(),
                        is_ending: is_ending.subscribe(),
                        proof: Arc::clone(&proof),
                        _permit: permit,
                    };
                    unproven.add(proof, connections.spawn(connection.serve(Arc::clone(&self.site))));
                }
                Err(error) => {
                    // Out of descriptors, or the client is gone already: the next one may succeed.
                    tracing::warn!("accepting a connection failed: {error}");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        drop(self.listener);
        if has_left {
            self.site.is_leaving.store(true, Ordering::Release);
            tokio::select! {
                () = &mut ended => {}
                () = join_all(&mut connections) => return,
            }
        }
        is_ending.send_replace(true);
        let _ = timeout(FLUSH_TIMEOUT, join_all(&mut connections)).await;
    }
}

async fn join_all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Accepts a connection as soon as fewer than the maximum are open.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    unproven: &UnprovenConnections,
) -> io::Result<(TcpStream, Option<OwnedSemaphorePermit>)> {
    unproven.make_room().await;
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

/// An accepted connection.
struct HttpConnection {
    stream: TcpStream,
    tls: Option<TlsIdentity>,
    /// Becomes true when the server ends.
    is_ending: watch::Receiver<bool>,
    proof: Arc<ConnectionProof>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl HttpConnection {
    /// Serves requests until the client closes the connection, or the server ends.
    async fn serve(self, site: Arc<HttpSite>) {
        let Self { stream, tls, is_ending, proof, _permit } = self;
        // Small events must not wait for more.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return ServedStream { stream, is_ending, proof }.serve(site).await };
        match tls.accept(stream, site.limits.header_timeout).await {
            Ok(stream) => ServedStream { stream, is_ending, proof }.serve(site).await,
            Err(error) => tracing::debug!("TLS handshake failed: {error}"),
        }
    }
}

/// A connection on which requests are read.
struct ServedStream<S> {
    stream: S,
    is_ending: watch::Receiver<bool>,
    proof: Arc<ConnectionProof>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> ServedStream<S> {
    async fn serve(self, site: Arc<HttpSite>) {
        let Self { stream, mut is_ending, proof } = self;
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new());
        builder.header_read_timeout(site.limits.idle_timeout);
        builder.max_buf_size(MAX_READ_BYTES.max(site.limits.header_bytes));
        let progress = Arc::<RequestProgress>::default();
        let deadlines = StreamDeadlines { head: site.limits.header_timeout, write: site.limits.write_timeout };
        let stream = TimedStream::new(stream, Arc::clone(&progress), deadlines);
        let service = service_fn(move |request| {
            let active = progress.begin();
            let (site, proof) = (Arc::clone(&site), Arc::clone(&proof));
            async move {
                let response = site.respond(request, &proof).await;
                let is_last = site.is_leaving.load(Ordering::Acquire);
                let response = if is_last { responses::closing(response) } else { response };
                Ok::<_, Infallible>(response.map(|body| AnsweringBody { body, _request: active }))
            }
        });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let is_ending = async { drop(is_ending.wait_for(|is_ending| *is_ending).await) };
        let served = tokio::select! {
            served = &mut connection => served,
            () = is_ending => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!("connection ended: {error}");
        }
    }
}

impl HttpSite {
    async fn respond(self: &Arc<Self>, request: Request<Incoming>, proof: &ConnectionProof) -> Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        match self.identify(&parts.headers) {
            Ok(client) => {
                proof.give();
                self.route(client, parts, body).await.unwrap_or_else(HttpRefusal::into_response)
            }
            Err(refused) => {
                // A client that never reads holds its connection no longer than the response takes.
                discard(body).await;
                responses::closing(*refused)
            }
        }
    }

    /// Returns the client of a request, or the response to a request that is refused by its headers alone.
    fn identify(&self, headers: &HeaderMap) -> Result<AuthenticatedClient, Box<Response<ResponseBody>>> {
        if header_bytes(headers) > self.limits.header_bytes {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(HttpRefusal::plain(status, "the headers are too large").into_response().into());
        }
        if let Err(refusal) = self.hosts.check(headers) {
            return Err(HttpRefusal::plain(StatusCode::FORBIDDEN, refusal.as_str()).into_response().into());
        }
        self.access.identify(headers, &self.service).ok_or_else(|| responses::unauthorized().into())
    }

    async fn route(
        self: &Arc<Self>,
        client: AuthenticatedClient,
        parts: http::request::Parts,
        body: Incoming,
    ) -> Result<Response<ResponseBody>, HttpRefusal> {
        let method = parts.method;
        let query = parts.uri.query().map(str::to_owned);
        let route = (self.form, parts.uri.path(), &method);
        let is_post = match route {
            (HttpForm::Streamable, streamable::PATH, _) | (HttpForm::Sse, sse::PATH | sse::MESSAGES_PATH, _) => {
                method == Method::POST
            }
            _ => return Ok(responses::empty(StatusCode::NOT_FOUND)),
        };
        let body = if is_post { self.read_body(&parts.headers, body).await? } else { Bytes::new() };
        let request = HttpRequest { client, headers: parts.headers, query, body };
        match (self.form, parts.uri.path(), method.as_str()) {
            (HttpForm::Streamable, _, "POST") => streamable::receive(self, request).await,
            (HttpForm::Streamable, _, "GET") => streamable::open_stream(self, &request),
            (HttpForm::Streamable, _, "DELETE") => streamable::end_session(self, &request),
            (HttpForm::Sse, sse::PATH, "GET") => sse::open(self, &request.client),
            (HttpForm::Sse, sse::MESSAGES_PATH, "POST") => sse::receive(self, request),
            (HttpForm::Streamable, ..) => Ok(responses::method_not_allowed("GET, POST, DELETE")),
            (HttpForm::Sse, sse::PATH, _) => Ok(responses::method_not_allowed("GET")),
            (HttpForm::Sse, ..) => Ok(responses::method_not_allowed("POST")),
        }
    }

    /// Reads a body within its limits of size and time.
    async fn read_body(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, HttpRefusal> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.limits.body_bytes as u64) {
            return Err(too_large());
        }
        let read = timeout(self.limits.body_timeout, collect(body, self.limits.body_bytes)).await;
        read.unwrap_or_else(|_| Err(HttpRefusal::plain(StatusCode::REQUEST_TIMEOUT, "the body took too long")))
    }

    /// Acquires a permit for one more exchange.
    fn admit_exchange(&self) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        Arc::clone(&self.exchanges).try_acquire_owned().map_err(|_| HttpRefusal::busy("too many exchanges are open"))
    }
}

/// Returns the size of all headers.
fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Reads a short body of a refused request: closing a connection with unread bytes would discard the response.
async fn discard(mut body: Incoming) {
    let mut left = MAX_DISCARDED_BYTES;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    let _ = timeout(DISCARD_TIMEOUT, read).await;
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, HttpRefusal> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| HttpRefusal::plain(StatusCode::BAD_REQUEST, "the body cannot be read"))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Err(too_large());
        }
        // A body that comes in one piece is not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

fn too_large() -> HttpRefusal {
    HttpRefusal::plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large")
}

impl HttpRequest {
    /// Returns the value of a header, if it is text.
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
