//! HTTP requests to authorization servers: bounded in size and time, and restricted to allowed addresses.

#[cfg(test)]
pub(crate) mod static_site;
#[cfg(test)]
mod tests;
mod url_check;

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::OnceCell;
use url::{Url, form_urlencoded};
use wharf_json::{JsonLimitExceeded, JsonLimits};
use wharf_net::{
    AddressPolicy, HeaderMap, HeaderName, HeaderValue, HttpRequest, Method, Net, NetOptions, NetworkZone,
    RedirectPolicy, SendError, StatusCode, header, ip_literal,
};

use crate::challenge::AuthChallenge;
use crate::settings::AuthSettings;

pub(crate) use url_check::{check_url, display_url, is_localhost};

/// Timeout of a request, from the connection to the last byte.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of a body in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Limits of JSON documents. The largest known documents have a few hundred values.
const JSON_LIMITS: JsonLimits = JsonLimits { depth: 32, nodes: 20_000 };
/// The latest protocol revision with a handshake. 2025-03-26 (authorization, 2.3.2) requires a version header on
/// metadata requests, before a version is negotiated.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// Domains that are only meaningful within a local network (RFC 6762, RFC 8375, ICANN's reserved `internal`, and others
/// in common use).
const LOCAL_DOMAINS: [&str; 6] = [".local", ".internal", ".home.arpa", ".lan", ".corp", ".intranet"];

/// Source of a URL. Determines the addresses it may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlSource {
    /// The user's settings. Any address is allowed.
    ByOwner,
    /// A server or an authorization server. Only public addresses and the zone of the server are allowed.
    ByServer,
}

impl UrlSource {
    /// Returns the source of a URL: the user, if it is one of the configured URLs.
    pub fn from_settings(address: &str, settings: &AuthSettings) -> Self {
        let given =
            [&settings.authorization_url, &settings.token_url, &settings.registration_url, &settings.device_url];
        match given.into_iter().flatten().any(|given| given == address) {
            true => Self::ByOwner,
            false => Self::ByServer,
        }
    }
}

/// Two connection pools: one for configured URLs, one for URLs named by servers. Created on first use.
#[derive(Clone)]
pub(crate) struct AuthHttpClient(Arc<HttpPools>);

struct HttpPools {
    server: Url,
    options: NetOptions,
    for_owner: OnceCell<Net>,
    for_others: OnceCell<Net>,
}

/// A response with its body, within the limits.
pub(crate) struct FetchedResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The body, if it is JSON.
    pub json: Option<Value>,
}

/// An error of a request. Never contains the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct FetchError {
    /// The URL and the problem, escaped.
    pub reason: String,
    /// The same request may succeed later.
    pub may_pass: bool,
}

struct FetchRequest<'a> {
    method: Method,
    address: &'a str,
    named: UrlSource,
    headers: HeaderMap,
    body: Bytes,
    redirects: RedirectPolicy,
}

impl AuthHttpClient {
    /// Creates the pools for one server, whose URL the user configured. Does no I/O.
    pub fn new(server: &Url, options: NetOptions) -> Self {
        let (for_owner, for_others) = (OnceCell::new(), OnceCell::new());
        Self(Arc::new(HttpPools { server: server.clone(), options, for_owner, for_others }))
    }

    /// Sends a `GET` request for a document.
    pub async fn get(&self, url: &str, named: UrlSource) -> Result<FetchedResponse, FetchError> {
        let revision = (HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static(PROTOCOL_VERSION));
        let headers = HeaderMap::from_iter([revision]);
        let (method, body, redirects) = (Method::GET, Bytes::new(), RedirectPolicy::SameOrigin);
        self.fetch(FetchRequest { method, address: url, named, headers, body, redirects }).await
    }

    /// Sends a form with `AUTH_POST`, with additional headers.
    pub async fn post_form(
        &self,
        url: &str,
        named: UrlSource,
        fields: &[(&str, &str)],
        mut headers: HeaderMap,
    ) -> Result<FetchedResponse, FetchError> {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into();
        let (method, redirects) = (Method::POST, RedirectPolicy::Refused);
        self.fetch(FetchRequest { method, address: url, named, headers, body, redirects }).await
    }

    /// Sends a JSON document with `AUTH_POST`.
    pub async fn post_json(&self, url: &str, named: UrlSource, body: &Value) -> Result<FetchedResponse, FetchError> {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let (method, body, redirects) = (Method::POST, body.to_string().into(), RedirectPolicy::Refused);
        self.fetch(FetchRequest { method, address: url, named, headers, body, redirects }).await
    }

    /// Sends an unauthenticated request to the server and returns its challenge. Some servers name their metadata URL
    /// only there. Reads only the headers. Errors are ignored.
    pub async fn probe_challenge(&self) -> Option<AuthChallenge> {
        let refused = tokio::time::timeout(PATIENCE, self.0.send_unauthenticated_ping()).await.ok()?.ok()?;
        AuthChallenge::most_specific(AuthChallenge::from_headers(&refused))
    }

    async fn fetch(&self, order: FetchRequest<'_>) -> Result<FetchedResponse, FetchError> {
        let address = order.address;
        let fetched = match check_url(address) {
            Ok(url) => tokio::time::timeout(PATIENCE, self.0.exchange(url, order)).await,
            Err(flaw) => Ok(Err(FetchProblem::permanent(flaw))),
        };
        let late = |_| Err(FetchProblem::transient(format!("no complete response within {} s", PATIENCE.as_secs())));
        fetched.unwrap_or_else(late).map_err(|trouble| FetchError {
            reason: format!("{}: {}", display_url(address), trouble.reason),
            may_pass: trouble.may_pass,
        })
    }
}

impl HttpPools {
    /// Sends an unauthenticated `ping` to the server.
    async fn send_unauthenticated_ping(&self) -> Result<HeaderMap, FetchProblem> {
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        ]);
        let (method, url, redirects) = (Method::POST, self.server.clone(), RedirectPolicy::SameOrigin);
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let net = self.pool_for(&url, UrlSource::ByOwner).await?;
        Ok(net.send(HttpRequest { method, url, headers, body, redirects }).await?.headers)
    }

    async fn exchange(&self, url: Url, order: FetchRequest<'_>) -> Result<FetchedResponse, FetchProblem> {
        let FetchRequest { method, mut headers, body, redirects, .. } = order;
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION"))));
        let net = self.pool_for(&url, order.named).await?;
        let mut response = net.send(HttpRequest { method, url, headers, body, redirects }).await?;
        let body = response.body.collect(MAX_BODY_BYTES).await.map_err(|error| FetchProblem {
            may_pass: matches!(error, wharf_net::BodyError::Broken(_)),
            reason: error.to_string(),
        })?;
        let json = parse_json(&body).map_err(|bound| FetchProblem::permanent(limit_text(bound)))?;
        Ok(FetchedResponse { status: response.status, headers: response.headers, json })
    }

    /// Returns the pool for a URL. URLs of the server's own origin are treated as configured.
    async fn pool_for(&self, url: &Url, named: UrlSource) -> Result<&Net, FetchProblem> {
        if named == UrlSource::ByOwner || url.origin() == self.server.origin() {
            return self.for_owner.get_or_try_init(|| self.open(AddressPolicy::Anywhere)).await;
        }
        let open =
            async || self.open(self.zone().await?.map_or(AddressPolicy::PublicOnly, AddressPolicy::PublicAnd)).await;
        self.for_others.get_or_try_init(open).await
    }

    /// Opens a pool. The client certificate is only used with configured URLs.
    async fn open(&self, reach: AddressPolicy) -> Result<Net, FetchProblem> {
        let mut options = self.options.clone();
        if reach != AddressPolicy::Anywhere {
            options.client_certificate = None;
        }
        options.reach = reach;
        Net::open(&options).await.map_err(|error| {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            FetchProblem::permanent(format!("{error}{cause}"))
        })
    }

    /// Returns the zone of the server, by its configured URL. A host name has a zone only if it cannot be resolved on
    /// the public internet.
    async fn zone(&self) -> Result<Option<NetworkZone>, FetchProblem> {
        let host = self.server.host_str().unwrap_or_default();
        if let Some(address) = ip_literal(host) {
            return Ok(NetworkZone::from_address(address));
        }
        if is_localhost(host) {
            return Ok(Some(NetworkZone::Loopback));
        }
        if !is_local_name(host) {
            return Ok(None);
        }
        match wharf_net::lookup_host(host).await {
            Ok(addresses) => Ok(zone_of_name(addresses.into_iter().map(|address| address.ip()))),
            // A name that only the proxy can resolve.
            Err(_) if self.options.proxy.is_some() => Ok(None),
            Err(error) => Err(FetchProblem::transient(format!("the server's host name cannot be resolved: {error}"))),
        }
    }
}

/// Reports whether a name is local: a single label, or under a domain that is never delegated. The owner of any other
/// name could point it to a local address at any time (T40).
fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    !name.contains('.') || LOCAL_DOMAINS.iter().any(|domain| name.ends_with(domain))
}

/// Returns the zone of a name with these addresses: private, if all of them are. Never loopback or link-local, where
/// cloud providers serve credentials.
fn zone_of_name(addresses: impl Iterator<Item = IpAddr>) -> Option<NetworkZone> {
    let mut zones = addresses.map(NetworkZone::from_address).peekable();
    zones.peek()?;
    zones.all(|zone| zone == Some(NetworkZone::Private)).then_some(NetworkZone::Private)
}

/// An error before the URL is added.
struct FetchProblem {
    reason: String,
    may_pass: bool,
}

impl FetchProblem {
    fn permanent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_pass: false }
    }

    fn transient(reason: String) -> Self {
        Self { reason, may_pass: true }
    }
}

impl From<SendError> for FetchProblem {
    fn from(error: SendError) -> Self {
        let hint = match error {
            SendError::Blocked(_) => " (named by a server; set the URL under `oauth` in the entry to allow it)",
            _ => "",
        };
        Self { reason: format!("{error}{hint}"), may_pass: error.is_transient() }
    }
}

/// Returns the reason to reject a response that exceeds a limit.
fn limit_text(exceeded: JsonLimitExceeded) -> String {
    match exceeded {
        JsonLimitExceeded::Depth(_) => format!("the response is {exceeded}"),
        JsonLimitExceeded::Nodes(_) => format!("the response has {exceeded}"),
    }
}

/// Parses a body as JSON. The limits are checked only if it starts like JSON, since other content may have any number
/// of brackets.
fn parse_json(body: &[u8]) -> Result<Option<Value>, JsonLimitExceeded> {
    if matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
        JSON_LIMITS.check(body)?;
    }
    Ok(serde_json::from_slice(body).ok())
}
