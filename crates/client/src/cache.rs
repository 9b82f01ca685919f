//! Results kept for as long as their server says, and for nobody but whom they were given to.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use wharf_wire::{CacheHint, CacheScope, Raw};

/// Results kept at once, and their bytes.
const MOST_ENTRIES: usize = 512;
const MOST_BYTES: usize = 16 << 20;

/// Results of one server. Connections to the same server may share one; what is private stays apart by the
/// authorization each of them has.
#[derive(Default)]
pub struct Cache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    bytes: usize,
}

/// What was asked: the method and the one parameter that matters to it, a URI or a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub method: &'static str,
    pub target: Option<String>,
    /// Whose result it is; nobody's in particular when it is public.
    owner: Option<Authorization>,
}

/// Which authorization a connection speaks with: whatever tells one access token from another. Never the token itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Authorization(pub String);

struct Entry {
    result: Raw,
    until: Instant,
}

impl Cache {
    /// A result that is still fresh.
    pub(crate) fn find(&self, method: &'static str, target: Option<&str>, who: &Authorization) -> Option<Raw> {
        let now = Instant::now();
        let mut kept = self.kept();
        for owner in [Some(who.clone()), None] {
            let key = Key { method, target: target.map(str::to_owned), owner };
            match kept.entries.get(&key) {
                Some(entry) if now < entry.until => return Some(entry.result.clone()),
                Some(_) => kept.remove(&key),
                None => {}
            }
        }
        None
    }

    /// Keeps a result as its hint allows.
    pub(crate) fn keep(&self, method: &'static str, target: Option<&str>, who: &Authorization, result: &Raw) {
        let hint = CacheHint::of(result);
        let size = result.as_bytes().len();
        if hint.ttl.is_zero() || size > MOST_BYTES / 4 {
            return;
        }
        let owner = (hint.scope == CacheScope::Private).then(|| who.clone());
        let key = Key { method, target: target.map(str::to_owned), owner };
        let now = Instant::now();
        let mut kept = self.kept();
        kept.remove(&key);
        kept.make_room(size, now);
        kept.bytes += size;
        kept.entries.insert(key, Entry { result: result.clone(), until: now + hint.ttl });
    }

    /// Forgets what a method gave, whatever it was asked for.
    pub(crate) fn forget(&self, method: &str) {
        self.kept().retain(|key| key.method != method);
    }

    /// Forgets a resource and everything below it.
    pub(crate) fn forget_resource(&self, uri: &str) {
        let touched = |target: &Option<String>| target.as_deref().is_some_and(|target| is_at_or_below(uri, target));
        self.kept().retain(|key| key.method != "resources/read" || !touched(&key.target));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.result.as_bytes().len();
        }
    }

    fn retain(&mut self, wanted: impl Fn(&Key) -> bool) {
        let unwanted: Vec<Key> = self.entries.keys().filter(|key| !wanted(key)).cloned().collect();
        unwanted.iter().for_each(|key| self.remove(key));
    }

    /// Drops what is stale, then whatever would be stale first.
    fn make_room(&mut self, size: usize, now: Instant) {
        if self.entries.len() < MOST_ENTRIES && self.bytes + size <= MOST_BYTES {
            return;
        }
        let stale: Vec<Key> =
            self.entries.iter().filter(|(_, entry)| entry.until <= now).map(|(key, _)| key.clone()).collect();
        stale.iter().for_each(|key| self.remove(key));
        while self.entries.len() >= MOST_ENTRIES || self.bytes + size > MOST_BYTES {
            let first = self.entries.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| key.clone());
            let Some(first) = first else { return };
            self.remove(&first);
        }
    }
}

/// Whether one URI is the other or lies below it.
pub(crate) fn is_at_or_below(uri: &str, of: &str) -> bool {
    let below = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || short.ends_with('/') || rest.starts_with('/'))
    };
    below(uri, of) || below(of, uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn who(name: &str) -> Authorization {
        Authorization(name.to_owned())
    }

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_private_is_found_by_its_owner_only_and_in_time() {
        let cache = Cache::default();
        cache.keep("resources/read", Some("a:1"), &who("a"), &raw(r#"{"ttlMs":1000}"#));
        cache.keep("resources/read", Some("a:2"), &who("a"), &raw(r#"{"ttlMs":1000,"cacheScope":"public"}"#));
        assert!(cache.find("resources/read", Some("a:1"), &who("a")).is_some());
        assert!(cache.find("resources/read", Some("a:1"), &who("b")).is_none());
        assert!(cache.find("resources/read", Some("a:2"), &who("b")).is_some());
        assert!(cache.find("resources/read", None, &who("a")).is_none());
        tokio::time::advance(Duration::from_millis(1000)).await;
        assert!(cache.find("resources/read", Some("a:1"), &who("a")).is_none());
        assert_eq!(cache.kept().entries.len(), 1, "what was found stale is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_makes_stale_what_it_touches() {
        let cache = Cache::default();
        let keep = |method, target| cache.keep(method, target, &who("a"), &raw(r#"{"ttlMs":1000}"#));
        keep("tools/list", None);
        keep("resources/read", Some("file:///a/b"));
        keep("resources/read", Some("file:///a"));
        keep("resources/read", Some("file:///ab"));
        cache.forget_resource("file:///a/b");
        let found = |target| cache.find("resources/read", Some(target), &who("a")).is_some();
        assert!(!found("file:///a/b") && !found("file:///a") && found("file:///ab"));
        cache.forget("tools/list");
        assert!(cache.find("tools/list", None, &who("a")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_grow_for_ever() {
        let cache = Cache::default();
        let large = raw(&format!(r#"{{"ttlMs":1000,"x":"{}"}}"#, "x".repeat(3 << 20)));
        for n in 0..2000 {
            cache.keep("resources/read", Some(&n.to_string()), &who("a"), &raw(r#"{"ttlMs":1000}"#));
        }
        for n in 0..20 {
            cache.keep("resources/read", Some(&format!("large {n}")), &who("a"), &large);
        }
        let kept = cache.kept();
        assert!(kept.entries.len() <= MOST_ENTRIES && kept.bytes <= MOST_BYTES);
        assert_eq!(kept.bytes, kept.entries.values().map(|entry| entry.result.as_bytes().len()).sum::<usize>());
    }
}
