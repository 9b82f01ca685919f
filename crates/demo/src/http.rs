//! The demo server over HTTP, on loopback only: Streamable HTTP of both eras, or the HTTP+SSE of 2024-11-05.
//!
//! `wharf_serve` is the transport. There is no authentication: any process that reaches the port can call the tools.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use wharf_serve::{
    ClientAccess, ClientConnection, ClientMessage, HeaderMap, HttpLimits, HttpServer, OutgoingMessage, RawJson,
    Revision, Service,
};

use super::message::{IncomingMessage, Outbox, classify};
use super::server::{DemoServer, DemoServerOptions, HeaderParams, not_json};
use super::stdio::environment;

pub use wharf_serve::{HttpForm, parse_loopback_address as parse_address};

/// Address and form to serve.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Loopback address. Port 0 picks a free port.
    pub address: SocketAddr,
    /// Form of HTTP to serve.
    pub form: HttpForm,
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
    let service = Arc::new(DemoService { has_sessions: root.for_session().is_some(), root });
    if place.form == HttpForm::Sse && !service.has_sessions {
        return Err(unsuitable("HTTP+SSE does not support stateless revisions; use --http".to_owned()));
    }
    let server =
        HttpServer::bind(place.address, place.form, Arc::clone(&service) as _, ClientAccess::Anyone, limits()).await?;
    let tides = service.spawn_tide_changes()?;
    announce(&server.url()?);
    server.run(ended).await;
    if let Some(tides) = tides {
        tides.close();
    }
    Ok(())
}

fn limits() -> HttpLimits {
    let mut limits = HttpLimits::default();
    limits.exchanges = 256;
    limits.sessions = 64;
    limits.stream_delay = Duration::from_millis(500);
    limits
}

struct DemoService {
    /// Template for the servers of requests and sessions. Does not answer requests itself.
    root: DemoServer,
    has_sessions: bool,
}

impl DemoService {
    /// Starts the periodic changes for stateless requests. They stop when the returned server is closed.
    fn spawn_tide_changes(&self) -> io::Result<Option<Arc<DemoServer>>> {
        let Some(server) = self.root.for_request(HeaderParams::new()) else { return Ok(None) };
        let server = Arc::new(server);
        spawn_tide_changes(&server, Arc::new(NullOutbox))?;
        Ok(Some(server))
    }
}

impl Service for DemoService {
    fn has_sessions(&self) -> bool {
        self.has_sessions
    }

    fn open_session(&self) -> Option<Arc<dyn ClientConnection>> {
        Some(Arc::new(DemoConnection::new(self.root.for_session()?)))
    }

    fn open_request(&self, headers: &HeaderMap) -> Option<Arc<dyn ClientConnection>> {
        Some(Arc::new(DemoConnection::new(self.root.for_request(header_params(headers))?)))
    }
}

/// Returns the arguments repeated in headers, undecoded.
fn header_params(headers: &HeaderMap) -> HeaderParams {
    let params = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-param-"));
    params.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect()
}

/// A server of one session or one request.
struct DemoConnection {
    server: Arc<DemoServer>,
    /// The session's own stream. Tasks outlive their requests and refer to it.
    session: OnceLock<Arc<dyn Outbox>>,
}

impl DemoConnection {
    fn new(server: DemoServer) -> Self {
        Self { server: Arc::new(server), session: OnceLock::new() }
    }
}

impl ClientConnection for DemoConnection {
    fn receive(&self, message: ClientMessage, out: Arc<dyn wharf_serve::Outbox>) {
        let out: Arc<dyn Outbox> = Arc::new(JsonOutbox { out, session: self.session.get().cloned() });
        self.server.handle(message.text(), &out);
    }

    fn admit(&self, request: &ClientMessage) -> Result<(), OutgoingMessage> {
        let message = serde_json::from_slice(request.text());
        let message = message.map_err(|error| outgoing(&not_json(&error).reply(Value::Null)))?;
        match classify(message).map_err(|reply| outgoing(&reply))? {
            IncomingMessage::Request(request) => {
                let admitted = self.server.admit(&request).map(|_| ());
                admitted.map_err(|error| outgoing(&error.reply(request.id)))
            }
            _ => Ok(()),
        }
    }

    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        self.server.input_schema(tool).map(|schema| RawJson::new_unchecked(schema.to_string()))
    }

    fn revision(&self) -> Option<Revision> {
        self.server.negotiated()?.as_str().parse().ok()
    }

    fn attach(&self, out: Arc<dyn wharf_serve::Outbox>) -> io::Result<()> {
        let session: Arc<dyn Outbox> = Arc::new(JsonOutbox { out, session: None });
        let session = self.session.get_or_init(|| session);
        spawn_tide_changes(&self.server, Arc::clone(session))
    }

    fn cancel_pending(&self) {
        self.server.cancel_pending();
    }

    fn close(&self) {
        self.server.close();
    }
}

/// Starts the periodic changes of `server`, if its options ask for them, and sends the notifications to `out`.
fn spawn_tide_changes(server: &Arc<DemoServer>, out: Arc<dyn Outbox>) -> io::Result<()> {
    let server = Arc::clone(server);
    thread::Builder::new().name("demo-tide".to_owned()).spawn(move || server.run_tide_changes(&*out))?;
    Ok(())
}

/// Writes the demo server's messages as text.
struct JsonOutbox {
    out: Arc<dyn wharf_serve::Outbox>,
    /// The session's own stream, if there is a session.
    session: Option<Arc<dyn Outbox>>,
}

impl Outbox for JsonOutbox {
    fn send(&self, message: Value) {
        self.out.send(outgoing(&message));
    }

    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        self.session.clone()
    }
}

fn outgoing(message: &Value) -> OutgoingMessage {
    let text = message.to_string();
    match message["error"]["code"].as_i64() {
        Some(code) => OutgoingMessage::error(text, code),
        None if message.get("method").is_none() => OutgoingMessage::response(text),
        None => OutgoingMessage::unsolicited(text),
    }
}

/// Discards messages. Stateless requests receive changes only through their own listen requests.
struct NullOutbox;

impl Outbox for NullOutbox {
    fn send(&self, _: Value) {}
}
