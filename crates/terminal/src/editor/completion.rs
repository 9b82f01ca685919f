//! Completion of the line that is being edited.

use wharf_spec::UntrustedText;

use crate::table::truncate_columns;

/// Maximum width of a candidate in the list.
const MAX_WIDTH: usize = 60;

/// Completes a line. Called on the editor's thread.
pub trait LineCompleter: Send + Sync {
    /// Returns the candidates for the end of a line, and the byte from which they replace the line.
    fn candidates(&self, typed: &str) -> (usize, Vec<Candidate>);
}

/// A text that can replace the word that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub text: String,
    /// The text as it is listed, escaped.
    pub shown: String,
}

impl Candidate {
    /// Returns a text as it is.
    pub fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), shown: truncate_columns(&UntrustedText::new(text).to_string(), MAX_WIDTH) }
    }

    /// Returns a text that is followed by the next word.
    pub fn word(text: &str) -> Self {
        Self { text: format!("{text} "), ..Self::plain(text) }
    }
}

/// Returns the names that begin with the typed text, ignoring case.
pub fn starting_with<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let typed = typed.to_lowercase();
    names.filter(move |name| name.to_lowercase().starts_with(&typed))
}
