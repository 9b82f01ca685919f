//! Cache of results, held for as long as the server allows and separated by authorization.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use wharf_wire::{CacheHint, CacheScope, RawJson};

/// Maximum number of cached results, and maximum of their total bytes.
const MAX_ENTRIES: usize = 512;
const MAX_BYTES: usize = 4 << 20;

/// Cached results of one server. Connections to the same server may share a cache: private results are separated by the
/// authorization of each connection.
#[derive(Default)]
pub struct ResultCache {
    kept: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    entries: HashMap<CacheKey, CacheEntry>,
    bytes: usize,
    /// Number of invalidations. A result requested before an invalidation may be stale when it arrives.
    changes: u64,
}

/// Key of a cached result: the method and its one relevant parameter, a URI or a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub method: &'static str,
    pub target: Option<String>,
    /// Authorization the result belongs to. `None` for a public result.
    owner: Option<AuthorizationId>,
}

/// Identifies the authorization of a connection. Differs between access tokens and never contains the token itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AuthorizationId(pub String);

/// Arguments of a cache lookup or insertion.
#[derive(Clone, Copy)]
pub(crate) struct CacheQuery<'a> {
    pub method: &'static str,
    pub target: Option<&'a str>,
    pub who: &'a AuthorizationId,
}

struct CacheEntry {
    result: RawJson,
    until: Instant,
}

impl ResultCache {
    /// Returns a result that is still fresh.
    pub(crate) fn find(&self, CacheQuery { method, target, who }: CacheQuery<'_>) -> Option<RawJson> {
        let now = Instant::now();
        let mut kept = self.state();
        for owner in [Some(who.clone()), None] {
            let key = CacheKey { method, target: target.map(str::to_owned), owner };
            match kept.entries.get(&key) {
                Some(entry) if now < entry.until => return Some(entry.result.clone()),
                Some(_) => kept.remove(&key),
                None => {}
            }
        }
        None
    }

    /// Returns the number of invalidations. Read it before sending a request whose result is to be cached.
    pub(crate) fn invalidations(&self) -> u64 {
        self.state().changes
    }

    /// Caches a result as its hint allows, unless the cache was invalidated after `changes` was read.
    pub(crate) fn store(&self, place: CacheQuery<'_>, changes: u64, result: &RawJson) {
        let CacheQuery { method, target, who } = place;
        let hint = CacheHint::from_result(result);
        let size = result.as_bytes().len();
        let key = |owner| CacheKey { method, target: target.map(str::to_owned), owner };
        let now = Instant::now();
        let mut kept = self.state();
        // The cached result is older.
        kept.remove(&key(None));
        kept.remove(&key(Some(who.clone())));
        if hint.ttl.is_zero() || size > MAX_BYTES / 4 || kept.changes != changes {
            return;
        }
        let key = key((hint.scope == CacheScope::Private).then(|| who.clone()));
        kept.make_room(size, now);
        kept.bytes += size;
        // Copy: the result may be a small slice of a large message.
        let result = RawJson::new_unchecked(result.as_bytes().to_vec());
        kept.entries.insert(key, CacheEntry { result, until: now + hint.ttl });
    }

    /// Removes all results.
    pub fn clear(&self) {
        let mut kept = self.state();
        kept.changes += 1;
        kept.retain(|_| false);
    }

    /// Removes all results of a method.
    pub(crate) fn invalidate_method(&self, method: &str) {
        let mut kept = self.state();
        kept.changes += 1;
        kept.retain(|key| key.method != method);
    }

    /// Removes cached reads of a resource, of resources below it and of resources above it.
    pub(crate) fn invalidate_resource(&self, uri: &str) {
        let touched = |target: &Option<String>| target.as_deref().is_some_and(|target| uris_overlap(uri, target));
        let mut kept = self.state();
        kept.changes += 1;
        kept.retain(|key| key.method != "resources/read" || !touched(&key.target));
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.result.as_bytes().len();
        }
    }

    fn retain(&mut self, wanted: impl Fn(&CacheKey) -> bool) {
        let unwanted: Vec<CacheKey> = self.entries.keys().filter(|key| !wanted(key)).cloned().collect();
        unwanted.iter().for_each(|key| self.remove(key));
    }

    /// Removes expired results, then those that expire first.
    fn make_room(&mut self, size: usize, now: Instant) {
        if self.entries.len() < MAX_ENTRIES && self.bytes + size <= MAX_BYTES {
            return;
        }
        let stale: Vec<CacheKey> =
            self.entries.iter().filter(|(_, entry)| entry.until <= now).map(|(key, _)| key.clone()).collect();
        stale.iter().for_each(|key| self.remove(key));
        while self.entries.len() >= MAX_ENTRIES || self.bytes + size > MAX_BYTES {
            let first = self.entries.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| key.clone());
            let Some(first) = first else { return };
            self.remove(&first);
        }
    }
}

/// Reports whether the URIs are equal or one of them lies below the other.
pub(crate) fn uris_overlap(uri: &str, of: &str) -> bool {
    let below = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || short.ends_with('/') || rest.starts_with('/'))
    };
    below(uri, of) || below(of, uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn keep(cache: &ResultCache, target: &str, who: &str, text: &str) {
        let who = AuthorizationId(who.to_owned());
        let place = CacheQuery { method: "resources/read", target: Some(target), who: &who };
        cache.store(place, cache.invalidations(), &RawJson::parse(text.to_owned()).unwrap());
    }

    fn finds(cache: &ResultCache, target: &str, who: &str) -> bool {
        let who = AuthorizationId(who.to_owned());
        cache.find(CacheQuery { method: "resources/read", target: Some(target), who: &who }).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn private_entries_hit_for_their_owner_until_expiry() {
        let cache = ResultCache::default();
        keep(&cache, "a:1", "a", r#"{"ttlMs":1000}"#);
        keep(&cache, "a:2", "a", r#"{"ttlMs":1000,"cacheScope":"public"}"#);
        assert!(finds(&cache, "a:1", "a") && !finds(&cache, "a:1", "b") && finds(&cache, "a:2", "b"));
        assert!(!finds(&cache, "a:3", "a"));
        tokio::time::advance(Duration::from_millis(1000)).await;
        assert!(!finds(&cache, "a:1", "a"));
        assert_eq!(cache.state().entries.len(), 1, "what was found stale is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn invalidation_drops_matching_entries_only() {
        let cache = ResultCache::default();
        for target in ["file:///a/b", "file:///a", "file:///ab"] {
            keep(&cache, target, "a", r#"{"ttlMs":1000}"#);
        }
        cache.invalidate_resource("file:///a/b");
        assert!(!finds(&cache, "file:///a/b", "a") && !finds(&cache, "file:///a", "a"));
        assert!(finds(&cache, "file:///ab", "a"));
        cache.invalidate_method("resources/read");
        assert!(!finds(&cache, "file:///ab", "a"));
    }

    #[tokio::test(start_paused = true)]
    async fn result_requested_before_invalidation_is_not_cached() {
        let cache = ResultCache::default();
        let who = AuthorizationId::default();
        let place = CacheQuery { method: "tools/list", target: None, who: &who };
        let result = RawJson::parse(r#"{"ttlMs":1000}"#).unwrap();
        let asked = cache.invalidations();
        cache.invalidate_method("tools/list");
        cache.store(place, asked, &result);
        assert!(cache.find(place).is_none());
        cache.store(place, cache.invalidations(), &result);
        assert!(cache.find(place).is_some());
        cache.store(place, cache.invalidations(), &RawJson::empty_object());
        assert!(cache.find(place).is_none(), "a newer one that may not be kept takes the older one's place");
    }

    #[tokio::test(start_paused = true)]
    async fn cache_stays_within_entry_and_byte_limits() {
        let cache = ResultCache::default();
        for n in 0..2000 {
            keep(&cache, &n.to_string(), "a", r#"{"ttlMs":1000}"#);
        }
        for n in 0..20 {
            let large = format!(r#"{{"ttlMs":1000,"x":"{}"}}"#, "x".repeat(MAX_BYTES / 5));
            keep(&cache, &format!("large {n}"), "a", &large);
        }
        let kept = cache.state();
        assert!(kept.entries.len() <= MAX_ENTRIES && kept.bytes <= MAX_BYTES);
        assert_eq!(kept.bytes, kept.entries.values().map(|entry| entry.result.as_bytes().len()).sum::<usize>());
    }
}
