//! Text from servers, escaped for display.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// Text from an untrusted source: names, descriptions, results, errors, stderr lines.
///
/// Displayed on one line and unable to move the cursor, change colours, reorder or hide text: such characters are
/// escaped as `\n`, `\t` or `\u{1b}`.
#[derive(Clone, PartialEq, Eq)]
pub struct UntrustedText<'a>(Cow<'a, str>);

impl<'a> UntrustedText<'a> {
    /// Marks a text as untrusted.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// Marks bytes as untrusted text. Invalid UTF-8 is replaced.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self(String::from_utf8_lossy(bytes))
    }

    /// Displays the text with its line breaks, tabs and emoji joiners. Everything else is escaped.
    pub fn multiline(&self) -> EscapedText<'_> {
        EscapedText { text: &self.0, lines: true, limit: usize::MAX }
    }

    /// Displays at most this many characters, with `…` if the text is longer.
    pub fn truncate(&self, limit: usize) -> EscapedText<'_> {
        EscapedText { text: &self.0, lines: false, limit }
    }

    /// Returns the unescaped text, for forwarding but not for display.
    pub fn raw(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UntrustedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.truncate(usize::MAX).fmt(f)
    }
}

impl fmt::Debug for UntrustedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// A view of untrusted text that escapes it on display.
#[derive(Debug, Clone, Copy)]
pub struct EscapedText<'a> {
    text: &'a str,
    lines: bool,
    limit: usize,
}

impl<'a> EscapedText<'a> {
    /// Displays the text on one line, limited to this many characters.
    pub fn single_line(text: &'a str, limit: usize) -> Self {
        Self { text, lines: false, limit }
    }

    /// Displays the text with its line breaks and tabs, limited to this many characters.
    pub fn multiline(text: &'a str, limit: usize) -> Self {
        Self { text, lines: true, limit }
    }
}

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, character) in self.text.chars().enumerate() {
            if n == self.limit {
                return f.write_char('…');
            }
            match character {
                '\n' | '\t' if self.lines => f.write_char(character)?,
                // Emoji joiners and variation selectors are harmless in a block.
                '\u{200d}' | '\u{fe0f}' if self.lines => f.write_char(character)?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                _ if is_control_or_bidi(character) => write!(f, "\\u{{{:x}}}", u32::from(character))?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// Reports whether a character is not visible text: a control, bidirectional mark, invisible letter or tag.
pub fn is_control_or_bidi(character: char) -> bool {
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
    fn control_characters_are_escaped() {
        for (text, line) in [
            ("plain — ünï 🎉", "plain — ünï 🎉"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("s\u{200b}e\u{e0041}", "s\\u{200b}e\\u{e0041}"),
        ] {
            assert_eq!(UntrustedText::new(text).to_string(), line);
        }
        assert_eq!(UntrustedText::new("a\nb\u{1b}\r").multiline().to_string(), "a\nb\\u{1b}\\r");
        assert_eq!(UntrustedText::new("abcdef").truncate(3).to_string(), "abc…");
        assert_eq!(UntrustedText::new("abc").truncate(3).to_string(), "abc");
        assert_eq!(UntrustedText::from_bytes(b"a\xffb").to_string(), "a\u{fffd}b");
    }
}
