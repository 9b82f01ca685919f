//! Output of the management tools: bounded JSON, preceded by remarks.

use std::borrow::Cow;

use serde::Serialize;
use wharf_json::RawJson;
use wharf_tools::{ToolError, ToolErrorKind, ToolOutcome};

use crate::catalog::sanitize;

/// Maximum bytes of a URI, of a name or media type, and of a description in a list.
pub(super) const MAX_LISTED_URI_BYTES: usize = super::arguments::MAX_URI_BYTES;
pub(super) const MAX_LISTED_NAME_BYTES: usize = 200;
pub(super) const MAX_LISTED_TEXT_BYTES: usize = 1000;

/// Sanitizes and truncates a text of a server for a model.
pub(super) fn sanitize_text(text: &str, limit: usize) -> Cow<'_, str> {
    sanitize(text, limit).text
}

/// Sanitizes and truncates an optional text.
pub(super) fn sanitize_optional(text: Option<&String>, limit: usize) -> Option<Cow<'_, str>> {
    text.map(|text| sanitize_text(text, limit))
}

/// Entries of a JSON array of bounded size.
pub(super) struct JsonArrayBuilder {
    text: String,
    limit: usize,
    left_out: usize,
}

impl JsonArrayBuilder {
    pub fn new(limit: usize) -> Self {
        Self { text: "[".to_owned(), limit, left_out: 0 }
    }

    /// Adds an entry, unless it or an earlier one does not fit.
    pub fn push(&mut self, entry: &impl Serialize) {
        let entry = serde_json::to_string(entry).unwrap_or_default();
        // A comma before the entry, and the closing bracket.
        if entry.is_empty() || self.left_out > 0 || self.text.len() + entry.len() + 2 > self.limit {
            self.left_out += 1;
            return;
        }
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push_str(&entry);
    }

    /// Returns the array and the number of omitted entries.
    pub fn finish(mut self) -> (RawJson, usize) {
        self.text.push(']');
        (RawJson::new_unchecked(self.text), self.left_out)
    }
}

/// Creates an outcome with remarks and structured data.
pub(super) fn outcome_with_remarks(remarks: &[String], data: RawJson) -> ToolOutcome {
    let outcome = if remarks.is_empty() { ToolOutcome::default() } else { ToolOutcome::from_text(remarks.join("\n")) };
    outcome.with_data(data)
}

/// Serializes a value to JSON.
pub(super) fn to_json(value: &impl Serialize) -> Result<RawJson, ToolError> {
    RawJson::from_value(value).map_err(|error| ToolError::new(ToolErrorKind::Failed, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_over_the_limit_omits_trailing_entries() {
        for (entries, limit, expected, left_out) in [
            (&[][..], 10, "[]", 0),
            (&["a", "b"], 9, r#"["a","b"]"#, 0),
            (&["a", "b"], 8, r#"["a"]"#, 1),
            (&["long entry", "b"], 8, "[]", 2),
        ] {
            let mut list = JsonArrayBuilder::new(limit);
            entries.iter().for_each(|entry| list.push(entry));
            let (data, found) = list.finish();
            assert_eq!((data.as_str(), found), (expected, left_out));
            assert!(data.as_bytes().len() <= limit && serde_json::from_str::<serde_json::Value>(data.as_str()).is_ok());
        }
    }
}
