//! Markdown tables: aligned if they fit, else listed row by row as names and values.

use std::iter::repeat_n;

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr as _;

use super::apply_style;
use super::wrap::{StyledPiece, wrap_pieces};
use wharf_terminal::style::{HEADING, QUIET};

/// A parsed table.
#[derive(Debug, Default)]
pub struct MarkdownTable {
    pub alignments: Vec<Alignment>,
    /// Column headings, escaped.
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Spaces between two columns.
const GAP: &str = "  ";

impl MarkdownTable {
    /// Renders the table.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.column_width(column)).collect();
        let needed = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        if needed <= width { self.render_aligned(&widths) } else { self.render_listed(width) }
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).chain(self.head.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    }

    fn render_aligned(&self, widths: &[usize]) -> Vec<String> {
        let row = |cells: &[String]| {
            let cells = widths.iter().enumerate().map(|(column, width)| {
                let cell = cells.get(column).map(String::as_str).unwrap_or_default();
                align_cell(cell, *width, self.alignments.get(column).copied().unwrap_or(Alignment::None))
            });
            cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
        };
        let rule = widths.iter().map(|width| "\u{2500}".repeat(*width)).collect::<Vec<_>>().join(GAP);
        let head = [apply_style(HEADING, &row(&self.head)), apply_style(QUIET, &rule)];
        head.into_iter().chain(self.rows.iter().map(|cells| row(cells))).collect()
    }

    fn render_listed(&self, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, cells) in self.rows.iter().enumerate() {
            lines.extend(repeat_n(String::new(), usize::from(number > 0)));
            for (name, value) in self.head.iter().zip(cells) {
                let name = StyledPiece { text: format!("{name}: "), style: HEADING };
                let value = StyledPiece { text: value.clone(), style: anstyle::Style::new() };
                lines.extend(wrap_pieces(&[name, value], width));
            }
        }
        lines
    }
}

fn align_cell(cell: &str, width: usize, alignment: Alignment) -> String {
    let room = width.saturating_sub(cell.width());
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => room / 2,
        Alignment::Right => room,
    };
    format!("{}{cell}{}", " ".repeat(before), " ".repeat(room - before))
}
