//! Detail sheets: labelled lines about one subject.

use std::fmt::Write as _;

use crate::style::{HEADING, QUIET, paint};
use crate::table::wrap;

/// Column at which the value begins.
const INDENT: usize = 15;

/// A detail sheet under construction.
pub struct DetailSheet {
    pub text: String,
    last: &'static str,
}

impl DetailSheet {
    /// Creates a sheet with an escaped heading.
    pub fn new(heading: &str) -> Self {
        Self { text: format!("{}\n", paint(HEADING, heading)), last: "" }
    }

    /// Appends a labelled line with an escaped value. A label equal to the previous one is not repeated.
    pub fn line(&mut self, word: &'static str, about: &str) {
        let shown = if word == self.last { String::new() } else { format!("{word}:") };
        self.last = word;
        let _ = writeln!(self.text, "  {}{about}", paint(QUIET, format_args!("{shown:<13}")));
    }

    /// Appends a labelled value, wrapped to a total width.
    pub fn wrapped_line(&mut self, word: &'static str, about: &str, width: Option<usize>) {
        let room = width.map(|width| width.saturating_sub(INDENT).max(INDENT));
        for line in wrap(about, room).lines() {
            self.line(word, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_label_is_omitted_and_lines_are_wrapped() {
        let mut sheet = DetailSheet::new("harbour");
        sheet.line("State", "ready");
        sheet.wrapped_line("Error", "it has lost its anchor and drifts", Some(34));
        let expected =
            "harbour\n  State:       ready\n  Error:       it has lost its\n                 anchor and drifts\n";
        assert_eq!(anstream::adapter::strip_str(&sheet.text).to_string(), expected);
    }
}
