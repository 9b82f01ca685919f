//! Argument completion (`completion/complete`).

use serde::Deserialize;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

/// The prompt or resource template that owns the completed argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A prompt, by name.
    Prompt(&'a str),
    /// A resource template, by its URI template.
    Template(&'a str),
}

/// Maximum number of suggestions in one response (2025-11-25, server/utilities/completion).
pub const MAX_COMPLETIONS: usize = 100;

/// The suggestions of a server. Untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The suggestions, best first; at most [`MAX_COMPLETIONS`].
    pub values: Vec<String>,
    /// Total number of suggestions, if the server reports it.
    pub total: Option<u64>,
    /// Set if the server has more suggestions, or if the list was truncated.
    pub has_more: bool,
}

impl View for Completion {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireCompletionValues {
            values: Vec<String>,
            #[serde(default)]
            total: Option<u64>,
            #[serde(default)]
            has_more: Option<bool>,
        }
        #[derive(Deserialize)]
        struct WireCompletion {
            completion: WireCompletionValues,
        }
        let WireCompletion { completion: WireCompletionValues { mut values, total, has_more } } = raw.decode(bounds)?;
        let too_many = values.len() > MAX_COMPLETIONS;
        values.truncate(MAX_COMPLETIONS);
        Ok(Self { values, total, has_more: has_more.unwrap_or(false) || too_many })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_truncated_to_a_hundred() {
        let many: Vec<String> = (0..150).map(|n| n.to_string()).collect();
        let raw = RawJson::from_value(&serde_json::json!({ "completion": { "values": many } })).unwrap();
        let found = Completion::from_raw(raw, &JsonLimits::default()).unwrap();
        assert_eq!((found.values.len(), found.has_more), (100, true));
    }
}
