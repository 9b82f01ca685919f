//! A sheet about one thing: lines of a word and what it is about, in one column each.

use std::fmt::Write as _;

use crate::style::{HEADING, QUIET, paint};
use crate::table::wrap;

/// Where the second column begins.
const INDENT: usize = 15;

/// A sheet as it is written.
pub struct Sheet {
    pub text: String,
    last: &'static str,
}

impl Sheet {
    /// A sheet about this, escaped already.
    pub fn new(heading: &str) -> Self {
        Self { text: format!("{}\n", paint(HEADING, heading)), last: "" }
    }

    /// A line; a word that stands above already is not repeated. What it is about is escaped already.
    pub fn line(&mut self, word: &'static str, about: &str) {
        let shown = if word == self.last { String::new() } else { format!("{word}:") };
        self.last = word;
        let _ = writeln!(self.text, "  {}{about}", paint(QUIET, format_args!("{shown:<13}")));
    }

    /// The same, broken where it would be wider than this.
    pub fn wrapped(&mut self, word: &'static str, about: &str, width: Option<usize>) {
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
    fn a_word_stands_once_and_nothing_is_too_wide() {
        let mut sheet = Sheet::new("harbour");
        sheet.line("State", "ready");
        sheet.wrapped("Error", "it has lost its anchor and drifts", Some(34));
        let expected =
            "harbour\n  State:       ready\n  Error:       it has lost its\n                 anchor and drifts\n";
        assert_eq!(anstream::adapter::strip_str(&sheet.text).to_string(), expected);
    }
}
