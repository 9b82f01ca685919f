//! Errors of outgoing requests, and whether the request had been sent.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use wharf_spec::UntrustedText;

use crate::authorize::NotAuthorized;

/// An error of creating the connection pool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetOpenError {
    /// The proxy URL is invalid.
    #[error("the proxy is not a valid http or https URL")]
    Proxy,
    /// A file cannot be read.
    #[error("cannot read `{}`", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The file contains no PEM certificate.
    #[error("`{}` contains no PEM certificate", .0.display())]
    NoCertificate(PathBuf),
    /// The file does not contain a PEM certificate with its private key.
    #[error("`{}` does not contain a PEM certificate with its private key", .0.display())]
    NoIdentity(PathBuf),
    /// TLS cannot be initialized.
    #[error("TLS cannot be initialized: {0}")]
    Encryption(String),
}

/// An error of sending a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The host name cannot be resolved.
    #[error("cannot resolve host `{host}`: {reason}")]
    Unresolved {
        /// The host name.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// The address policy forbids the address.
    #[error("connections to {0} are not allowed")]
    Blocked(IpAddr),
    /// The connection failed.
    #[error("connection failed: {0}")]
    Refused(String),
    /// The connection timed out.
    #[error("connection timed out after {} ms", .0.as_millis())]
    Slow(Duration),
    /// The TLS handshake failed.
    #[error("TLS handshake failed: {0}")]
    Encryption(String),
    /// TLS cannot be initialized.
    #[error("TLS cannot be initialized: {0}")]
    TlsSetup(String),
    /// The request is invalid.
    #[error("invalid request: {0}")]
    Unsendable(String),
    /// The response is a redirect that is not followed.
    #[error("redirect not followed ({status}{})", RedirectTarget(.to))]
    Redirected {
        /// The status.
        status: StatusCode,
        /// Target of the redirect, untrusted.
        to: Option<String>,
    },
    /// Too many redirects.
    #[error("too many redirects")]
    RedirectLoop,
    /// The connection broke before the response. The request may have arrived.
    #[error("connection lost before the response: {0}")]
    Broken(String),
    /// No credentials were available for the request.
    #[error("not authenticated: {0}")]
    NotAuthorized(NotAuthorized),
}

struct RedirectTarget<'a>(&'a Option<String>);

impl std::fmt::Display for RedirectTarget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(to) => write!(f, " to {}", UntrustedText::new(to.as_str()).truncate(200)),
            None => Ok(()),
        }
    }
}

impl SendError {
    /// Reports whether the request certainly did not reach the server.
    pub fn is_certainly_unsent(&self) -> bool {
        match self {
            Self::Unresolved { .. } | Self::Blocked(_) | Self::Refused(_) | Self::Slow(_) => true,
            Self::Encryption(_) | Self::TlsSetup(_) | Self::Unsendable(_) => true,
            // A server that rejected or redirected an earlier attempt has not executed it.
            Self::NotAuthorized(_) => true,
            Self::Redirected { .. } | Self::RedirectLoop | Self::Broken(_) => false,
        }
    }

    /// Reports whether the same request may succeed later: a connection failure or a timeout.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unresolved { .. } | Self::Refused(_) | Self::Slow(_) | Self::Broken(_) => true,
            Self::NotAuthorized(why) => why.is_transient(),
            _ => false,
        }
    }

    /// Converts the error for a request of which the server has already received an earlier attempt.
    pub(crate) fn after_earlier_attempt(self) -> Self {
        let stays = matches!(self, Self::NotAuthorized(_)) || !self.is_certainly_unsent();
        if stays { self } else { Self::Broken(self.to_string()) }
    }

    pub(crate) fn from_reqwest(error: &reqwest::Error, way: &ConnectRoute) -> Self {
        if let Some(unreachable) = causes(error).find_map(|cause| cause.downcast_ref::<ResolveError>()) {
            return unreachable.clone().into();
        }
        let encryption = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
        if let Some(encryption) =
            encryption.filter(|encryption| error.is_connect() || is_client_certificate_alert(encryption))
        {
            return Self::Encryption(describe_tls_error(encryption));
        }
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => Self::Slow(way.connect_timeout),
            (false, _) if closed_before_request(error) => {
                Self::Refused("connection closed before the request was sent".to_owned())
            }
            (true, false) if way.proxied => Self::Refused(format!("via proxy: {}", cause_chain(error))),
            (true, false) => Self::Refused(cause_chain(error)),
            (false, _) if error.is_builder() => Self::Unsendable(cause_chain(error)),
            (false, _) => Self::Broken(cause_chain(error)),
        }
    }
}

/// Describes a TLS error. A self-signed certificate as `openssl req -x509` makes it by default is marked as the
/// certificate of an authority, which is not valid for a server.
fn describe_tls_error(error: &rustls::Error) -> String {
    let text = error.to_string();
    if text.contains("CaUsedAsEndEntity") {
        return "the server's certificate is a CA certificate (CA:TRUE), which is not valid for a server".to_owned();
    }
    escape_and_shorten(&text)
}

/// Reports whether the connection was closed before it accepted the request. The HTTP library reports this only by
/// these messages. It retries by itself if the connection had been used before.
fn closed_before_request(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| matches!(cause.to_string().as_str(), "operation was canceled" | "channel closed"))
}

/// Properties of the route that a request takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectRoute {
    pub connect_timeout: Duration,
    pub proxied: bool,
}

/// Reports whether a TLS alert means that the server rejected the client certificate or requires one (RFC 8446, 6.2).
/// In TLS 1.3 the alert arrives after the request was sent, and the server has not read the request.
fn is_client_certificate_alert(error: &rustls::Error) -> bool {
    use rustls::AlertDescription as Alert;
    let rustls::Error::AlertReceived(alert) = error else { return false };
    let about_a_certificate = [
        Alert::CertificateRequired,
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::UnknownCA,
    ];
    about_a_certificate.contains(alert)
}

/// An error of the resolver, passed through the HTTP library.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("cannot resolve host `{host}`: {reason}")]
    Unknown { host: String, reason: String },
    #[error("connections to {0} are not allowed")]
    Blocked(IpAddr),
}

impl From<ResolveError> for SendError {
    fn from(unreachable: ResolveError) -> Self {
        match unreachable {
            ResolveError::Unknown { host, reason } => Self::Unresolved { host, reason },
            ResolveError::Blocked(address) => Self::Blocked(address),
        }
    }
}

/// Formats the causes of an error, without the HTTP library's wrapper messages and without repetitions.
pub(crate) fn cause_chain(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = causes(error).skip(1).map(ToString::to_string).collect();
    told.retain(|text| !text.starts_with("client error ("));
    told.dedup();
    escape_and_shorten(&if told.is_empty() { error.to_string() } else { told.join(": ") })
}

/// Escapes and shortens a text that may contain server-supplied parts.
fn escape_and_shorten(text: &str) -> String {
    UntrustedText::new(text).truncate(300).to_string()
}

/// Iterates over an error and its causes. `source` of an `io::Error` skips the wrapped error, so that is unwrapped
/// separately.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inside) => Some(inside as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
