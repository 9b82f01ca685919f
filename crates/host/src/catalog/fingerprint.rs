//! Fingerprints of tool definitions, which reveal any change.

use sha2::{Digest, Sha256};
use wharf_json::{JsonLimits, RawJson};
use wharf_tools::Fingerprint;
use wharf_wire::ToolDefinition;

use super::tree::{JsonMembers, JsonTree};

/// Returns the digest of a definition without `_meta`, which servers fill with per-response values.
///
/// Key order, white space and string escapes make no difference. Every name, string and digit does. Duplicate keys are
/// both included, in their order.
pub fn fingerprint(definition: &ToolDefinition) -> Fingerprint {
    Fingerprint(digest(&definition.raw))
}

fn digest(definition: &RawJson) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // The definition met the size limits when it was listed; only the recursion depth is limited here.
    match JsonTree::parse(definition, &JsonLimits { depth: 256, nodes: usize::MAX }) {
        Ok(JsonTree::Object(mut members)) => {
            members.retain(|(key, _)| key != "_meta");
            hash_object(&mut hasher, &members);
        }
        Ok(other) => hash_value(&mut hasher, &other),
        // Unpaired surrogate: hash the raw text under a tag that no value has.
        Err(_) => hash_text(&mut hasher, b'?', definition.as_str()),
    }
    hasher.finalize().into()
}

fn hash_value(hasher: &mut Sha256, tree: &JsonTree<'_>) {
    match tree {
        JsonTree::Scalar(text) => hash_text(hasher, b'#', text),
        JsonTree::Text(text) => hash_text(hasher, b'"', text),
        JsonTree::List(items) => {
            hash_length(hasher, b'[', items.len());
            items.iter().for_each(|item| hash_value(hasher, item));
        }
        JsonTree::Object(members) => hash_object(hasher, members),
    }
}

fn hash_object(hasher: &mut Sha256, members: &JsonMembers<'_>) {
    let mut sorted: Vec<_> = members.iter().collect();
    // Stable: duplicate keys keep their order.
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    hash_length(hasher, b'{', sorted.len());
    for (key, member) in sorted {
        hash_text(hasher, b'"', key);
        hash_value(hasher, member);
    }
}

fn hash_text(hasher: &mut Sha256, sign: u8, text: &str) {
    hash_length(hasher, sign, text.len());
    hasher.update(text);
}

fn hash_length(hasher: &mut Sha256, sign: u8, number: usize) {
    hasher.update([sign]);
    hasher.update((number as u64).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn digest_text(text: &str) -> [u8; 32] {
        digest(&RawJson::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn formatting_does_not_change_the_fingerprint() {
        let plain = digest_text(r#"{"name":"a","inputSchema":{"type":"object","x":[1,2]}}"#);
        for text in [
            r#"{"inputSchema":{"x":[1,2],"type":"object"},"name":"a"}"#,
            r#"{ "name" : "\u0061", "inputSchema" : { "type":"object", "x":[1 , 2] } }"#,
            r#"{"_meta":{"at":17},"name":"a","inputSchema":{"type":"object","x":[1,2]}}"#,
        ] {
            assert_eq!(digest_text(text), plain, "{text}");
        }
    }

    /// One `@` for each position in which a server can place readable text.
    const PLACES: &str = r#"{"name":"@","title":"@","description":"@","annotations":{"title":"@","x":"@"},
        "icons":[{"src":"@","mimeType":"@","sizes":["@"]}],"execution":{"taskSupport":"@"},"x-unknown":"@",
        "inputSchema":{"$schema":"@","$comment":"@","title":"@","description":"@","$defs":{"@":{"const":"@"}},
            "properties":{"a":{"description":"@","title":"@","enum":["@"],"default":"@","examples":["@"],
                "const":"@","pattern":"@","format":"@"},"@":{}},"required":["@"]},
        "outputSchema":{"description":"@"}}"#;

    #[test]
    fn every_text_changes_the_fingerprint() {
        let places = PLACES.matches('@').count();
        assert!(places >= 22, "{places}");
        let poisoned = |place: usize| {
            let mut nth = 0..;
            let parts = PLACES.split('@').map(str::to_owned);
            parts.reduce(|text, next| {
                let canary = if nth.next() == Some(place) { "IGNORE PREVIOUS" } else { "fine" };
                format!("{text}{canary}{next}")
            })
        };
        let digests: HashSet<_> = (0..=places).map(|place| digest_text(&poisoned(place).unwrap())).collect();
        assert_eq!(digests.len(), places + 1);
    }

    #[test]
    fn numbers_and_structure_change_the_fingerprint() {
        let texts = [
            r#"{"a":12345678901234567890123}"#,
            r#"{"a":12345678901234567890124}"#,
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":"1"}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[1],"b":[]}"#,
            r#"{"a":[[1]],"b":[]}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            r#"{"a":{"_meta":1}}"#,
            r#"{"a":{"_meta":2}}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\ud801"}"#,
        ];
        let digests: HashSet<_> = texts.iter().map(|text| digest(&RawJson::new_unchecked(*text))).collect();
        assert_eq!(digests.len(), texts.len());
    }
}
