//! An HTTP proxy with configurable faults (H31).
//!
//! It records the requested targets, so that a test can verify that a configured proxy is used and that one from the
//! environment is not. All tunnels lead to one address, regardless of the requested name: no name is resolved and no
//! traffic leaves loopback.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use super::endpoint::{AcceptedConnection, Endpoint};
use super::http1::read_head;
use super::relay::{FaultRelay, ForwardedBytes};
use super::script::FaultScript;

/// The proxy's treatment of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyBehaviour {
    /// Opens a tunnel to this address for CONNECT, and forwards one plain request.
    Works(SocketAddr),
    /// Works if `Proxy-Authorization` has this value, and answers 407 otherwise.
    Demands(String, SocketAddr),
    /// Always answers 407.
    Refuses,
    /// Answers 502.
    BadGateway,
    /// Answers with bytes that are not HTTP.
    Garbage,
    /// Reads the request and never answers.
    Silent,
}

/// A request received by the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRequest {
    /// Method and target: `CONNECT host:port`, or `POST http://host:port/path`.
    pub line: String,
    pub authorization: Option<String>,
}

/// A proxy on loopback. Dropping it closes all its connections.
pub struct ConnectProxy {
    endpoint: Endpoint,
    asked: Arc<Mutex<Vec<ProxyRequest>>>,
}

impl ConnectProxy {
    pub fn start(manner: ProxyBehaviour) -> io::Result<ConnectProxy> {
        let asked = Arc::<Mutex<Vec<ProxyRequest>>>::default();
        let ours = Arc::clone(&asked);
        let endpoint = Endpoint::start(move |guest| {
            serve_connection(guest, &manner, &ours).ok();
        })?;
        Ok(ConnectProxy { endpoint, asked })
    }

    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// Returns all requests received so far.
    pub fn requests(&self) -> Vec<ProxyRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve_connection(
    mut guest: AcceptedConnection,
    manner: &ProxyBehaviour,
    asked: &Mutex<Vec<ProxyRequest>>,
) -> io::Result<()> {
    let Some(head) = read_head(&mut guest)? else { return Ok(()) };
    let this = parse_request(&head);
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(this.clone());
    match manner {
        ProxyBehaviour::Works(server) => forward(guest, &head, *server),
        ProxyBehaviour::Demands(value, server) if this.authorization.as_ref() == Some(value) => {
            forward(guest, &head, *server)
        }
        ProxyBehaviour::Demands(..) | ProxyBehaviour::Refuses => {
            let demand = "Proxy-Authenticate: Basic realm=\"proxy\"\r\nContent-Length: 0\r\n";
            respond_and_close(guest, &format!("HTTP/1.1 407 Proxy Authentication Required\r\n{demand}\r\n"))
        }
        ProxyBehaviour::BadGateway => respond_and_close(guest, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
        ProxyBehaviour::Garbage => respond_and_close(guest, "\u{1}\u{2}\u{3} no proxy here\r\n\r\n"),
        ProxyBehaviour::Silent => {
            guest.wait_for_disconnect();
            Ok(())
        }
    }
}

fn parse_request(head: &str) -> ProxyRequest {
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| value.trim().to_owned())
    };
    let line = line.rsplit_once(' ').map_or(line, |(asked, _version)| asked);
    ProxyRequest { line: line.to_owned(), authorization: lines.find_map(header) }
}

fn respond_and_close(mut guest: AcceptedConnection, text: &str) -> io::Result<()> {
    guest.write_all(text.as_bytes())?;
    guest.finish();
    Ok(())
}

fn forward(mut guest: AcceptedConnection, head: &str, server: SocketAddr) -> io::Result<()> {
    let mut behind = TcpStream::connect(server)?;
    if head.starts_with("CONNECT ") {
        guest.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    } else {
        behind.write_all(direct_head(head).as_bytes())?;
    }
    let (client, ending) = guest.into_parts();
    FaultRelay::new([client, behind], FaultScript::default().lanes(1), &ForwardedBytes::default(), &ending)?.run();
    Ok(())
}

/// Rewrites the head for the server: path only, without proxy headers, and with `Connection: close`, because a second
/// request would be forwarded without inspection.
fn direct_head(head: &str) -> String {
    let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut words = line.splitn(3, ' ');
    let (method, target, version) = (words.next(), words.next().unwrap_or_default(), words.next());
    let after_scheme = target.split_once("://").map_or(target, |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("/", |start| &after_scheme[start..]);
    let kept = headers.lines().filter(|line| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        !name.is_empty() && name != "connection" && !name.starts_with("proxy-")
    });
    let kept: String = kept.map(|line| format!("{line}\r\n")).collect();
    format!("{} {path} {}\r\n{kept}Connection: close\r\n\r\n", method.unwrap_or_default(), version.unwrap_or_default())
}
