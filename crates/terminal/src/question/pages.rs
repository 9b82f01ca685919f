//! Paging of a text that may be longer than the screen.

use terminal_size::{Height, Width, terminal_size_of};
use wharf_spec::UntrustedText;

use crate::failure::gutter;
use crate::style::{QUIET, paint};
use crate::table::split_columns;

/// Width of the gutter mark.
const GUTTER_WIDTH: usize = 4;
/// Accepted range of screen sizes; other values are clamped.
const WIDTHS: std::ops::RangeInclusive<usize> = 20..=300;
const ROWS: std::ops::RangeInclusive<usize> = 4..=100;
/// Screen rows used by the rest of the question: the header, the prompt and the input line.
const RESERVED_ROWS: usize = 10;

/// Screen size in columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    pub width: usize,
    pub rows: usize,
}

/// An untrusted text split into rows, with a reading position.
pub struct TextPager {
    /// Escaped rows.
    rows: Vec<String>,
    /// Rows per page.
    height: usize,
    /// First row of the current page.
    from: usize,
}

impl ScreenSize {
    /// Returns the size of the terminal on stderr.
    pub fn from_stderr() -> Self {
        let size = terminal_size_of(std::io::stderr());
        Self::from_size(size.map(|(Width(columns), Height(rows))| (usize::from(columns), usize::from(rows))))
    }

    /// Uses this size, or 80×24 if unknown.
    pub fn from_size(size: Option<(usize, usize)>) -> Self {
        let (width, rows) = size.unwrap_or((80, 24));
        Self { width, rows }
    }
}

impl TextPager {
    /// Splits an unescaped text into rows without dropping anything.
    pub fn new(text: &str, room: ScreenSize) -> Self {
        let width = room.width.clamp(*WIDTHS.start(), *WIDTHS.end()) - GUTTER_WIDTH;
        let height = room.rows.saturating_sub(RESERVED_ROWS).clamp(*ROWS.start(), *ROWS.end());
        let escaped = text.split('\n').map(|line| UntrustedText::new(line).to_string());
        Self { rows: escaped.flat_map(|line| split_columns(&line, width)).collect(), height, from: 0 }
    }

    /// Renders the current page in the gutter, followed by its position unless the text fits on one page.
    pub fn render_page(&self) -> String {
        let rows: Vec<String> = self.rows[self.from..self.end()].iter().map(|row| gutter(row)).collect();
        let place = self.position_label().map(|place| format!("\n  {}", paint(QUIET, place)));
        format!("{}{}", rows.join("\n"), place.unwrap_or_default())
    }

    /// Moves to the next page. Returns `false` at the end.
    pub fn next_page(&mut self) -> bool {
        let is_more = self.end() < self.rows.len();
        if is_more {
            self.from = self.end();
        }
        is_more
    }

    /// Returns the number of rows after the current page.
    pub fn rows_left(&self) -> usize {
        self.rows.len() - self.end()
    }

    fn position_label(&self) -> Option<String> {
        let (from, end, all) = (self.from + 1, self.end(), self.rows.len());
        match self.rows_left() {
            0 if self.from == 0 => None,
            0 => Some(format!("lines {from}–{end} of {all} (end)")),
            unseen => Some(format!("lines {from}–{end} of {all}, {unseen} more · Enter: next page")),
        }
    }

    fn end(&self) -> usize {
        self.rows.len().min(self.from + self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(pages: &TextPager) -> String {
        anstream::adapter::strip_str(&pages.render_page()).to_string()
    }

    #[test]
    fn text_is_paged_to_its_end() {
        let text: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
        let mut pages = TextPager::new(&text.join("\n"), ScreenSize { width: 80, rows: 18 });
        let mut read = vec![(plain(&pages).lines().count(), pages.rows_left())];
        while pages.next_page() {
            read.push((plain(&pages).lines().count(), pages.rows_left()));
        }
        assert_eq!(read, [(9, 12), (9, 4), (5, 0)]);
        assert!(plain(&pages).ends_with("lines 17–20 of 20 (end)"), "{}", plain(&pages));
        assert!(!pages.next_page());
        assert_eq!(plain(&TextPager::new("a\nb", ScreenSize::from_size(None))), "  │ a\n  │ b");
    }

    #[test]
    fn whole_text_is_shown_escaped() {
        let room = ScreenSize { width: 30, rows: 24 };
        for text in ["x".repeat(1_000), "漢".repeat(500), "\u{1b}[2J\u{202e}".repeat(90), String::new()] {
            let pages = TextPager::new(&text, room);
            assert_eq!(pages.rows.concat(), UntrustedText::new(text.as_str()).to_string());
            for row in &pages.rows {
                assert!(unicode_width::UnicodeWidthStr::width(row.as_str()) <= 26, "{row}");
                assert!(!row.contains(char::is_control), "{row:?}");
            }
        }
    }

    #[test]
    fn screen_size_is_clamped() {
        for (width, rows) in [(0, 0), (1, 1), (usize::MAX, usize::MAX)] {
            let pages = TextPager::new(&"x".repeat(2_000), ScreenSize { width, rows });
            assert!(pages.rows.len() >= 6 && pages.end() > 0);
        }
    }
}
