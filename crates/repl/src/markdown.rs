//! Streaming Markdown renderer that produces styled terminal lines.
//!
//! Text is handled line by line. A line either belongs to the current block or ends it. A block is parsed once, when
//! complete, so the cost is linear in the length of the response. Fenced code is shown line by line as it arrives.

mod lines;
mod render;
mod table;
mod wrap;

use anstyle::Style;

use lines::{CodeFence, LineKind, classify_line, closes_fence};
use render::{ListNumbering, render};
use wharf_terminal::style::{QUIET, paint};
use wrap::escape_line;

/// Takes text in pieces and returns complete, styled blocks. Control characters are escaped.
pub struct MarkdownRenderer {
    width: usize,
    /// The current block and the beginning of the next line.
    pending: String,
    /// Offset in `pending` at which the unfinished line begins.
    line_start: usize,
    block: OpenBlock,
    /// True if the previous line was empty.
    after_blank: bool,
    shown: LastOutput,
}

/// The current block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OpenBlock {
    None,
    /// Any block that ends with an empty line.
    Plain,
    /// A list item, with the code fence open in it, if any.
    Item {
        fence: Option<CodeFence>,
    },
    /// Fenced code, shown line by line.
    Code(CodeFence),
}

/// The last output, which decides on the spacing before the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastOutput {
    Nothing,
    Block,
    /// A list item and its number.
    Item {
        number: Option<u64>,
    },
}

/// Minimum width. Smaller values are raised to it.
const MIN_WIDTH: usize = 20;
/// Indent of code lines.
pub const INDENT: &str = "  ";

impl MarkdownRenderer {
    /// Creates a renderer for lines of this width.
    pub fn new(width: usize) -> Self {
        let pending = String::new();
        let width = width.max(MIN_WIDTH);
        Self { width, pending, line_start: 0, block: OpenBlock::None, after_blank: false, shown: LastOutput::Nothing }
    }

    /// Takes more text and returns the output that is complete.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for piece in text.split_inclusive('\n') {
            self.pending.push_str(piece);
            if piece.ends_with('\n') {
                self.on_line(&mut out);
            }
        }
        out
    }

    /// Ends the text and returns the rest of the output.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if self.line_start < self.pending.len() {
            self.pending.push('\n');
            self.on_line(&mut out);
        }
        self.end_block(&mut out);
        *self = Self::new(self.width);
        out
    }

    /// Returns the received text that is not rendered yet, for the status line.
    pub fn pending(&self) -> &str {
        &self.pending
    }

    /// Assigns the last line to the current block, or starts another one with it.
    fn on_line(&mut self, out: &mut String) {
        let line = self.pending.split_off(self.line_start);
        match (&mut self.block, classify_line(&line)) {
            (OpenBlock::Code(fence), _) if closes_fence(fence, &line) => self.block = OpenBlock::None,
            (OpenBlock::Code(_), _) => push_code_line(out, &line),
            (OpenBlock::Item { fence: Some(fence) }, _) if closes_fence(fence, &line) => {
                self.block = OpenBlock::Item { fence: None };
                self.append_line(&line);
            }
            (OpenBlock::Item { fence: Some(_) }, _) => self.append_line(&line),
            (_, LineKind::Blank) => self.on_blank(&line),
            (OpenBlock::Item { fence }, LineKind::Fence(inner)) if inner.indent >= 2 => {
                *fence = Some(inner);
                self.append_line(&line);
            }
            (_, LineKind::Fence(fence)) => self.open_fence(fence, out),
            (OpenBlock::Item { .. }, LineKind::Indented) => self.append_line(&line),
            (OpenBlock::Item { .. } | OpenBlock::Plain, LineKind::Text | LineKind::Indented) if !self.after_blank => {
                self.append_line(&line)
            }
            (_, kind) => self.begin_block(&kind, &line, out),
        }
        self.after_blank = line.trim().is_empty() && !matches!(self.block, OpenBlock::Code(_));
    }

    fn append_line(&mut self, line: &str) {
        self.pending.push_str(line);
        self.line_start = self.pending.len();
    }

    /// Handles an empty line, which belongs to the block only if the block continues after it.
    fn on_blank(&mut self, line: &str) {
        if self.block != OpenBlock::None {
            self.append_line(line);
        }
    }

    /// Starts a block with this line.
    fn begin_block(&mut self, kind: &LineKind, line: &str, out: &mut String) {
        let is_after_blank = self.after_blank;
        let was_item = matches!(self.block, OpenBlock::Item { .. }) || matches!(self.shown, LastOutput::Item { .. });
        self.end_block(out);
        let is_item = matches!(kind, LineKind::Item);
        let is_apart = is_after_blank || !(was_item && is_item);
        match (self.shown, is_item) {
            (LastOutput::Nothing, _) => {}
            (LastOutput::Item { .. }, true) if !is_apart => {}
            _ => out.push('\n'),
        }
        if !is_item {
            self.shown = LastOutput::Block;
        }
        self.append_line(line);
        self.block = if is_item { OpenBlock::Item { fence: None } } else { OpenBlock::Plain };
        if matches!(kind, LineKind::Heading) {
            self.end_block(out);
        }
    }

    fn open_fence(&mut self, fence: CodeFence, out: &mut String) {
        self.end_block(out);
        if self.shown != LastOutput::Nothing {
            out.push('\n');
        }
        if !fence.language.is_empty() {
            let language = format!("{INDENT}[{}]", escape_line(&fence.language));
            out.push_str(&format!("{}\n", paint(QUIET, language)));
        }
        (self.shown, self.block) = (LastOutput::Block, OpenBlock::Code(fence));
    }

    /// Renders the current block.
    fn end_block(&mut self, out: &mut String) {
        let text = std::mem::take(&mut self.pending);
        self.line_start = 0;
        let block = std::mem::replace(&mut self.block, OpenBlock::None);
        let before = match self.shown {
            LastOutput::Item { number } => number,
            LastOutput::Nothing | LastOutput::Block => None,
        };
        match block {
            OpenBlock::None | OpenBlock::Code(_) => {}
            OpenBlock::Plain => {
                out.push_str(&render(&text, self.width, &mut ListNumbering::default()));
                self.shown = LastOutput::Block;
            }
            OpenBlock::Item { .. } => {
                let mut numbering = ListNumbering { last: before };
                out.push_str(&render(&text, self.width, &mut numbering));
                self.shown = LastOutput::Item { number: numbering.last };
            }
        }
    }
}

/// Renders a line of code. It is never wrapped.
fn push_code_line(out: &mut String, line: &str) {
    out.push_str(&styled_code(line.trim_end_matches(['\n', '\r'])));
}

/// Formats a line of code with its line ending.
fn styled_code(line: &str) -> String {
    match escape_line(line).as_str() {
        "" => "\n".to_owned(),
        line => format!("{INDENT}{}\n", apply_style(QUIET, line)),
    }
}

fn apply_style(style: Style, text: &str) -> String {
    if style.is_plain() { text.to_owned() } else { paint(style, text).to_string() }
}

#[cfg(test)]
mod tests;
