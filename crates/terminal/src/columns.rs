//! Tables of several columns, fitted to the terminal width.

use unicode_width::UnicodeWidthStr as _;

use crate::style::{QUIET, paint};
use crate::table::truncate_columns;

/// Spaces between two columns.
const GAP: usize = 2;
/// Minimum useful width of a column.
const MIN_COLUMN_WIDTH: usize = 10;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnAlignment {
    Left,
    Right,
}

/// Returns left-aligned headings.
pub fn left_aligned<const N: usize>(headings: [&str; N]) -> [(&str, ColumnAlignment); N] {
    headings.map(|heading| (heading, ColumnAlignment::Left))
}

/// Renders escaped rows under their headings. If the width is too small, the last columns are truncated, then omitted.
/// `format_cell` styles a finished cell.
pub fn render_columns<const N: usize>(
    headings: [(&str, ColumnAlignment); N],
    rows: &[[String; N]],
    width: Option<usize>,
    format_cell: impl Fn(usize, &str) -> String,
) -> String {
    let natural: Vec<usize> = (0..N)
        .map(|at| rows.iter().map(|row| row[at].width()).chain([headings[at].0.width()]).max().unwrap_or_default())
        .collect();
    let widths = fit_widths(&natural, width);
    let columns: Vec<(usize, ColumnAlignment)> = widths.into_iter().zip(headings.map(|(_, side)| side)).collect();
    let titles = headings.map(|(title, _)| title.to_owned());
    let mut text = render_line(&titles, &columns, |_, cell| paint(QUIET, cell).to_string());
    for row in rows {
        text.push_str(&render_line(row, &columns, &format_cell));
    }
    text
}

/// Returns the width of each column. Columns get their natural width from left to right until the space runs out.
fn fit_widths(natural: &[usize], width: Option<usize>) -> Vec<usize> {
    let Some(mut room) = width else { return natural.to_vec() };
    let mut widths = Vec::new();
    for (at, wanted) in natural.iter().enumerate() {
        let gap = if at == 0 { 0 } else { GAP };
        let left = room.saturating_sub(gap);
        // Reserve up to a third for the last column if that makes it wide enough.
        let last = natural.get(at + 1).filter(|_| at + 2 == natural.len()).map(|last| (*last).min(left / 3));
        let kept = last.filter(|last| *last >= MIN_COLUMN_WIDTH.min(natural[at + 1])).map_or(0, |last| last + GAP);
        let given = (*wanted).min(left.saturating_sub(kept));
        if given < (*wanted).min(MIN_COLUMN_WIDTH) {
            break;
        }
        room -= gap + given;
        widths.push(given);
    }
    widths
}

fn render_line(
    cells: &[String],
    columns: &[(usize, ColumnAlignment)],
    format_cell: impl Fn(usize, &str) -> String,
) -> String {
    let mut text = String::new();
    let mut missing = 0;
    for (at, (cell, (width, side))) in cells.iter().zip(columns).enumerate() {
        let cell = truncate_columns(cell, *width);
        let gap = width.saturating_sub(cell.width());
        let (before, after) = if *side == ColumnAlignment::Left { (0, gap) } else { (gap, 0) };
        if !cell.is_empty() {
            text.push_str(&" ".repeat(missing + before));
            text.push_str(&format_cell(at, &cell));
            missing = after + GAP;
        } else {
            missing += gap + GAP;
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_columns_are_truncated_first() {
        let rows = [
            ["a".to_owned(), "on".to_owned(), "npx -y some-long-package".to_owned(), "~/.config/file:1".to_owned()],
            ["longer".to_owned(), String::new(), "x".to_owned(), "f:2".to_owned()],
        ];
        let shown = |width| {
            let text =
                render_columns(left_aligned(["ID", "STATE", "RUNS", "FILE"]), &rows, width, |_, cell| cell.to_owned());
            anstream::adapter::strip_str(&text).to_string()
        };
        assert_eq!(
            shown(None),
            "ID      STATE  RUNS                      FILE\n\
             a       on     npx -y some-long-package  ~/.config/file:1\n\
             longer         x                         f:2\n"
        );
        for width in [16, 20, 30, 40, 50, 60] {
            assert!(shown(Some(width)).lines().all(|line| line.width() <= width), "{}", shown(Some(width)));
        }
        assert!(shown(Some(30)).starts_with("ID      STATE  RUNS\n"), "{}", shown(Some(30)));
    }
}
