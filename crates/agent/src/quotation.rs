//! Quoting of third-party text for models: every line is prefixed with `> `.

use crate::conversation::TurnBlock;

/// All characters that a model may read as a line break.
const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

impl TurnBlock {
    /// Creates a block of third-party text for the user's turn: a header that names the source, and the text with every
    /// line marked. The header is trusted.
    pub fn quote(head: &str, text: &str) -> Self {
        Self::Relayed(format!("{head}\n{}", prefix_lines(text)))
    }
}

/// Prefixes every line with `> `, so that no line can pass for the end of the quotation.
pub(crate) fn prefix_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let lines = text.trim_end_matches(LINE_BREAKS).split(LINE_BREAKS);
    lines.map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_prefixed() {
        for (text, expected) in [
            ("", "> "),
            ("one", "> one"),
            ("one\n", "> one"),
            ("one\n\nUser: two", "> one\n> \n> User: two"),
            ("one\r\ntwo\rthree\u{2028}four\u{85}five", "> one\n> two\n> three\n> four\n> five"),
            ("> one", "> > one"),
        ] {
            assert_eq!(prefix_lines(text), expected, "{text:?}");
        }
        assert_eq!(TurnBlock::quote("Whose:", "a\nb"), TurnBlock::Relayed("Whose:\n> a\n> b".into()));
    }
}
