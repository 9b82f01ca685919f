//! One pool of connections, and what may be sent through it.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;
use wharf_spec::Secret;

use crate::body::Body;
use crate::error::{OpenError, SendError};
use crate::reach::{Reach, literal};
use crate::resolve::Resolver;

/// How often one request may be sent on to another place of the same origin.
const MOST_REDIRECTS: usize = 5;
/// How long a connection is kept that nobody uses.
const POOL_IDLE: Duration = Duration::from_secs(30);
/// How often a quiet connection is asked whether anybody is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Headers of one answer.
const MOST_HEADERS: usize = 128;

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
    connect_timeout: Duration,
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
}

impl Net {
    /// Reads the certificates and makes the pool. Dials nobody.
    pub async fn open(options: &NetOptions) -> Result<Self, OpenError> {
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
            .http1_max_headers(MOST_HEADERS)
            .http2_max_header_list_size(64 << 10)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE)
            .dns_resolver(Resolver::new(options.reach));
        if let Some(proxy) = &options.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.reveal()).map_err(|_| OpenError::Proxy)?);
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
        let client = builder.build().map_err(|error| OpenError::Encryption(crate::error::innermost(&error)))?;
        Ok(Self { client, reach: options.reach, connect_timeout: options.connect_timeout })
    }

    /// Sends a request and gives its answer as soon as the headers are there.
    ///
    /// Dropped while it waits, the request may or may not have left.
    pub async fn send(&self, request: Request) -> Result<Response, SendError> {
        let mut url = request.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let answer = self.send_once(&request, url.clone()).await?;
            let sent_on = request.redirects == Redirects::SameOrigin && keeps_the_request(answer.status());
            if !sent_on {
                return response(answer, url);
            }
            url = next_place(&answer, &url)?;
        }
        Err(SendError::RedirectLoop)
    }

    async fn send_once(&self, request: &Request, url: Url) -> Result<reqwest::Response, SendError> {
        // A name is checked where it is resolved; an address needs no resolving.
        if let Some(address) = url.host_str().and_then(literal)
            && !self.reach.allows(address)
        {
            return Err(SendError::Blocked(address));
        }
        let mut outgoing = reqwest::Request::new(request.method.clone(), url);
        outgoing.headers_mut().clone_from(&request.headers);
        if !request.body.is_empty() {
            *outgoing.body_mut() = Some(request.body.clone().into());
        }
        self.client.execute(outgoing).await.map_err(|error| SendError::of(&error, self.connect_timeout))
    }
}

async fn read(file: &PathBuf) -> Result<Vec<u8>, OpenError> {
    tokio::fs::read(file).await.map_err(|error| OpenError::Unreadable { file: file.clone(), error })
}

fn keeps_the_request(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

fn response(answer: reqwest::Response, url: Url) -> Result<Response, SendError> {
    let status = answer.status();
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        return Err(SendError::Redirected { status, to: place(&answer).map(|text| text.chars().take(200).collect()) });
    }
    let headers = answer.headers().clone();
    Ok(Response { status, headers, url, body: Body::new(answer) })
}

fn place(answer: &reqwest::Response) -> Option<String> {
    let location = answer.headers().get(header::LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// Where an answer sends the request on to, if that is the same origin.
fn next_place(answer: &reqwest::Response, from: &Url) -> Result<Url, SendError> {
    let location = place(answer);
    let next = location.as_deref().and_then(|location| from.join(location).ok());
    match next {
        Some(next) if next.origin() == from.origin() => Ok(next),
        _ => Err(SendError::Redirected {
            status: answer.status(),
            to: location.map(|text| text.chars().take(200).collect()),
        }),
    }
}
