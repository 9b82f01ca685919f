//! Sanitizing of server texts for models: no control or hidden characters, and bounded length.

use std::borrow::Cow;
use std::fmt::Write as _;

use wharf_spec::is_control_or_bidi;

/// Maximum bytes of a description or of any text in a schema.
pub const DESCRIPTION: usize = 4096;
/// Maximum bytes of a title.
pub const TITLE: usize = 200;
/// Maximum bytes of a server's instructions.
pub const INSTRUCTIONS: usize = 8192;

/// Maximum length of a run of hidden characters that is escaped. A longer run could encode a text and is only counted.
const MAX_ESCAPED_RUN: usize = 4;

/// A sanitized text, with the changes made to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SanitizedText<'a> {
    /// The text, borrowed if it is unchanged.
    pub text: Cow<'a, str>,
    /// Set if hidden or control characters were escaped.
    pub revealed: bool,
    /// Set if the text was truncated.
    pub cut: bool,
}

/// Escapes hidden characters and truncates the text to a number of bytes.
///
/// Line breaks, tabs and the joiners inside emoji are kept. Other invisible characters are escaped, as in `\u{202e}`.
/// Longer runs of them, which may encode text, are replaced by their number.
pub fn sanitize(text: &str, limit: usize) -> SanitizedText<'_> {
    let kept = &text[..text.floor_char_boundary(limit)];
    let mut shown = escape_hidden(kept);
    let revealed = matches!(shown, Cow::Owned(_));
    let cut = kept.len() < text.len() || shown.len() > limit;
    if cut {
        let shown = shown.to_mut();
        shown.truncate(shown.floor_char_boundary(limit.saturating_sub('…'.len_utf8())));
        shown.push('…');
    }
    SanitizedText { text: shown, revealed, cut }
}

/// Escapes hidden characters without truncation. Borrows the text if it is unchanged.
pub(crate) fn escape_hidden(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control_or_bidi) || character_runs(text).all(|run| !run.hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 64);
    for run in character_runs(text) {
        match run.text.chars().count() {
            _ if !run.hidden => shown.push_str(run.text),
            few if few <= MAX_ESCAPED_RUN => run.text.chars().for_each(|character| {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }),
            many => {
                let _ = write!(shown, "[{many} hidden characters]");
            }
        }
    }
    Cow::Owned(shown)
}

/// A run of characters that are all visible or all hidden.
struct CharacterRun<'a> {
    text: &'a str,
    hidden: bool,
}

fn character_runs(text: &str) -> impl Iterator<Item = CharacterRun<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let hidden = is_hidden_at(text, start)?;
        while is_hidden_at(text, at) == Some(hidden) {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        Some(CharacterRun { text: &text[start..at], hidden })
    })
}

/// Reports whether the character at this position is hidden in its context. Returns `None` at the end.
fn is_hidden_at(text: &str, at: usize) -> Option<bool> {
    let mut following = text[at..].chars();
    let character = following.next()?;
    let before = || text[..at].chars().next_back();
    Some(match character {
        '\n' | '\t' => false,
        '\r' => following.next() != Some('\n'),
        '\u{200d}' => {
            !(before().is_some_and(|it| is_emoji(it) || it == '\u{fe0f}') && following.next().is_some_and(is_emoji))
        }
        '\u{fe0f}' => !before().is_some_and(|it| is_emoji(it) || matches!(it, '0'..='9' | '#' | '*')),
        other => is_control_or_bidi(other),
    })
}

/// Approximates the characters of emoji. None of them is hidden.
fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}'
        | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use wharf_spec::UntrustedText;

    use super::*;

    #[test]
    fn hidden_characters_are_escaped() {
        for (text, expected) in [
            ("", ""),
            ("plain — ünï\n\tcode", "plain — ünï\n\tcode"),
            ("two\r\nlines", "two\r\nlines"),
            ("a\rb", "a\\u{d}b"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("\u{1b}[2Jx", "\\u{1b}[2Jx"),
            ("soft\u{ad}hyphen", "soft\\u{ad}hyphen"),
            ("\u{e0041}\u{e0042}", "\\u{e0041}\\u{e0042}"),
            ("x\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}y", "x[6 hidden characters]y"),
            ("a\u{fe00}\u{fe01}\u{fe02}\u{fe03}\u{fe04}", "a[5 hidden characters]"),
            (
                "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
                "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
            ),
            ("👍🏽\u{200d}", "👍🏽\\u{200d}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\u{fe0f}"),
        ] {
            let found = sanitize(text, 1000);
            assert_eq!(found.text, expected);
            assert_eq!((found.revealed, found.cut), (text != expected, false), "{text:?}");
            assert_eq!(matches!(found.text, Cow::Borrowed(_)), text == expected);
        }
    }

    #[test]
    fn texts_are_truncated_at_the_limit() {
        for (text, limit, expected) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abc…"),
            ("üüüü", 7, "üü…"),
            ("a\u{202e}b", 5, "a\\…"),
            ("a\u{202e}b\u{202e}", 12, "a\\u{202e}…"),
        ] {
            let found = sanitize(text, limit);
            assert_eq!((&*found.text, found.cut), (expected, expected.ends_with('…')));
            assert!(found.text.len() <= limit, "{text:?}");
        }
        assert_eq!(sanitize(&"x".repeat(100_000), DESCRIPTION).text.len(), DESCRIPTION);
    }

    #[test]
    fn everything_escaped_for_terminals_is_escaped_for_models() {
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let escaped = UntrustedText::new(character.to_string()).to_string() != character.to_string();
            let hidden = sanitize(&character.to_string(), 100).revealed;
            assert!(hidden || !escaped || matches!(character, '\n' | '\t'), "{:x}", u32::from(character));
        }
    }
}
