//! What can go wrong on the way out, and whether anything had left by then.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use wharf_spec::Untrusted;

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
        matches!(
            self,
            Self::Unresolved { .. } | Self::Blocked(_) | Self::Refused(_) | Self::Slow(_) | Self::Encryption(_)
        )
    }

    /// Whether the same request may fare better later: nobody was there, or nobody in time.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unresolved { .. } | Self::Refused(_) | Self::Slow(_) | Self::Broken(_))
    }

    pub(crate) fn of(error: &reqwest::Error, connect_timeout: Duration) -> Self {
        for cause in causes(error) {
            if let Some(unreachable) = cause.downcast_ref::<Unreachable>() {
                return unreachable.clone().into();
            }
            if let Some(encryption) = cause.downcast_ref::<rustls::Error>() {
                return Self::Encryption(encryption.to_string());
            }
        }
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => Self::Slow(connect_timeout),
            (true, false) => Self::Refused(innermost(error)),
            (false, _) => Self::Broken(innermost(error)),
        }
    }
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

/// What lies at the bottom of an error: the library above it only says that it passes it on.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let deepest = causes(error).last();
    let text = deepest.map_or_else(|| error.to_string(), ToString::to_string);
    Untrusted::new(text).shortened(200).to_string()
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
