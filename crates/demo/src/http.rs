//! The demo server over HTTP, on loopback only: Streamable HTTP of both eras, or the HTTP+SSE of 2024-11-05.
//!
//! Owns the listener, the routes and all limits. [`DemoServer`] handles the messages. There is no authentication: any
//! process that reaches the port can call the tools.

mod address;
mod event_stream;
mod feed;
mod headers;
mod outbox;
mod refusal;
mod request_filter;
mod responses;
mod sessions;
mod sse;
mod stateless;
mod streamable;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::serve::ListenerExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::message::Outbox;
use super::server::{DemoServer, DemoServerOptions, HeaderParams};
use super::stdio::environment;
use refusal::HttpRefusal;
use sessions::SessionTable;

pub use address::parse_loopback_address as parse_address;

/// Maximum size of a request body.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of open exchanges over all clients.
const MAX_EXCHANGES: usize = 256;

/// Address and form to serve.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Loopback address. Port 0 picks a free port.
    pub address: SocketAddr,
    pub form: HttpVariant,
}

/// A form of MCP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVariant {
    Streamable,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// Serves any number of clients until `ended` resolves; `announce` gets the URL once the server can be reached.
/// Calls that run at the end are dropped without a response.
///
/// # Errors
///
/// An unknown revision, a revision that the transport cannot carry, or an address that cannot be bound.
pub async fn serve_http(
    options: DemoServerOptions,
    place: ListenOptions,
    ended: impl Future<Output = ()>,
    announce: impl FnOnce(&str),
) -> io::Result<()> {
    let unsuitable = |sentence: String| io::Error::new(ErrorKind::InvalidInput, sentence);
    let root = DemoServer::new(options, environment()).map_err(unsuitable)?;
    if place.form == HttpVariant::Sse && root.for_session().is_none() {
        return Err(unsuitable("HTTP+SSE does not support stateless revisions; use --http".to_owned()));
    }
    let site = Arc::new(HttpSite::new(root));
    let listener = TcpListener::bind(place.address).await?;
    let address = listener.local_addr()?;
    let (path, routes) = match place.form {
        HttpVariant::Streamable => (streamable::PATH, streamable::routes(&site)),
        HttpVariant::Sse => (sse::PATH, sse::routes(&site)),
    };
    let routes = routes
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn(request_filter::reject_large_bodies))
        .layer(from_fn_with_state(address, request_filter::reject_foreign_origins));
    let tides = site.spawn_tide_changes()?;
    announce(&format!("http://{address}{path}"));
    let served = tokio::select! {
        // Set TCP_NODELAY, so that small events are not delayed.
        served = axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), routes) => served,
        () = ended => Ok(()),
    };
    if let Some(tides) = tides {
        tides.close();
    }
    served
}

/// Shared state of all requests.
struct HttpSite {
    /// Template for the servers of requests and sessions. Does not answer requests itself.
    root: DemoServer,
    /// True if a handshake revision is supported.
    has_sessions: bool,
    sessions: SessionTable,
    exchanges: Arc<Semaphore>,
}

impl HttpSite {
    fn new(root: DemoServer) -> Self {
        let (has_sessions, exchanges) = (root.for_session().is_some(), Arc::new(Semaphore::new(MAX_EXCHANGES)));
        Self { root, has_sessions, sessions: SessionTable::default(), exchanges }
    }

    /// Acquires a permit for one more exchange.
    fn admit_exchange(&self) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        Arc::clone(&self.exchanges).try_acquire_owned().map_err(|_| HttpRefusal::busy("too many exchanges are open"))
    }

    /// Starts the periodic changes for stateless requests. They stop when the returned server is closed.
    fn spawn_tide_changes(&self) -> io::Result<Option<Arc<DemoServer>>> {
        let Some(server) = self.root.for_request(HeaderParams::new()) else { return Ok(None) };
        let server = Arc::new(server);
        spawn_tide_changes(&server, Arc::new(NullOutbox))?;
        Ok(Some(server))
    }
}

/// Starts the periodic changes of `server`, if its options ask for them, and sends the notifications to `out`.
fn spawn_tide_changes(server: &Arc<DemoServer>, out: Arc<dyn Outbox>) -> io::Result<()> {
    let server = Arc::clone(server);
    thread::Builder::new().name("demo-tide".to_owned()).spawn(move || server.run_tide_changes(&*out))?;
    Ok(())
}

/// Discards messages. Stateless requests receive changes only through their own listen requests.
struct NullOutbox;

impl Outbox for NullOutbox {
    fn send(&self, _: Value) {}
}
