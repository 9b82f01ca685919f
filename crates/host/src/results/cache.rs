//! Cache of the results of read-only tools, for servers that enable it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wharf_client::{InputHandling, RawResult, ResultKind};
use wharf_json::RawJson;
use wharf_spec::Fingerprint;
use wharf_tools::Principal;

use crate::call::CallOptions;
use crate::catalog::CatalogTool;
use crate::server::Server;

/// Maximum number of cached results per server, and maximum bytes of all of them.
const MAX_CACHED_RESULTS: usize = 256;
const MAX_RESULT_CACHE_BYTES: usize = 4 << 20;

/// Cache key: the principal, the tool's definition and the literal arguments. A result may depend on a principal's
/// answers to the server's questions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ResultCacheKey {
    pub principal: Principal,
    pub tool: Arc<str>,
    pub definition: Fingerprint,
    pub arguments: Vec<u8>,
}

impl ResultCacheKey {
    /// Returns the cache key of a call, or `None` if its result must not be cached. The server's settings have to
    /// enable the cache and the tool has to declare itself read-only.
    pub fn from_call(server: &Server, tool: &CatalogTool, arguments: &RawJson, options: &CallOptions) -> Option<Self> {
        server.settings.load().effective.keep_results?;
        if options.request.fresh
            || options.request.inputs == InputHandling::Forward
            || options.request.input_round.is_some()
            || options.request.client.is_some()
            || tool.description.hints.read_only != Some(true)
        {
            return None;
        }
        Some(Self {
            principal: options.caller.principal.clone(),
            tool: Arc::clone(&tool.id.tool),
            definition: tool.fingerprint,
            arguments: arguments.as_bytes().to_vec(),
        })
    }

    /// Caches a result.
    pub fn cache_result(self, server: &Server, answer: &RawResult) {
        if let (Some(time), ResultKind::Complete) = (server.settings.load().effective.keep_results, answer.kind) {
            server.results.insert(self, &answer.result, time);
        }
    }
}

/// Result cache of one server.
#[derive(Default)]
pub(crate) struct ToolResultCache(Mutex<HashMap<ResultCacheKey, CachedResult>>);

struct CachedResult {
    result: RawJson,
    until: Instant,
}

impl ToolResultCache {
    /// Returns a result that has not expired.
    pub fn get(&self, key: &ResultCacheKey) -> Option<RawJson> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|entry| Instant::now() < entry.until).map(|entry| entry.result.clone())
    }

    /// Removes all results.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Caches a result for the given time. Evicts expired results, then those that expire first.
    pub fn insert(&self, key: ResultCacheKey, result: &RawJson, time: Duration) {
        let (now, size) = (Instant::now(), key.arguments.len() + result.as_bytes().len());
        let Some(until) = now.checked_add(time).filter(|_| size <= MAX_RESULT_CACHE_BYTES / 4) else { return };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, entry| now < entry.until);
        while kept.len() >= MAX_CACHED_RESULTS || total_bytes(&kept) + size > MAX_RESULT_CACHE_BYTES {
            let first = kept.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| key.clone());
            let Some(first) = first else { break };
            kept.remove(&first);
        }
        // Copied, because the result may be a small part of a large message.
        let result = RawJson::new_unchecked(result.as_bytes().to_vec());
        kept.insert(key, CachedResult { result, until });
    }
}

fn total_bytes(kept: &HashMap<ResultCacheKey, CachedResult>) -> usize {
    kept.iter().map(|(key, entry)| key.arguments.len() + entry.result.as_bytes().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_key(n: usize) -> ResultCacheKey {
        ResultCacheKey {
            principal: Principal::local(),
            tool: "t".into(),
            definition: Fingerprint([0; 32]),
            arguments: n.to_string().into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn result_hits_for_the_same_key_until_expiry() {
        let kept = ToolResultCache::default();
        let result = RawJson::parse("{}").unwrap();
        kept.insert(test_key(1), &result, Duration::from_secs(1));
        assert!(kept.get(&test_key(1)).is_some() && kept.get(&test_key(2)).is_none());
        let redefined = ResultCacheKey { definition: Fingerprint([1; 32]), ..test_key(1) };
        assert!(kept.get(&redefined).is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(kept.get(&test_key(1)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn cache_stays_within_entry_and_byte_limits() {
        let kept = ToolResultCache::default();
        let large = RawJson::parse(format!("\"{}\"", "x".repeat(MAX_RESULT_CACHE_BYTES / 5))).unwrap();
        for n in 0..2 * MAX_CACHED_RESULTS {
            kept.insert(test_key(n), &large, Duration::from_secs(1));
        }
        let inside = kept.0.lock().unwrap();
        assert!(
            !inside.is_empty() && inside.len() <= MAX_CACHED_RESULTS && total_bytes(&inside) <= MAX_RESULT_CACHE_BYTES
        );
        drop(inside);
        let long = ResultCacheKey { arguments: vec![b' '; MAX_RESULT_CACHE_BYTES], ..test_key(0) };
        kept.insert(long.clone(), &RawJson::parse("{}").unwrap(), Duration::from_secs(1));
        assert!(kept.get(&long).is_none());
        let small = RawJson::parse("{}").unwrap();
        kept.insert(test_key(usize::MAX), &small, Duration::MAX);
        assert!(kept.get(&test_key(usize::MAX)).is_none());
    }
}
