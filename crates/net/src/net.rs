//! The connection pool, and sending requests through it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;
use wharf_spec::{Secret, mask_url_secrets};

use crate::address_policy::{AddressPolicy, ip_literal};
use crate::authorize::{
    AuthRecovery, AuthRejection, Authorizer, NotAuthorized, OriginAuthorizer, RequestAuthorization,
};
use crate::body::ResponseBody;
use crate::clients::{ClientSettings, HttpClients};
use crate::error::{ConnectRoute, NetOpenError, SendError};
use crate::resolve::{PolicyResolver, lookup_host};

/// Maximum redirects of one request within its origin.
const MAX_REDIRECTS: usize = 5;
/// Maximum retries of one request after 401 or 403, regardless of the authorizer.
const MAX_AUTH_RETRIES: u32 = 6;
/// Maximum bytes to read from the body of a rejection so that its connection can be reused.
const MAX_REJECTION_BODY_BYTES: usize = 64 << 10;
/// Maximum time to spend on that.
const REJECTION_BODY_TIMEOUT: Duration = Duration::from_millis(250);
/// Time after which an unused connection is closed.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of keep-alive probes on idle connections.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum size of all response headers together, in bytes.
const MAX_HEADER_BYTES: u32 = 64 << 10;

/// Options of the connection pool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NetOptions {
    /// URL of the proxy for all requests.
    pub proxy: Option<Secret>,
    /// PEM files with certificates to trust in addition to the system's.
    pub extra_ca: Vec<PathBuf>,
    /// PEM file with the client certificate and its key.
    pub client_certificate: Option<PathBuf>,
    /// Timeout for name resolution, connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Addresses that may be connected to.
    pub reach: AddressPolicy,
}

impl Default for NetOptions {
    fn default() -> Self {
        Self {
            proxy: None,
            extra_ca: Vec::new(),
            client_certificate: None,
            connect_timeout: Duration::from_secs(10),
            reach: AddressPolicy::Anywhere,
        }
    }
}

/// A connection pool. Cheap to clone.
#[derive(Clone)]
pub struct Net {
    clients: Arc<HttpClients>,
    reach: AddressPolicy,
    way: ConnectRoute,
    authorized: Option<OriginAuthorizer>,
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// The HTTP method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. Empty for none.
    pub body: Bytes,
    /// The redirects that are followed.
    pub redirects: RedirectPolicy,
}

/// Policy for redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// No redirect is followed.
    Refused,
    /// Redirects within the same origin that preserve method and body (307 and 308) are followed.
    SameOrigin,
}

/// A response with an unread body.
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The URL after redirects.
    pub url: Url,
    /// The body.
    pub body: ResponseBody,
    /// The authorization error, if an authorizer was consulted about a 401 or 403 and could not resolve it.
    pub not_authorized: Option<NotAuthorized>,
}

impl Net {
    /// Reads the certificate files of the options and creates the pool. Opens no connections, and reads the system's
    /// certificates only when a connection uses TLS.
    pub async fn open(options: &NetOptions) -> Result<Self, NetOpenError> {
        let way = ConnectRoute { connect_timeout: options.connect_timeout, proxied: options.proxy.is_some() };
        let mut extra_ca = Vec::new();
        for file in &options.extra_ca {
            let found = reqwest::Certificate::from_pem_bundle(&read_file(file).await?);
            let found = found.ok().filter(|found| !found.is_empty());
            extra_ca.extend(found.ok_or_else(|| NetOpenError::NoCertificate(file.clone()))?);
        }
        let identity = match &options.client_certificate {
            Some(file) => {
                let identity = reqwest::Identity::from_pem(&read_file(file).await?);
                Some(identity.map_err(|_| NetOpenError::NoIdentity(file.clone()))?)
            }
            None => None,
        };
        // With a proxy, only the proxy's own name is resolved, and the user configured it.
        let resolvable = if way.proxied { AddressPolicy::Anywhere } else { options.reach };
        let settings = ClientSettings {
            builder: Box::new(move || client_builder(way.connect_timeout, resolvable)),
            proxy: options.proxy.as_ref().map(parse_proxy).transpose()?,
            proxy_uses_tls: options
                .proxy
                .as_ref()
                .is_some_and(|proxy| proxy_scheme(proxy).eq_ignore_ascii_case("https")),
            extra_ca,
            identity,
        };
        let clients =
            HttpClients::new(settings).map_err(|error| NetOpenError::Encryption(crate::error::cause_chain(&error)))?;
        Ok(Self { clients: Arc::new(clients), reach: options.reach, way, authorized: None })
    }

    /// Adds an authorizer for one server. Requests to the server's origin carry the authorizer's credentials and are
    /// retried after the authorizer has handled a rejection. Requests to other origins are unaffected.
    #[must_use]
    pub fn with_authorizer(self, authorizer: Arc<dyn Authorizer>, server: &Url) -> Self {
        Self { authorized: Some(OriginAuthorizer { authorizer, origin: server.origin() }), ..self }
    }

    /// Sends a request and returns the response as soon as its headers are available.
    ///
    /// # Cancel safety
    /// If the future is dropped, the request may or may not have been sent.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, SendError> {
        match self.authorized.as_ref().and_then(|authorized| authorized.authorization_for(&request.url)) {
            // Boxed to keep the future of unauthorized requests small.
            Some(bearer) => Box::pin(self.send_authorized(bearer, &request)).await,
            None => self.send_following_redirects(&request, None).await,
        }
    }

    /// Retries a request while it is rejected and the authorizer can handle the rejection.
    async fn send_authorized(
        &self,
        mut bearer: RequestAuthorization<'_>,
        request: &HttpRequest,
    ) -> Result<HttpResponse, SendError> {
        let mut refusals = 0;
        loop {
            let answer = self.send_following_redirects(request, Some(&mut bearer)).await;
            let mut response =
                answer.map_err(|error| if refusals > 0 { error.after_earlier_attempt() } else { error })?;
            let status = response.status.as_u16();
            if !matches!(status, 401 | 403) {
                return Ok(response);
            }
            let refusal = AuthRejection { status, headers: response.headers.clone(), serial: bearer.serial };
            let mended = if refusals < MAX_AUTH_RETRIES {
                bearer.on_rejection(refusal).await
            } else {
                Err(too_many_rejections())
            };
            if let Err(why) = mended {
                response.not_authorized = Some(why);
                return Ok(response);
            }
            refusals += 1;
            let _ = tokio::time::timeout(REJECTION_BODY_TIMEOUT, response.body.collect(MAX_REJECTION_BODY_BYTES)).await;
            // The connection returns to the pool in a separate task. Without this yield the next request would open
            // another connection.
            tokio::task::yield_now().await;
        }
    }

    /// Sends a request and follows its redirects.
    async fn send_following_redirects(
        &self,
        request: &HttpRequest,
        mut bearer: Option<&mut RequestAuthorization<'_>>,
    ) -> Result<HttpResponse, SendError> {
        let mut url = request.url.clone();
        for redirects in 0..=MAX_REDIRECTS {
            let answer = self.send_once(request, url.clone(), bearer.as_deref_mut()).await;
            // The redirecting server has already received the request.
            let answer = answer.map_err(|error| if redirects > 0 { error.after_earlier_attempt() } else { error })?;
            let sent_on = request.redirects == RedirectPolicy::SameOrigin && preserves_method(answer.status());
            if !sent_on {
                return into_response(answer, url);
            }
            url = same_origin_redirect(&answer, &url)?;
        }
        Err(SendError::RedirectLoop)
    }

    async fn send_once(
        &self,
        request: &HttpRequest,
        url: Url,
        mut bearer: Option<&mut RequestAuthorization<'_>>,
    ) -> Result<reqwest::Response, SendError> {
        self.check_address(&url).await?;
        let mut outgoing = reqwest::Request::new(request.method.clone(), url);
        outgoing.headers_mut().clone_from(&request.headers);
        if let Some(bearer) = &mut bearer {
            let carried = bearer.headers(&request.method, outgoing.url()).await.map_err(SendError::NotAuthorized)?;
            outgoing.headers_mut().extend(carried);
        }
        if !request.body.is_empty() {
            *outgoing.body_mut() = Some(request.body.clone().into());
        }
        let client = self.clients.for_url(outgoing.url()).await?;
        let answer = client.execute(outgoing).await.map_err(|error| SendError::from_reqwest(&error, &self.way))?;
        if let Some(bearer) = bearer {
            bearer.on_response(answer.status(), answer.headers());
        }
        Ok(answer)
    }

    /// Rejects URLs that must not be connected to. Names are checked by the resolver. With a proxy, names are resolved
    /// here for the check only; a name that only the proxy can resolve is left to the proxy.
    async fn check_address(&self, url: &Url) -> Result<(), SendError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(SendError::Unsendable(format!(
                "unsupported URL scheme `{}` (expected http or https)",
                url.scheme()
            )));
        }
        let host = url.host_str().unwrap_or_default();
        let refused = match ip_literal(host) {
            Some(address) => Some(address).filter(|address| !self.reach.allows(*address)),
            None if self.way.proxied && self.reach != AddressPolicy::Anywhere => self.forbidden_address_of(host).await,
            None => None,
        };
        refused.map_or(Ok(()), |address| Err(SendError::Blocked(address)))
    }

    /// Returns a forbidden address of this name, if it resolves to one.
    async fn forbidden_address_of(&self, host: &str) -> Option<IpAddr> {
        let found = tokio::time::timeout(self.way.connect_timeout, lookup_host(host)).await;
        let mut addresses = found.ok()?.ok()?.into_iter().map(|address| address.ip());
        addresses.find(|address| !self.reach.allows(*address))
    }
}

/// Returns a client builder with the settings that do not concern TLS and the proxy.
fn client_builder(connect_timeout: Duration, resolvable: AddressPolicy) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(connect_timeout)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEP_ALIVE_INTERVAL)
        .tcp_keepalive_interval(KEEP_ALIVE_INTERVAL)
        .tcp_keepalive_retries(2)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_INTERVAL)
        .dns_resolver(PolicyResolver::new(resolvable))
}

fn proxy_scheme(url: &Secret) -> &str {
    url.reveal().split_once("://").map_or("http", |(scheme, _)| scheme)
}

fn parse_proxy(url: &Secret) -> Result<reqwest::Proxy, NetOpenError> {
    let scheme = proxy_scheme(url);
    // Another scheme would be accepted here and fail at the first request.
    if !["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        return Err(NetOpenError::Proxy);
    }
    reqwest::Proxy::all(url.reveal()).map_err(|_| NetOpenError::Proxy)
}

async fn read_file(file: &Path) -> Result<Vec<u8>, NetOpenError> {
    let path = file.to_owned();
    let read = wharf_threads::run_blocking(move || std::fs::read(path)).await.flatten();
    read.map_err(|error| NetOpenError::Unreadable { file: file.to_owned(), error })
}

fn preserves_method(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

fn into_response(answer: reqwest::Response, url: Url) -> Result<HttpResponse, SendError> {
    let status = answer.status();
    if let Some(problem) = header_problem(answer.headers()) {
        return Err(SendError::Broken(problem.to_owned()));
    }
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        return Err(SendError::Redirected {
            status,
            to: redirect_target(&answer, &url).as_ref().map(mask_url_secrets),
        });
    }
    let headers = answer.headers().clone();
    Ok(HttpResponse { status, headers, url, body: ResponseBody::new(answer), not_authorized: None })
}

fn too_many_rejections() -> NotAuthorized {
    let reason = format!("the server rejected the request {} times despite new credentials", MAX_AUTH_RETRIES + 1);
    NotAuthorized { remedy: AuthRecovery::Reading, reason }
}

/// Returns a problem with the response headers that the HTTP library tolerates.
fn header_problem(headers: &HeaderMap) -> Option<&'static str> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    // Request smuggling: parsers disagree on which length applies (RFC 9112, 6.3).
    if headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH) {
        return Some("the response has both Transfer-Encoding and Content-Length");
    }
    (bytes > MAX_HEADER_BYTES as usize).then_some("the response headers are too large")
}

/// Returns the target of a redirect.
fn redirect_target(answer: &reqwest::Response, from: &Url) -> Option<Url> {
    let location = answer.headers().get(header::LOCATION)?;
    from.join(&String::from_utf8_lossy(location.as_bytes())).ok()
}

/// Returns the target of a redirect, if it has the same origin.
fn same_origin_redirect(answer: &reqwest::Response, from: &Url) -> Result<Url, SendError> {
    let next = redirect_target(answer, from);
    // Without the query, which may contain secrets.
    let to = next.as_ref().map(mask_url_secrets);
    let next = next.filter(|next| next.origin() == from.origin());
    next.ok_or(SendError::Redirected { status: answer.status(), to })
}
