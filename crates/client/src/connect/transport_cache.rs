//! Cache of the transports that servers spoke last, so that the next connection need not detect them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::{Origin, Url};

/// Maximum number of cached servers.
const MAX_SERVERS: usize = 1024;

/// The transport and era of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetectedTransport {
    Stateless,
    Handshake,
    Sse,
}

impl fmt::Display for DetectedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stateless => "cached: Streamable HTTP, stateless",
            Self::Handshake => "cached: Streamable HTTP with handshake",
            Self::Sse => "cached: HTTP+SSE",
        })
    }
}

/// Cache of detected HTTP transports by origin and path. Shared by the connections of one program.
///
/// Entries expire: a server that gains the newer transport still answers the older one, and would otherwise never be
/// probed again.
#[derive(Default)]
pub struct TransportCache(Mutex<HashMap<(Origin, String), CachedTransport>>);

#[derive(Clone, Copy)]
struct CachedTransport {
    transport: DetectedTransport,
    at: Instant,
}

impl TransportCache {
    pub(crate) fn find(&self, url: &Url, ttl: Duration) -> Option<DetectedTransport> {
        let cached = self.entries().get(&cache_key(url)).copied()?;
        (cached.at.elapsed() < ttl).then_some(cached.transport)
    }

    pub(crate) fn record(&self, url: &Url, transport: DetectedTransport) {
        let mut cached = self.entries();
        if cached.len() >= MAX_SERVERS {
            cached.clear();
        }
        cached.insert(cache_key(url), CachedTransport { transport, at: Instant::now() });
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<(Origin, String), CachedTransport>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Includes the path: most servers with both transports serve them at different paths of one origin.
fn cache_key(url: &Url) -> (Origin, String) {
    (url.origin(), url.path().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn detected_transport_is_cached_per_endpoint_until_expiry() {
        let cache = TransportCache::default();
        let url = |text: &str| Url::parse(text).unwrap();
        let ttl = Duration::from_secs(60);
        cache.record(&url("http://a.test/mcp"), DetectedTransport::Handshake);
        assert_eq!(cache.find(&url("http://a.test/mcp?x=1"), ttl), Some(DetectedTransport::Handshake));
        for other in ["http://a.test/sse", "https://a.test/mcp", "http://a.test:81/mcp", "http://b.test/mcp"] {
            assert_eq!(cache.find(&url(other), ttl), None, "{other}");
        }
        tokio::time::advance(ttl).await;
        assert_eq!(cache.find(&url("http://a.test/mcp"), ttl), None);
    }
}
