//! What the management tools answer: JSON that has an end, with whatever else is to be said above it.

use std::borrow::Cow;

use serde::Serialize;
use wharf_json::Raw;
use wharf_tools::{Outcome, ToolError, ToolErrorKind};

use crate::catalog::neutral;

/// The most bytes of an address, of a name or a media type, and of a description, where many are listed.
pub(super) const URI: usize = super::arguments::LONGEST_URI;
pub(super) const NAME: usize = 200;
pub(super) const TEXT: usize = 1000;

/// What a server says of something it has, fit for a model.
pub(super) fn told(text: &str, limit: usize) -> Cow<'_, str> {
    neutral(text, limit).text
}

/// The same where it says anything.
pub(super) fn told_if(text: Option<&String>, limit: usize) -> Option<Cow<'_, str>> {
    text.map(|text| told(text, limit))
}

/// Entries of a JSON array, as many as there is room for.
pub(super) struct Entries {
    text: String,
    limit: usize,
    left_out: usize,
}

impl Entries {
    pub fn new(limit: usize) -> Self {
        Self { text: "[".to_owned(), limit, left_out: 0 }
    }

    /// Adds an entry, unless one before it had no room.
    pub fn push(&mut self, entry: &impl Serialize) {
        let entry = serde_json::to_string(entry).unwrap_or_default();
        // A comma before it, and the bracket at the end.
        if entry.is_empty() || self.left_out > 0 || self.text.len() + entry.len() + 2 > self.limit {
            self.left_out += 1;
            return;
        }
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push_str(&entry);
    }

    /// The array, and how many entries are not in it.
    pub fn finish(mut self) -> (Raw, usize) {
        self.text.push(']');
        (Raw::known(self.text), self.left_out)
    }
}

/// An answer of data, below what else there is to say.
pub(super) fn answer(remarks: &[String], data: Raw) -> Outcome {
    let outcome = if remarks.is_empty() { Outcome::default() } else { Outcome::text_of(remarks.join("\n")) };
    outcome.with_data(data)
}

/// The JSON of something that always has one.
pub(super) fn json(value: &impl Serialize) -> Result<Raw, ToolError> {
    Raw::of(value).map_err(|error| ToolError::new(ToolErrorKind::Failed, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_an_end() {
        for (entries, limit, expected, left_out) in [
            (&[][..], 10, "[]", 0),
            (&["a", "b"], 9, r#"["a","b"]"#, 0),
            (&["a", "b"], 8, r#"["a"]"#, 1),
            (&["long entry", "b"], 8, "[]", 2),
        ] {
            let mut list = Entries::new(limit);
            entries.iter().for_each(|entry| list.push(entry));
            let (data, found) = list.finish();
            assert_eq!((data.get(), found), (expected, left_out));
            assert!(data.as_bytes().len() <= limit && serde_json::from_str::<serde_json::Value>(data.get()).is_ok());
        }
    }
}
