//! Boxed tables, fitted to the terminal width.

use unicode_width::UnicodeWidthStr as _;

use wharf_terminal::columns::ColumnAlignment;
use wharf_terminal::table::truncate_columns;

/// Columns needed per table column besides its text: one line and two spaces.
const COLUMN_PADDING: usize = 3;
/// Width to which the first column is truncated before other columns are omitted.
const MIN_FIRST_WIDTH: usize = 10;

/// A row with an optional note below it that spans all columns. All texts are escaped.
pub struct BoxedRow<const N: usize> {
    pub cells: [String; N],
    pub below: Option<RowNote>,
}

/// A note below a row. The next step is truncated last.
pub struct RowNote {
    pub what: String,
    pub next: String,
}

/// A table to draw.
pub struct BoxedTable<'a, const N: usize> {
    pub headings: [(&'static str, ColumnAlignment); N],
    pub rows: &'a [BoxedRow<N>],
    /// Columns to omit if space is short, in this order. The first column is truncated before that.
    pub omit_order: &'a [usize],
}

impl<const N: usize> BoxedTable<'_, N> {
    /// Draws the box. `format_cell` styles a finished cell.
    pub fn draw(&self, width: Option<usize>, format_cell: impl Fn(usize, &str) -> String) -> String {
        let columns = self.fit_columns(width);
        let rule = |left, middle, right| {
            let dashes: Vec<String> = columns.iter().map(|(_, width)| "─".repeat(width + 2)).collect();
            format!("{left}{}{right}\n", dashes.join(middle))
        };
        let titles = self.headings.map(|(title, _)| title.to_owned());
        let mut text = rule("┌", "┬", "┐");
        text.push_str(&self.draw_row(&titles, &columns, |_, cell| cell.to_owned()));
        text.push_str(&rule("├", "┼", "┤"));
        for row in self.rows {
            text.push_str(&self.draw_row(&row.cells, &columns, &format_cell));
            if let Some(note) = &row.below {
                text.push_str(&draw_note(note, &columns));
            }
        }
        text.push_str(&rule("└", "┴", "┘"));
        text
    }

    /// Returns the visible columns with their widths.
    fn fit_columns(&self, width: Option<usize>) -> Vec<(usize, usize)> {
        let natural = |at: usize| self.rows.iter().map(|row| row.cells[at].width()).max().unwrap_or_default();
        let mut columns: Vec<(usize, usize)> =
            (0..N).map(|at| (at, natural(at).max(self.headings[at].0.width()))).collect();
        let Some(width) = width else { return columns };
        let mut omit_order = self.omit_order.iter();
        while box_width(&columns) > width {
            let excess = box_width(&columns) - width;
            let least = columns[0].1.min(MIN_FIRST_WIDTH);
            let spare = columns[0].1 - least;
            if excess <= spare {
                columns[0].1 -= excess;
                break;
            }
            match omit_order.next() {
                Some(gone) => columns.retain(|(at, _)| at != gone),
                None => {
                    columns[0].1 = columns[0].1.saturating_sub(excess).max(1);
                    break;
                }
            }
        }
        columns
    }

    fn draw_row(
        &self,
        cells: &[String; N],
        columns: &[(usize, usize)],
        format_cell: impl Fn(usize, &str) -> String,
    ) -> String {
        let cell = |(at, width): &(usize, usize)| {
            let text = truncate_columns(&cells[*at], *width);
            let gap = " ".repeat(width.saturating_sub(text.width()));
            match self.headings[*at].1 {
                ColumnAlignment::Left => format!(" {}{gap} │", format_cell(*at, &text)),
                ColumnAlignment::Right => format!(" {gap}{} │", format_cell(*at, &text)),
            }
        };
        format!("│{}\n", columns.iter().map(cell).collect::<String>())
    }
}

/// Returns the total width of a box with these columns.
fn box_width(columns: &[(usize, usize)]) -> usize {
    columns.iter().map(|(_, width)| width + COLUMN_PADDING).sum::<usize>() + 1
}

/// Formats a note that spans all columns.
fn draw_note(note: &RowNote, columns: &[(usize, usize)]) -> String {
    let room = box_width(columns).saturating_sub(6);
    let what = truncate_columns(&note.what, room.saturating_sub(note.next.width() + 2));
    let separator = if what.is_empty() || note.next.is_empty() { "" } else { "; " };
    let text = truncate_columns(&format!("{what}{separator}{}", note.next), room);
    format!("│   {text}{} │\n", " ".repeat(room.saturating_sub(text.width())))
}
