//! Which requests are read at all: those that name this server as their `Host` and come from no other web page.
//!
//! A web page can send requests to loopback, and with DNS rebinding even read the responses. It cannot forge these two
//! headers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};

use crate::service::Service;

/// The hosts under which a server is reached.
#[derive(Debug, Clone)]
pub struct AllowedHosts {
    port: u16,
    /// Scheme of the loopback names.
    scheme: &'static str,
    /// Further origins, such as `https://gateway.example`.
    public: Vec<String>,
}

/// Reason for refusing a request by its `Host` or `Origin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRefusal {
    /// The `Host` is not this server.
    ForeignHost,
    /// The `Origin` is another page than this server's.
    ForeignOrigin,
}

impl AllowedHosts {
    /// The loopback names of an address.
    pub fn loopback(address: SocketAddr) -> Self {
        Self { port: address.port(), scheme: "http", public: Vec::new() }
    }

    /// Expects `https` at the loopback names.
    #[must_use]
    pub fn with_tls(mut self) -> Self {
        self.scheme = "https";
        self
    }

    /// Adds an origin under which clients reach the server, such as `https://gateway.example`.
    #[must_use]
    pub fn with_public(mut self, origin: impl Into<String>) -> Self {
        self.public.push(origin.into().trim_end_matches('/').to_ascii_lowercase());
        self
    }

    /// Checks the `Host` and the `Origin` of a request (2026-07-28 basic/transports, "Security").
    ///
    /// # Errors
    ///
    /// Returns the header that names something else.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), HostRefusal> {
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(HostRefusal::ForeignHost);
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let public = self.public.iter().find(|origin| authority(origin).eq_ignore_ascii_case(host));
        if public.is_none() && !self.is_loopback(host) {
            return Err(HostRefusal::ForeignHost);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let is_own = origins.next().is_none()
            && match public {
                Some(public) => origin.as_bytes().eq_ignore_ascii_case(public.as_bytes()),
                None => origin.to_str().is_ok_and(|origin| origin.split_once("://") == Some((self.scheme, host))),
            };
        if is_own { Ok(()) } else { Err(HostRefusal::ForeignOrigin) }
    }

    fn is_loopback(&self, host: &str) -> bool {
        let default_port = if self.scheme == "https" { "443" } else { "80" };
        let (name, port) = host.rsplit_once(':').unwrap_or((host, default_port));
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_loopback = bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        port == self.port.to_string() && (is_loopback || name.eq_ignore_ascii_case("localhost"))
    }
}

/// Finds the client that a token belongs to.
pub trait Authenticator: Send + Sync + 'static {
    /// Returns the client that presents a bearer token. Must not block.
    fn authenticate(&self, token: &str) -> Option<AuthenticatedClient>;
}

/// A client that has presented its token.
#[derive(Clone)]
pub struct AuthenticatedClient {
    /// Identifies the client. A session belongs to the principal that opened it.
    pub principal: Arc<str>,
    /// The server that this client gets.
    pub service: Arc<dyn Service>,
}

/// Who may send requests.
#[derive(Clone)]
pub enum ClientAccess {
    /// Everyone who reaches the address.
    Anyone,
    /// Clients that present this token. Only its digest is kept.
    Token([u8; 32]),
    /// Clients that an authenticator knows by their tokens.
    Clients(Arc<dyn Authenticator>),
}

impl ClientAccess {
    /// Requires a token.
    pub fn token(token: &str) -> Self {
        Self::Token(Sha256::digest(token).into())
    }

    /// Returns the client of a request, if it presents what is required. Clients that are not told apart share one
    /// principal and the `usual` server.
    pub(crate) fn identify(&self, headers: &HeaderMap, usual: &Arc<dyn Service>) -> Option<AuthenticatedClient> {
        let usual = || AuthenticatedClient { principal: Arc::default(), service: Arc::clone(usual) };
        match self {
            Self::Anyone => Some(usual()),
            // Digests are compared, so that the time it takes tells nothing about the token.
            Self::Token(expected) => {
                let presented: [u8; 32] = Sha256::digest(bearer_token(headers)?).into();
                (presented == *expected).then(usual)
            }
            Self::Clients(clients) => clients.authenticate(bearer_token(headers)?),
        }
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let presented = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = presented.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the host and port of an origin.
fn authority(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, authority)| authority)
}

impl HostRefusal {
    /// Returns the reason as a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ForeignHost => "the `Host` is not this server",
            Self::ForeignOrigin => "the `Origin` is another page than this server's",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, is_welcome: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let allowed = AllowedHosts::loopback("127.0.0.1:8080".parse().unwrap()).with_public("https://Gate.example/");
        assert_eq!(allowed.check(&headers).is_ok(), is_welcome, "{host} {origin:?}");
    }

    struct NoService;

    impl Service for NoService {
        fn has_sessions(&self) -> bool {
            false
        }

        fn open_session(&self) -> Option<Arc<dyn crate::service::ClientConnection>> {
            None
        }

        fn open_request(&self, _: &HeaderMap) -> Option<Arc<dyn crate::service::ClientConnection>> {
            None
        }
    }

    #[test]
    fn token_is_required() {
        let usual: Arc<dyn Service> = Arc::new(NoService);
        let access = ClientAccess::token("secret");
        for (value, is_granted) in [
            ("Bearer secret", true),
            ("bearer  secret", true),
            ("Bearer Secret", false),
            ("Basic secret", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(access.identify(&headers, &usual).is_some(), is_granted, "{value}");
        }
        assert!(access.identify(&HeaderMap::new(), &usual).is_none());
        assert!(ClientAccess::Anyone.identify(&HeaderMap::new(), &usual).is_some());
    }

    #[test]
    fn foreign_hosts_and_origins_are_rejected() {
        check("127.0.0.1:8080", None, true);
        check("localhost:8080", None, true);
        check("[::1]:8080", None, true);
        check("gate.example", None, true);
        check("127.0.0.1:8081", None, false);
        check("127.0.0.1:+8080", None, false);
        check("127.0.0.1", None, false);
        check("evil.example:8080", None, false);
        check("127.0.0.1.evil.example:8080", None, false);
        check("gate.example:8080", None, false);
        check("", None, false);
        check("localhost:8080", Some("http://localhost:8080"), true);
        check("gate.example", Some("https://gate.example"), true);
        check("localhost:8080", Some("http://127.0.0.1:8080"), false);
        check("localhost:8080", Some("http://localhost:3000"), false);
        check("localhost:8080", Some("https://gate.example"), false);
        check("gate.example", Some("http://gate.example"), false);
        check("localhost:8080", Some("https://evil.example"), false);
        check("localhost:8080", Some("null"), false);
    }

    #[test]
    fn repeated_hosts_and_origins_are_rejected() {
        let allowed = AllowedHosts::loopback("127.0.0.1:8080".parse().unwrap());
        for name in [header::HOST, header::ORIGIN] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:8080".parse().unwrap());
            headers.insert(header::ORIGIN, "http://localhost:8080".parse().unwrap());
            assert!(allowed.check(&headers).is_ok());
            headers.append(&name, headers[&name].clone());
            assert!(allowed.check(&headers).is_err(), "{name}");
        }
    }
}
