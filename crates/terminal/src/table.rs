//! Two-column tables of labels and descriptions, fitted to the terminal width.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use wharf_spec::UntrustedText;

use crate::failure::gutter;
use crate::style::{NAME, paint};

/// Indent of a continuation row.
const CONTINUATION_INDENT: &str = "  ";

/// One table row. Both texts are escaped.
pub struct LabelRow {
    pub label: String,
    pub about: String,
}

/// Maximum label width used for alignment. A wider label shifts only its own row.
const MAX_LABEL_WIDTH: usize = 48;
/// Minimum width of the second column. With less room it is omitted.
const MIN_ABOUT_WIDTH: usize = 12;
/// Width of the gutter mark.
const GUTTER_WIDTH: usize = 4;

impl LabelRow {
    /// Creates a row from an untrusted label and the first line of an untrusted description.
    pub fn new(label: &str, about: Option<&str>) -> Self {
        let about = about.unwrap_or_default().trim().lines().next().unwrap_or_default().trim();
        Self { label: UntrustedText::new(label).to_string(), about: UntrustedText::new(about).to_string() }
    }
}

/// Renders the rows. Without a width, texts are not truncated.
pub fn render_table(rows: &[LabelRow], width: Option<usize>) -> String {
    let label_width =
        rows.iter().map(|row| row.label.width()).filter(|width| *width <= MAX_LABEL_WIDTH).max().unwrap_or(0);
    let mut text = String::new();
    for LabelRow { label, about } in rows {
        let gap = " ".repeat(label_width.saturating_sub(label.width()) + 2);
        let used = 2 + label.width() + gap.len();
        let about = match width.map(|width| width.saturating_sub(used)) {
            None => about.clone(),
            Some(room) if room < MIN_ABOUT_WIDTH => String::new(),
            Some(room) => truncate_columns(about, room),
        };
        let _ = match about.as_str() {
            "" => writeln!(text, "  {}", paint(NAME, label)),
            about => writeln!(text, "  {}{gap}{about}", paint(NAME, label)),
        };
    }
    text
}

/// Truncates a text to `width` columns, ending in `…` if anything was removed.
pub fn truncate_columns(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used < width
    };
    let mut prefix: String = text.chars().take_while(fits).collect();
    prefix.truncate(prefix.trim_end().len());
    prefix.push('…');
    prefix
}

/// Wraps lines at spaces. Continuation lines are indented further, or repeat the gutter mark of their line. Without a
/// width, the text is returned unchanged.
pub fn wrap(text: &str, width: Option<usize>) -> String {
    wrap_by(text, width, wrap_line)
}

/// Wraps only the lines in the gutter, so that server text cannot appear outside the gutter.
pub fn wrap_gutter(text: &str, width: Option<usize>) -> String {
    wrap_by(text, width, |line, _| line.to_owned())
}

fn wrap_by(text: &str, width: Option<usize>, other: fn(&str, usize) -> String) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mark = gutter("");
    let wrapped = text.lines().map(|line| match line.strip_prefix(&mark) {
        Some(words) => wrap_with_mark(&mark, words, width.saturating_sub(GUTTER_WIDTH).max(1)),
        None => other(line, width),
    });
    wrapped.collect::<Vec<_>>().join("\n")
}

/// Wraps a line after a mark. Words wider than the line are split: the terminal would split them without the mark.
/// Every row but the first is indented, so that a continuation cannot pass for a separate line.
fn wrap_with_mark(mark: &str, line: &str, width: usize) -> String {
    let rows = wrap_line(line, width);
    let rows: Vec<String> = rows.split('\n').flat_map(|row| split_and_indent(row, width)).collect();
    rows.iter().map(|row| format!("{mark}{row}")).collect::<Vec<_>>().join("\n")
}

fn split_and_indent(row: &str, width: usize) -> Vec<String> {
    let lines = split_columns(row, width);
    // A terminal this narrow has no room for an indent.
    if lines.len() == 1 || width < 8 {
        return lines;
    }
    let rows = split_columns(row, width - CONTINUATION_INDENT.len()).into_iter().enumerate();
    rows.map(|(number, row)| if number == 0 { row } else { format!("{CONTINUATION_INDENT}{row}") }).collect()
}

/// Splits a line into pieces of at most `width` columns.
pub fn split_columns(line: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for letter in line.chars() {
        // Zero-width characters count as one column, which bounds the length of a row.
        let columns = letter.width().unwrap_or(0).max(1);
        if used + columns > width {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        row.push(letter);
        used += columns;
    }
    rows.push(row);
    rows
}

fn wrap_line(line: &str, width: usize) -> String {
    let indent = " ".repeat(line.len() - line.trim_start().len());
    let (mut text, mut used) = (indent.clone(), indent.len());
    for (number, word) in line.trim_start().split(' ').enumerate() {
        let columns = anstream::adapter::strip_str(word).to_string().width();
        if number > 0 && used + 1 + columns > width {
            text = format!("{}\n{indent}  ", text.trim_end());
            used = indent.len() + 2;
        } else if number > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += columns;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(rows: &[(&str, &str)], width: Option<usize>) -> String {
        let rows: Vec<LabelRow> = rows.iter().map(|(label, about)| LabelRow::new(label, Some(about))).collect();
        anstream::adapter::strip_str(&render_table(&rows, width)).to_string()
    }

    #[test]
    fn rows_fit_the_width() {
        let rows =
            [("a", "short"), ("longer", "wide 漢字漢字漢字漢字 text\nsecond line"), ("esc\u{1b}[2J", "\u{202e}x")];
        let lines = "  a             short\n  longer        wide 漢字漢字漢字漢字 text\n  esc\\u{1b}[2J  \\u{202e}x\n";
        assert_eq!(plain(&rows, None), lines);
        for line in plain(&rows, Some(30)).lines() {
            assert!(line.width() <= 30, "{line}");
        }
        assert_eq!(plain(&[("name", "about it")], Some(12)), "  name\n");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", None), "one two three");
        assert_eq!(wrap("  one two  three\nfour", Some(9)), "  one two\n    three\nfour");
        assert_eq!(wrap("\u{1b}[1mone\u{1b}[0m two", Some(7)), "\u{1b}[1mone\u{1b}[0m two");
        assert_eq!(wrap("unbreakable", Some(3)), "unbreakable");
    }

    #[test]
    fn gutter_text_cannot_leave_the_gutter() {
        let plain = |text: &str, width| anstream::adapter::strip_str(&wrap(text, Some(width))).to_string();
        let line = gutter("sign in please  address: https://bank.example");
        assert_eq!(plain(&line, 20), "  │ sign in please\n  │   address:\n  │   https://bank\n  │   .example");
        for text in ["x".repeat(200), "x\u{a0}".repeat(100), "漢字".repeat(60), "a\u{301}".repeat(99), String::new()]
        {
            for width in [1, 7, 20, 60] {
                let rows = plain(&gutter(&text), width);
                assert!(rows.lines().all(|row| row.starts_with("  │ ") && row.width() <= width.max(6)), "{rows}");
            }
        }
        let (apart, beside) = (gutter("one two"), "one two three four");
        let text = format!("{beside}\n{apart}");
        assert_eq!(wrap_gutter(&text, Some(9)), format!("{beside}\n{}\n{}", gutter("one"), gutter("  two")));
        assert_eq!(wrap_gutter(&text, None), text);
    }

    #[test]
    fn truncation_counts_columns() {
        for (text, width, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字漢字", 5, "漢字…"), ("ab cd", 4, "ab…")]
        {
            assert_eq!(truncate_columns(text, width), expected);
        }
    }
}
