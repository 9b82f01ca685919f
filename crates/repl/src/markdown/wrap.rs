//! Word wrapping of styled text by display width.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use wharf_spec::UntrustedText;

use super::apply_style;

/// An escaped run of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledPiece {
    pub text: String,
    pub style: Style,
}

/// Escapes control characters and puts the text on one line.
pub fn escape_line(text: &str) -> String {
    UntrustedText::new(text).multiline().to_string().replace('\t', "    ").replace('\n', " ")
}

/// Wraps pieces into lines. A newline in a piece forces a line break.
pub fn wrap_pieces(pieces: &[StyledPiece], width: usize) -> Vec<String> {
    let mut lines = vec![WrappedLine::default()];
    for word in words(pieces) {
        match word {
            WrapUnit::Break => lines.push(WrappedLine::default()),
            WrapUnit::Blank(style) => last_line(&mut lines).blank = Some(style),
            WrapUnit::Letters(letters) => append_word(&mut lines, &letters, width),
        }
    }
    lines.into_iter().map(|line| line.text()).collect()
}

/// A unit between two possible line breaks.
enum WrapUnit {
    Letters(Vec<StyledPiece>),
    Blank(Style),
    Break,
}

#[derive(Default)]
struct WrappedLine {
    pieces: Vec<StyledPiece>,
    width: usize,
    /// A pending space, written if more text follows on the line.
    blank: Option<Style>,
}

fn words(pieces: &[StyledPiece]) -> Vec<WrapUnit> {
    let mut words = Vec::new();
    for StyledPiece { text, style } in pieces {
        for part in text.split_inclusive([' ', '\n']) {
            let letters = part.trim_end_matches([' ', '\n']);
            match words.last_mut() {
                _ if letters.is_empty() => {}
                Some(WrapUnit::Letters(word)) => word.push(StyledPiece { text: letters.to_owned(), style: *style }),
                _ => words.push(WrapUnit::Letters(vec![StyledPiece { text: letters.to_owned(), style: *style }])),
            }
            match &part[letters.len()..] {
                "" => {}
                "\n" => words.push(WrapUnit::Break),
                _ => words.push(WrapUnit::Blank(*style)),
            }
        }
    }
    words
}

/// Appends a word to the last line, starts a new line if it does not fit, or splits it if it is wider than a line.
fn append_word(lines: &mut Vec<WrappedLine>, word: &[StyledPiece], width: usize) {
    let columns: usize = word.iter().map(|piece| piece.text.width()).sum();
    let line = last_line(lines);
    let blank = line.blank.take().filter(|_| line.width > 0);
    if line.width > 0 && line.width + usize::from(blank.is_some()) + columns > width {
        lines.push(WrappedLine::default());
    } else if let Some(style) = blank {
        line.push(" ", style);
    }
    for piece in word {
        if columns <= width {
            last_line(lines).push(&piece.text, piece.style);
            continue;
        }
        for letter in piece.text.chars() {
            if last_line(lines).width + letter.width().unwrap_or(0) > width {
                lines.push(WrappedLine::default());
            }
            last_line(lines).push(letter.encode_utf8(&mut [0; 4]), piece.style);
        }
    }
}

fn last_line(lines: &mut Vec<WrappedLine>) -> &mut WrappedLine {
    if lines.is_empty() {
        lines.push(WrappedLine::default());
    }
    let end = lines.len() - 1;
    &mut lines[end]
}

impl WrappedLine {
    fn push(&mut self, text: &str, style: Style) {
        self.width += text.width();
        match self.pieces.last_mut() {
            Some(piece) if piece.style == style => piece.text.push_str(text),
            _ => self.pieces.push(StyledPiece { text: text.to_owned(), style }),
        }
    }

    fn text(&self) -> String {
        self.pieces.iter().map(|piece| apply_style(piece.style, &piece.text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], width: usize, expected: &[&str]) {
        let pieces: Vec<StyledPiece> =
            texts.iter().map(|text| StyledPiece { text: (*text).to_owned(), style: Style::new() }).collect();
        assert_eq!(wrap_pieces(&pieces, width), expected);
    }

    #[test]
    fn lines_break_between_words_and_only_there() {
        check(&["one two three"], 8, &["one two", "three"]);
        check(&["one", "two three"], 6, &["onetwo", "three"]);
        check(&["one   two  "], 20, &["one two"]);
        check(&["one\n", "two"], 20, &["one", "two"]);
        check(&["\u{6f22}\u{5b57} \u{6f22}\u{5b57}"], 5, &["\u{6f22}\u{5b57}", "\u{6f22}\u{5b57}"]);
        check(&["abcdefgh ij"], 3, &["abc", "def", "gh", "ij"]);
        check(&[], 3, &[""]);
    }

    #[test]
    fn style_spans_spaces_but_not_lines() {
        let bold = Style::new().bold();
        let pieces = [StyledPiece { text: "a b".to_owned(), style: bold }];
        assert_eq!(wrap_pieces(&pieces, 9), [format!("{bold}a b{bold:#}")]);
        assert_eq!(wrap_pieces(&pieces, 1), [format!("{bold}a{bold:#}"), format!("{bold}b{bold:#}")]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_line("a\u{1b}]8;;http://x\u{7}\tb\r"), "a\\u{1b}]8;;http://x\\u{7}    b\\r");
    }
}
