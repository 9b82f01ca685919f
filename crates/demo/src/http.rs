//! The demo server over HTTP, on loopback only: Streamable HTTP in both eras, or the HTTP+SSE of 2024-11-05.
//!
//! Owns the listener, the routes and every bound; what the messages mean is the business of
//! [`DemoServer`]. Nothing here is for the open: whoever can reach the port can call the tools.

mod address;
mod answer;
mod door;
mod feed;
mod headers;
mod outbox;
mod reader;
mod refusal;
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
use super::server::{DemoServer, Mirrored, Options};
use super::stdio::environment;
use refusal::Refusal;
use sessions::Sessions;

pub use address::parse as parse_address;

/// The largest body of a request.
const LARGEST_BODY: usize = 4 * 1024 * 1024;

/// How many exchanges may be open at once, over all clients.
const MOST_EXCHANGES: usize = 256;

/// Where and how to serve.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Loopback; port 0 takes any that is free.
    pub address: SocketAddr,
    pub form: Form,
}

/// A form of MCP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Streamable,
    /// The one of 2024-11-05.
    Sse,
}

/// Serves any number of clients until `ended` resolves; `announce` gets the URL once the server can be reached.
/// Calls that run at the end are dropped without a response.
///
/// # Errors
///
/// An unknown revision, a revision that the transport cannot carry, or an address that cannot be bound.
pub async fn serve_http(
    options: Options,
    place: Place,
    ended: impl Future<Output = ()>,
    announce: impl FnOnce(&str),
) -> io::Result<()> {
    let unsuitable = |sentence: String| io::Error::new(ErrorKind::InvalidInput, sentence);
    let root = DemoServer::new(options, environment()).map_err(unsuitable)?;
    if place.form == Form::Sse && root.for_session().is_none() {
        return Err(unsuitable("the HTTP+SSE form carries no stateless revision; use --http for it".to_owned()));
    }
    let site = Arc::new(Site::new(root));
    let listener = TcpListener::bind(place.address).await?;
    let address = listener.local_addr()?;
    let (path, routes) = match place.form {
        Form::Streamable => (streamable::PATH, streamable::routes(&site)),
        Form::Sse => (sse::PATH, sse::routes(&site)),
    };
    let routes = routes
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(from_fn(door::only_bounded))
        .layer(from_fn_with_state(address, door::only_own_pages));
    let tides = site.turn_tides()?;
    announce(&format!("http://{address}{path}"));
    let served = tokio::select! {
        // Small events must not wait for each other.
        served = axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), routes) => served,
        () = ended => Ok(()),
    };
    if let Some(tides) = tides {
        tides.close();
    }
    served
}

/// What all requests meet.
struct Site {
    /// What the servers of requests and sessions are made from; answers nobody itself.
    root: DemoServer,
    /// Whether a handshake revision is spoken.
    has_sessions: bool,
    sessions: Sessions,
    exchanges: Arc<Semaphore>,
}

impl Site {
    fn new(root: DemoServer) -> Self {
        let (has_sessions, exchanges) = (root.for_session().is_some(), Arc::new(Semaphore::new(MOST_EXCHANGES)));
        Self { root, has_sessions, sessions: Sessions::default(), exchanges }
    }

    /// Makes room for one more exchange, until the permit is dropped.
    fn admit_exchange(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.exchanges).try_acquire_owned().map_err(|_| Refusal::busy("too many exchanges are open"))
    }

    /// Has the port of the stateless requests change by itself, until the server given back is closed.
    fn turn_tides(&self) -> io::Result<Option<Arc<DemoServer>>> {
        let Some(server) = self.root.for_request(Mirrored::new()) else { return Ok(None) };
        let server = Arc::new(server);
        turn_tides(&server, Arc::new(Nowhere))?;
        Ok(Some(server))
    }
}

/// Has the port of `server` change by itself, if its options say so, and tells of it by `out`.
fn turn_tides(server: &Arc<DemoServer>, out: Arc<dyn Outbox>) -> io::Result<()> {
    let server = Arc::clone(server);
    thread::Builder::new().name("demo-tide".to_owned()).spawn(move || server.turn_tides(&*out))?;
    Ok(())
}

/// Where stateless requests hear of changes: on their listens alone.
struct Nowhere;

impl Outbox for Nowhere {
    fn send(&self, _: Value) {}
}
