//! Text that came from a server. The only way to show it is escaped.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// Text nobody vouches for: names, descriptions, results, errors, stderr lines.
///
/// Displayed, it stays on one line and cannot move a cursor, change a colour, reorder what is read or hide
/// anything: whatever could is spelt out, as `\n`, `\t` or `\u{1b}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Untrusted<'a>(Cow<'a, str>);

impl<'a> Untrusted<'a> {
    /// Marks a text as untrusted.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// Takes bytes that may not even be UTF-8.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self(String::from_utf8_lossy(bytes))
    }

    /// Shows line breaks and tabs as they are, and everything else as [`Untrusted`] does.
    pub fn block(&self) -> Shown<'_> {
        Shown { text: &self.0, lines: true, limit: usize::MAX }
    }

    /// Shows at most this many characters, with `…` where something is missing.
    pub fn shortened(&self, limit: usize) -> Shown<'_> {
        Shown { text: &self.0, lines: false, limit }
    }

    /// The text as it is, for whoever forwards and does not show it.
    pub fn raw(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shortened(usize::MAX).fmt(f)
    }
}

impl fmt::Debug for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Untrusted text on its way to a terminal, a log or a page.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    text: &'a str,
    lines: bool,
    limit: usize,
}

impl<'a> Shown<'a> {
    /// Untrusted text on one line, at most this many characters of it.
    pub fn line(text: &'a str, limit: usize) -> Self {
        Self { text, lines: false, limit }
    }

    /// Untrusted text with its line breaks and tabs, at most this many characters of it.
    pub fn lines(text: &'a str, limit: usize) -> Self {
        Self { text, lines: true, limit }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, character) in self.text.chars().enumerate() {
            if n == self.limit {
                return f.write_char('…');
            }
            match character {
                '\n' | '\t' if self.lines => f.write_char(character)?,
                // Emoji are joined and coloured by these; in a block they can do no harm.
                '\u{200d}' | '\u{fe0f}' if self.lines => f.write_char(character)?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                _ if acts(character) => write!(f, "\\u{{{:x}}}", u32::from(character))?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// Whether a character acts instead of showing: controls, bidirectional marks, invisible letters, tags.
pub fn acts(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts() {
        for (text, line) in [
            ("plain — ünï 🎉", "plain — ünï 🎉"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("s\u{200b}e\u{e0041}", "s\\u{200b}e\\u{e0041}"),
        ] {
            assert_eq!(Untrusted::new(text).to_string(), line);
        }
        assert_eq!(Untrusted::new("a\nb\u{1b}\r").block().to_string(), "a\nb\\u{1b}\\r");
        assert_eq!(Untrusted::new("abcdef").shortened(3).to_string(), "abc…");
        assert_eq!(Untrusted::new("abc").shortened(3).to_string(), "abc");
        assert_eq!(Untrusted::from_bytes(b"a\xffb").to_string(), "a\u{fffd}b");
    }
}
