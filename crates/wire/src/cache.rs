//! Cache lifetime and scope of a result (2026-07-28, server/utilities/caching).

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::RawJson;

/// Maximum time a result is cached; a longer `ttlMs` from the server is clamped.
pub const MAX_CACHE_TTL: Duration = Duration::from_secs(3600);

/// The caching directives of one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// Time the result stays fresh; zero if the server gives none.
    pub ttl: Duration,
    /// Callers allowed to see the cached copy.
    pub scope: CacheScope,
}

/// The callers allowed to see a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// Every user of the server.
    Public,
    /// Only the caller that received the result. The default.
    Private,
}

impl CacheHint {
    /// Reads the hint from a result. Invalid values mean a zero lifetime and private scope; a hint never fails a
    /// result.
    pub fn from_result(result: &RawJson) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct WireCacheHint<'a> {
            #[serde(borrow)]
            ttl_ms: Option<&'a RawValue>,
            #[serde(borrow)]
            cache_scope: Option<&'a RawValue>,
        }
        let shape: WireCacheHint = result.decode_unbounded().unwrap_or_default();
        let ttl = shape.ttl_ms.and_then(|ttl| serde_json::from_str::<f64>(ttl.get()).ok()).unwrap_or(0.0);
        let ttl = Duration::try_from_secs_f64((ttl / 1000.0).clamp(0.0, MAX_CACHE_TTL.as_secs_f64()));
        let public = shape.cache_scope.is_some_and(|scope| scope.get() == "\"public\"");
        let scope = if public { CacheScope::Public } else { CacheScope::Private };
        Self { ttl: ttl.unwrap_or_default(), scope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_clamped_and_private_by_default() {
        for (text, millis, scope) in [
            (r#"{"ttlMs":1500,"cacheScope":"public"}"#, 1500, CacheScope::Public),
            (r#"{"ttlMs":1500}"#, 1500, CacheScope::Private),
            (r#"{"ttlMs":-1,"cacheScope":"private"}"#, 0, CacheScope::Private),
            (r#"{"ttlMs":1e18}"#, 3_600_000, CacheScope::Private),
            (r#"{"ttlMs":"1","cacheScope":7}"#, 0, CacheScope::Private),
            ("{}", 0, CacheScope::Private),
            ("[]", 0, CacheScope::Private),
        ] {
            let hint = CacheHint::from_result(&RawJson::parse(text).unwrap());
            assert_eq!((hint.ttl, hint.scope), (Duration::from_millis(millis), scope), "{text}");
        }
    }
}
