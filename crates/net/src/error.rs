//! What can go wrong on the way out, and whether anything had left by then.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use wharf_spec::Untrusted;

use crate::authorize::NotAuthorized;

/// Why there is no way out at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The proxy's address is none.
    #[error("the proxy is not a URL that can be used")]
    Proxy,
    /// A file cannot be read.
    #[error("`{}` cannot be read", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A file holds no certificate.
    #[error("`{}` holds no certificate in PEM", .0.display())]
    NoCertificate(PathBuf),
    /// A file holds no certificate with its key.
    #[error("`{}` does not hold a certificate and its private key in PEM", .0.display())]
    NoIdentity(PathBuf),
    /// Encryption cannot be set up.
    #[error("encryption cannot be set up: {0}")]
    Encryption(String),
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The name means nothing.
    #[error("the name `{host}` cannot be resolved: {reason}")]
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// The address may not be dialled.
    #[error("the address {0} may not be dialled from here")]
    Blocked(IpAddr),
    /// Nobody took the connection.
    #[error("no connection: {0}")]
    Refused(String),
    /// Nobody took the connection in time.
    #[error("no connection within {} ms", .0.as_millis())]
    Slow(Duration),
    /// No secure connection could be agreed on.
    #[error("no secure connection: {0}")]
    Encryption(String),
    /// It is no request that can be made.
    #[error("the request cannot be made: {0}")]
    Unsendable(String),
    /// It was to be sent elsewhere, which is not done.
    #[error("sent on elsewhere ({status}{}), which is not followed", To(.to))]
    Redirected {
        /// The status.
        status: StatusCode,
        /// Where to: untrusted.
        to: Option<String>,
    },
    /// It was sent on again and again.
    #[error("sent on again and again without end")]
    RedirectLoop,
    /// The connection broke before there was an answer. The request may have arrived.
    #[error("the connection broke before the answer: {0}")]
    Broken(String),
    /// What it has to carry could not be had.
    #[error("it could not be said who asks: {0}")]
    NotAuthorized(NotAuthorized),
}

struct To<'a>(&'a Option<String>);

impl std::fmt::Display for To<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(to) => write!(f, " to {}", Untrusted::new(to.as_str()).shortened(200)),
            None => Ok(()),
        }
    }
}

impl SendError {
    /// Whether it is certain that nothing reached the server.
    pub fn never_left(&self) -> bool {
        match self {
            Self::Unresolved { .. } | Self::Blocked(_) | Self::Refused(_) | Self::Slow(_) => true,
            Self::Encryption(_) | Self::Unsendable(_) => true,
            // Whoever turned an earlier try away, or sent it on, has done nothing else with it.
            Self::NotAuthorized(_) => true,
            Self::Redirected { .. } | Self::RedirectLoop | Self::Broken(_) => false,
        }
    }

    /// Whether the same request may fare better later: nobody was there, or nobody in time.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unresolved { .. } | Self::Refused(_) | Self::Slow(_) | Self::Broken(_) => true,
            Self::NotAuthorized(why) => why.may_pass(),
            _ => false,
        }
    }

    /// The same trouble with a request that somebody has seen before.
    pub(crate) fn once_seen(self) -> Self {
        let stays = matches!(self, Self::NotAuthorized(_)) || !self.never_left();
        if stays { self } else { Self::Broken(self.to_string()) }
    }

    pub(crate) fn of(error: &reqwest::Error, way: &Way) -> Self {
        if let Some(unreachable) = causes(error).find_map(|cause| cause.downcast_ref::<Unreachable>()) {
            return unreachable.clone().into();
        }
        let encryption = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
        if let Some(encryption) = encryption.filter(|encryption| error.is_connect() || turns_away(encryption)) {
            return Self::Encryption(shown(&encryption.to_string()));
        }
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => Self::Slow(way.connect_timeout),
            (false, _) if is_unstarted(error) => Self::Refused("it was closed before the request was made".to_owned()),
            (true, false) if way.proxied => Self::Refused(format!("by way of the proxy: {}", reason(error))),
            (true, false) => Self::Refused(reason(error)),
            (false, _) if error.is_builder() => Self::Unsendable(reason(error)),
            (false, _) => Self::Broken(reason(error)),
        }
    }
}

/// Whether a connection was gone before it took the request, which the HTTP library says in these words and no others. It
/// asks again by itself where the connection had been used before.
fn is_unstarted(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| matches!(cause.to_string().as_str(), "operation was canceled" | "channel closed"))
}

/// What is known of the way a request took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub connect_timeout: Duration,
    pub proxied: bool,
}

/// Whether an alert says that the server did not take our certificate, or misses one (RFC 8446, 6.2). In TLS 1.3 it comes
/// after the request has left, and still means that nothing of it was read.
fn turns_away(error: &rustls::Error) -> bool {
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

/// What the resolver finds wrong, as it travels through the HTTP library.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Unreachable {
    #[error("the name `{host}` cannot be resolved: {reason}")]
    Unknown { host: String, reason: String },
    #[error("the address {0} may not be dialled from here")]
    Blocked(IpAddr),
}

impl From<Unreachable> for SendError {
    fn from(unreachable: Unreachable) -> Self {
        match unreachable {
            Unreachable::Unknown { host, reason } => Self::Unresolved { host, reason },
            Unreachable::Blocked(address) => Self::Blocked(address),
        }
    }
}

/// What an error comes from, without the libraries' own words for passing it on, and nothing twice.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = causes(error).skip(1).map(ToString::to_string).collect();
    told.retain(|text| !text.starts_with("client error ("));
    told.dedup();
    shown(&if told.is_empty() { error.to_string() } else { told.join(": ") })
}

/// A text that may hold something a server said.
fn shown(text: &str) -> String {
    Untrusted::new(text).shortened(300).to_string()
}

/// An error and what it comes from. An `io::Error` hides its own content from `source`, so it is looked into.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inside) => Some(inside as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
