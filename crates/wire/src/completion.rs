//! Completing an argument while it is being typed.

use serde::Deserialize;

use crate::{Bounds, View};
use wharf_json::{DecodeError, Raw};

/// What an argument to be completed belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The prompt of this name.
    Prompt(&'a str),
    /// The resource template with this text.
    Template(&'a str),
}

/// The most suggestions one answer may hold (2025-11-25, server/utilities/completion).
pub const MOST_COMPLETIONS: usize = 100;

/// What a server suggests. Untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The suggestions, best first; never more than [`MOST_COMPLETIONS`].
    pub values: Vec<String>,
    /// How many there are altogether, where the server knows.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl View for Completion {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Inner {
            values: Vec<String>,
            #[serde(default)]
            total: Option<u64>,
            #[serde(default)]
            has_more: Option<bool>,
        }
        #[derive(Deserialize)]
        struct Shape {
            completion: Inner,
        }
        let Shape { completion: Inner { mut values, total, has_more } } = raw.decode(bounds)?;
        let too_many = values.len() > MOST_COMPLETIONS;
        values.truncate(MOST_COMPLETIONS);
        Ok(Self { values, total, has_more: has_more.unwrap_or(false) || too_many })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_hundred_are_taken() {
        let many: Vec<String> = (0..150).map(|n| n.to_string()).collect();
        let raw = Raw::of(&serde_json::json!({ "completion": { "values": many } })).unwrap();
        let found = Completion::view(raw, &Bounds::default()).unwrap();
        assert_eq!((found.values.len(), found.has_more), (100, true));
    }
}
