//! Markdown as it streams in, as styled lines for a terminal.
//!
//! Text is taken line by line. A line either belongs to the block that is under way or ends it; a block is parsed once,
//! when it is whole, so that a long answer costs no more than its length. Fenced code is shown as it comes.

mod lines;
mod render;
mod table;
mod wrap;

use anstyle::Style;

use lines::{Fence, Kind, closes, kind};
use render::{Numbering, render};
use wharf_terminal::style::{QUIET, paint};
use wrap::escaped;

/// Takes text piece by piece and gives whole blocks back, styled. Everything that could act on a terminal is escaped.
pub struct Markdown {
    width: usize,
    /// The block that is under way, and the beginning of a line.
    pending: String,
    /// Where in it the line begins.
    line_start: usize,
    block: Block,
    /// Whether the line before was empty.
    after_blank: bool,
    shown: Shown,
}

/// What is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    None,
    /// Anything that ends with an empty line.
    Plain,
    /// An item of a list, perhaps with a fence that is open in it.
    Item {
        fence: Option<Fence>,
    },
    /// Code that is shown line by line.
    Code(Fence),
}

/// What was shown last, which decides about the distance to what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Block,
    /// An item, and how many of its list have been shown.
    Item {
        number: Option<u64>,
    },
}

/// A width that leaves no room for words is not taken at its word.
const NARROWEST: usize = 20;
/// What code is indented by.
pub const INDENT: &str = "  ";

impl Markdown {
    /// Begins, for lines of this width.
    pub fn new(width: usize) -> Self {
        let pending = String::new();
        let width = width.max(NARROWEST);
        Self { width, pending, line_start: 0, block: Block::None, after_blank: false, shown: Shown::Nothing }
    }

    /// Takes more text; gives what is whole now, ready to be printed.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for piece in text.split_inclusive('\n') {
            self.pending.push_str(piece);
            if piece.ends_with('\n') {
                self.take_line(&mut out);
            }
        }
        out
    }

    /// The end: gives what is left.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if self.line_start < self.pending.len() {
            self.pending.push('\n');
            self.take_line(&mut out);
        }
        self.end_block(&mut out);
        *self = Self::new(self.width);
        out
    }

    /// What has come and is not whole yet, for a line that shows that something comes.
    pub fn pending(&self) -> &str {
        &self.pending
    }

    /// Decides what the line at the end of what is pending is to the block before it.
    fn take_line(&mut self, out: &mut String) {
        let line = self.pending.split_off(self.line_start);
        match (&mut self.block, kind(&line)) {
            (Block::Code(fence), _) if closes(fence, &line) => self.block = Block::None,
            (Block::Code(_), _) => code_line(out, &line),
            (Block::Item { fence: Some(fence) }, _) if closes(fence, &line) => {
                self.block = Block::Item { fence: None };
                self.keep(&line);
            }
            (Block::Item { fence: Some(_) }, _) => self.keep(&line),
            (_, Kind::Blank) => self.blank(&line),
            (Block::Item { fence }, Kind::Fence(inner)) if inner.indent >= 2 => {
                *fence = Some(inner);
                self.keep(&line);
            }
            (_, Kind::Fence(fence)) => self.open(fence, out),
            (Block::Item { .. }, Kind::Indented) => self.keep(&line),
            (Block::Item { .. } | Block::Plain, Kind::Text | Kind::Indented) if !self.after_blank => self.keep(&line),
            (_, kind) => self.begin(&kind, &line, out),
        }
        self.after_blank = line.trim().is_empty() && !matches!(self.block, Block::Code(_));
    }

    fn keep(&mut self, line: &str) {
        self.pending.push_str(line);
        self.line_start = self.pending.len();
    }

    /// An empty line belongs to the block only if the block goes on after it.
    fn blank(&mut self, line: &str) {
        if self.block != Block::None {
            self.keep(line);
        }
    }

    /// Begins another block with this line.
    fn begin(&mut self, kind: &Kind, line: &str, out: &mut String) {
        let is_after_blank = self.after_blank;
        let was_item = matches!(self.block, Block::Item { .. }) || matches!(self.shown, Shown::Item { .. });
        self.end_block(out);
        let is_item = matches!(kind, Kind::Item);
        let is_apart = is_after_blank || !(was_item && is_item);
        match (self.shown, is_item) {
            (Shown::Nothing, _) => {}
            (Shown::Item { .. }, true) if !is_apart => {}
            _ => out.push('\n'),
        }
        if !is_item {
            self.shown = Shown::Block;
        }
        self.keep(line);
        self.block = if is_item { Block::Item { fence: None } } else { Block::Plain };
        if matches!(kind, Kind::Heading) {
            self.end_block(out);
        }
    }

    fn open(&mut self, fence: Fence, out: &mut String) {
        self.end_block(out);
        if self.shown != Shown::Nothing {
            out.push('\n');
        }
        if !fence.language.is_empty() {
            let language = format!("{INDENT}[{}]", escaped(&fence.language));
            out.push_str(&format!("{}\n", paint(QUIET, language)));
        }
        (self.shown, self.block) = (Shown::Block, Block::Code(fence));
    }

    /// Shows the block that is under way.
    fn end_block(&mut self, out: &mut String) {
        let text = std::mem::take(&mut self.pending);
        self.line_start = 0;
        let block = std::mem::replace(&mut self.block, Block::None);
        let before = match self.shown {
            Shown::Item { number } => number,
            Shown::Nothing | Shown::Block => None,
        };
        match block {
            Block::None | Block::Code(_) => {}
            Block::Plain => {
                out.push_str(&render(&text, self.width, &mut Numbering::default()));
                self.shown = Shown::Block;
            }
            Block::Item { .. } => {
                let mut numbering = Numbering { last: before };
                out.push_str(&render(&text, self.width, &mut numbering));
                self.shown = Shown::Item { number: numbering.last };
            }
        }
    }
}

/// One line of code: not broken, whatever its width.
fn code_line(out: &mut String, line: &str) {
    out.push_str(&painted_code(line.trim_end_matches(['\n', '\r'])));
}

/// A line of code as it is shown, with its end.
fn painted_code(line: &str) -> String {
    match escaped(line).as_str() {
        "" => "\n".to_owned(),
        line => format!("{INDENT}{}\n", painted(QUIET, line)),
    }
}

fn painted(style: Style, text: &str) -> String {
    if style.is_plain() { text.to_owned() } else { paint(style, text).to_string() }
}

#[cfg(test)]
mod tests;
