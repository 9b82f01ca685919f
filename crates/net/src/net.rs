//! One pool of connections, and what may be sent through it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;
use wharf_spec::{Secret, shown_url};

use crate::authorize::{Authorized, Authorizer, Bearer, NotAuthorized, Refusal, Remedy};
use crate::body::Body;
use crate::error::{OpenError, SendError, Way};
use crate::reach::{Reach, literal};
use crate::resolve::Resolver;

/// How often one request may be sent on to another place of the same origin.
const MOST_REDIRECTS: usize = 5;
/// How often one request may be made again because the first was turned away, whatever the authorizer says.
const MOST_REFUSALS: u32 = 6;
/// What is read of an answer that turns a request away, so that its connection can be used again: little, and soon.
const REFUSAL_BYTES: usize = 64 << 10;
const REFUSAL_TIME: Duration = Duration::from_millis(250);
/// How long a connection is kept that nobody uses.
const POOL_IDLE: Duration = Duration::from_secs(30);
/// How often a quiet connection is asked whether anybody is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Bytes of them all.
const MOST_HEADER_BYTES: u32 = 64 << 10;

/// How the way out is made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NetOptions {
    /// The proxy everything goes through, a URL.
    pub proxy: Option<Secret>,
    /// Files of certificates trusted beside the system's own, in PEM.
    pub extra_ca: Vec<PathBuf>,
    /// A file with a certificate and its key to show to servers, in PEM.
    pub client_certificate: Option<PathBuf>,
    /// How long resolving, dialling and agreeing on encryption may take together.
    pub connect_timeout: Duration,
    /// Which addresses may be dialled.
    pub reach: Reach,
}

impl Default for NetOptions {
    fn default() -> Self {
        Self {
            proxy: None,
            extra_ca: Vec::new(),
            client_certificate: None,
            connect_timeout: Duration::from_secs(10),
            reach: Reach::Anywhere,
        }
    }
}

/// A pool of connections. Cheap to clone.
#[derive(Clone)]
pub struct Net {
    client: reqwest::Client,
    reach: Reach,
    way: Way,
    authorized: Option<Authorized>,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The verb.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// What goes with it.
    pub headers: HeaderMap,
    /// What it carries; nothing when empty.
    pub body: Bytes,
    /// Where it may be sent on to.
    pub redirects: Redirects,
}

/// Where an answer may send a request on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Nowhere.
    Refused,
    /// To another place of the same origin, if the request stays what it is (307 and 308).
    SameOrigin,
}

/// An answer whose body has not been read.
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// Where it came from in the end.
    pub url: Url,
    /// What is to be read.
    pub body: Body,
    /// Why nothing could be done about being turned away, where somebody was there to do something.
    pub not_authorized: Option<NotAuthorized>,
}

impl Net {
    /// Reads the certificates and makes the pool. Dials nobody.
    pub async fn open(options: &NetOptions) -> Result<Self, OpenError> {
        let way = Way { connect_timeout: options.connect_timeout, proxied: options.proxy.is_some() };
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .tcp_nodelay(true)
            .tcp_keepalive(KEEP_ALIVE)
            .tcp_keepalive_interval(KEEP_ALIVE)
            .tcp_keepalive_retries(2)
            .http2_max_header_list_size(MOST_HEADER_BYTES)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE)
            // With a proxy its own name is all that is resolved, and whoever owns this program gave it.
            .dns_resolver(Resolver::new(if way.proxied { Reach::Anywhere } else { options.reach }));
        if let Some(proxy) = &options.proxy {
            builder = builder.proxy(proxy_at(proxy)?);
        }
        for file in &options.extra_ca {
            let found = reqwest::Certificate::from_pem_bundle(&read(file).await?);
            let found = found.ok().filter(|found| !found.is_empty());
            builder = builder.tls_certs_merge(found.ok_or_else(|| OpenError::NoCertificate(file.clone()))?);
        }
        if let Some(file) = &options.client_certificate {
            let identity = reqwest::Identity::from_pem(&read(file).await?);
            builder = builder.identity(identity.map_err(|_| OpenError::NoIdentity(file.clone()))?);
        }
        let client = builder.build().map_err(|error| OpenError::Encryption(crate::error::reason(&error)))?;
        Ok(Self { client, reach: options.reach, way, authorized: None })
    }

    /// The same pool for a server that wants to know who asks. Requests to its origin carry what the authorizer says, and
    /// are made again once it has done something about their being turned away; those to another are as they were.
    #[must_use]
    pub fn authorized_by(self, authorizer: Arc<dyn Authorizer>, server: &Url) -> Self {
        Self { authorized: Some(Authorized { authorizer, origin: server.origin() }), ..self }
    }

    /// Sends a request and gives its answer as soon as the headers are there.
    ///
    /// Dropped while it waits, the request may or may not have left.
    pub async fn send(&self, request: Request) -> Result<Response, SendError> {
        match self.authorized.as_ref().and_then(|authorized| authorized.bearer_for(&request.url)) {
            // Beside the way of those who need none, which stays small.
            Some(bearer) => Box::pin(self.send_as(bearer, &request)).await,
            None => self.follow(&request, None).await,
        }
    }

    /// Makes a request again for as long as it is turned away and something can be done about that.
    async fn send_as(&self, mut bearer: Bearer<'_>, request: &Request) -> Result<Response, SendError> {
        let mut refusals = 0;
        loop {
            let answer = self.follow(request, Some(&mut bearer)).await;
            let mut response = answer.map_err(|error| if refusals > 0 { error.once_seen() } else { error })?;
            let status = response.status.as_u16();
            if !matches!(status, 401 | 403) {
                return Ok(response);
            }
            let refusal = Refusal { status, headers: response.headers.clone(), serial: bearer.serial };
            let mended = if refusals < MOST_REFUSALS { bearer.refused(refusal).await } else { Err(never_content()) };
            if let Err(why) = mended {
                response.not_authorized = Some(why);
                return Ok(response);
            }
            refusals += 1;
            let _ = tokio::time::timeout(REFUSAL_TIME, response.body.collect(REFUSAL_BYTES)).await;
            // The connection goes back to the pool in a task of its own: without a turn for it the next request would open
            // another connection.
            tokio::task::yield_now().await;
        }
    }

    /// Sends a request to wherever it is sent on to.
    async fn follow(&self, request: &Request, mut bearer: Option<&mut Bearer<'_>>) -> Result<Response, SendError> {
        let mut url = request.url.clone();
        for redirects in 0..=MOST_REDIRECTS {
            let answer = self.send_once(request, url.clone(), bearer.as_deref_mut()).await;
            // Whoever sent it on has seen it.
            let answer = answer.map_err(|error| if redirects > 0 { error.once_seen() } else { error })?;
            let sent_on = request.redirects == Redirects::SameOrigin && keeps_the_request(answer.status());
            if !sent_on {
                return response(answer, url);
            }
            url = next_place(&answer, &url)?;
        }
        Err(SendError::RedirectLoop)
    }

    async fn send_once(
        &self,
        request: &Request,
        url: Url,
        mut bearer: Option<&mut Bearer<'_>>,
    ) -> Result<reqwest::Response, SendError> {
        self.check(&url).await?;
        let mut outgoing = reqwest::Request::new(request.method.clone(), url);
        outgoing.headers_mut().clone_from(&request.headers);
        if let Some(bearer) = &mut bearer {
            let carried = bearer.carried(&request.method, outgoing.url()).await.map_err(SendError::NotAuthorized)?;
            outgoing.headers_mut().extend(carried);
        }
        if !request.body.is_empty() {
            *outgoing.body_mut() = Some(request.body.clone().into());
        }
        let answer = self.client.execute(outgoing).await.map_err(|error| SendError::of(&error, &self.way))?;
        if let Some(bearer) = bearer {
            bearer.answered(answer.status(), answer.headers());
        }
        Ok(answer)
    }

    /// Refuses what may not be dialled. A name is checked where it is resolved, which is here if a proxy does the rest: one
    /// that only the proxy knows is its own to judge.
    async fn check(&self, url: &Url) -> Result<(), SendError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(SendError::Unsendable(format!("`{}` is neither http nor https", url.scheme())));
        }
        let host = url.host_str().unwrap_or_default();
        let refused = match literal(host) {
            Some(address) => Some(address).filter(|address| !self.reach.allows(*address)),
            None if self.way.proxied && self.reach != Reach::Anywhere => self.refused_of(host).await,
            None => None,
        };
        refused.map_or(Ok(()), |address| Err(SendError::Blocked(address)))
    }

    /// An address of this name that may not be dialled, if it is known to have one.
    async fn refused_of(&self, host: &str) -> Option<IpAddr> {
        let found = tokio::time::timeout(self.way.connect_timeout, tokio::net::lookup_host((host, 0))).await;
        let mut addresses = found.ok()?.ok()?.map(|address| address.ip());
        addresses.find(|address| !self.reach.allows(*address))
    }
}

fn proxy_at(url: &Secret) -> Result<reqwest::Proxy, OpenError> {
    let scheme = url.reveal().split_once("://").map_or("http", |(scheme, _)| scheme);
    // One of another scheme would be taken here and fail at the first request.
    if !["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        return Err(OpenError::Proxy);
    }
    reqwest::Proxy::all(url.reveal()).map_err(|_| OpenError::Proxy)
}

async fn read(file: &PathBuf) -> Result<Vec<u8>, OpenError> {
    tokio::fs::read(file).await.map_err(|error| OpenError::Unreadable { file: file.clone(), error })
}

fn keeps_the_request(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

fn response(answer: reqwest::Response, url: Url) -> Result<Response, SendError> {
    let status = answer.status();
    if let Some(problem) = problem_of(answer.headers()) {
        return Err(SendError::Broken(problem.to_owned()));
    }
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        return Err(SendError::Redirected { status, to: place(&answer, &url).as_ref().map(shown_url) });
    }
    let headers = answer.headers().clone();
    Ok(Response { status, headers, url, body: Body::new(answer), not_authorized: None })
}

fn never_content() -> NotAuthorized {
    let reason = format!("the server was not content with any of {} logins", MOST_REFUSALS + 1);
    NotAuthorized { remedy: Remedy::Reading, reason }
}

/// What is wrong with a head that the HTTP library takes all the same.
fn problem_of(headers: &HeaderMap) -> Option<&'static str> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    // Whoever reads the one and whoever reads the other see different answers (RFC 9112, 6.3).
    if headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH) {
        return Some("the answer has two lengths");
    }
    (bytes > MOST_HEADER_BYTES as usize).then_some("the headers of the answer are too large")
}

/// Where an answer sends the request on to.
fn place(answer: &reqwest::Response, from: &Url) -> Option<Url> {
    let location = answer.headers().get(header::LOCATION)?;
    from.join(&String::from_utf8_lossy(location.as_bytes())).ok()
}

/// Where an answer sends the request on to, if that is the same origin.
fn next_place(answer: &reqwest::Response, from: &Url) -> Result<Url, SendError> {
    let next = place(answer, from);
    // Shown without its query, which may hold what is nobody's business.
    let to = next.as_ref().map(shown_url);
    let next = next.filter(|next| next.origin() == from.origin());
    next.ok_or(SendError::Redirected { status: answer.status(), to })
}
