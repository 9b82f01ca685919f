//! Change detection for poll results.

use sha2::{Digest, Sha256};
use wharf_json::{JsonLimits, RawJson, object_members};

/// Result members that describe the response rather than the content.
const RESPONSE_MEMBERS: [&str; 3] = ["_meta", "ttlMs", "cacheScope"];

/// The last result of a subscription. Holds a digest, because results may be large and many.
#[derive(Debug, Default)]
pub(super) struct ChangeDetector {
    last: Option<[u8; 32]>,
    failing: bool,
}

impl ChangeDetector {
    /// Records a result. Returns whether it is new: it differs from the last one, is the first, or follows a failure.
    pub fn record_result(&mut self, result: &RawJson, bounds: &JsonLimits) -> bool {
        let seen = digest(result, bounds);
        let changed = self.last.replace(seen) != Some(seen);
        std::mem::take(&mut self.failing) || changed
    }

    /// Records a failure. Returns whether it is the first in a row.
    pub fn record_failure(&mut self) -> bool {
        !std::mem::replace(&mut self.failing, true)
    }
}

fn digest(result: &RawJson, bounds: &JsonLimits) -> [u8; 32] {
    let mut hasher = Sha256::new();
    match object_members(result, bounds) {
        Ok(members) => {
            for (key, value) in members.iter().filter(|(key, _)| !RESPONSE_MEMBERS.contains(&&**key)) {
                hasher.update(key.len().to_le_bytes());
                hasher.update(&**key);
                hasher.update(value.as_bytes().len().to_le_bytes());
                hasher.update(value.as_bytes());
            }
        }
        Err(_) => hasher.update(result.as_bytes()),
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds results in order, with an empty text for a failure, and checks whether each is reported.
    fn check(coming: &[(&str, bool)]) {
        let mut memory = ChangeDetector::default();
        for (n, (text, told)) in coming.iter().enumerate() {
            let found = match *text {
                "" => memory.record_failure(),
                text => memory.record_result(&RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default()),
            };
            assert_eq!(found, *told, "{n} of {coming:?}");
        }
    }

    #[test]
    fn only_changed_results_are_reported() {
        check(&[(r#"{"a":1}"#, true), (r#"{"a":1}"#, false), (r#"{"a":2}"#, true), (r#"{"a":1}"#, true)]);
        check(&[
            ("", true),
            ("", false),
            (r#"{"a":1}"#, true),
            ("", true),
            (r#"{"a":1}"#, true),
            (r#"{"a":1}"#, false),
        ]);
        check(&[(r#"{"a":1,"_meta":{"n":1},"ttlMs":1}"#, true), (r#"{"a":1,"_meta":{"n":2},"ttlMs":2}"#, false)]);
        check(&[(r#"{"a":{"_meta":1}}"#, true), (r#"{"a":{"_meta":2}}"#, true)]);
        check(&[(r#"{"a":"","b":""}"#, true), (r#"{"ab":""}"#, true), ("[1]", true), ("[2]", true)]);
    }
}
