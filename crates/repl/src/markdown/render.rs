//! Renders one Markdown block from parser events.

use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use super::table::MarkdownTable;
use super::wrap::{StyledPiece, escape_line, wrap_pieces};
use super::{MIN_WIDTH, apply_style, styled_code};
use wharf_terminal::style::{HEADING, NAME, QUIET};

/// Numbering of a list that is rendered item by item.
#[derive(Debug, Default)]
pub struct ListNumbering {
    /// Number of the previous item.
    pub last: Option<u64>,
}

/// Renders a block as lines with line endings.
pub fn render(text: &str, width: usize, numbering: &mut ListNumbering) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let mut page = BlockRenderer { width, ..BlockRenderer::default() };
    page.before = numbering.last;
    for event in Parser::new_ext(text, options) {
        page.on_event(event);
    }
    page.end_text();
    numbering.last = page.before;
    page.out
}

/// Output and rendering state.
#[derive(Default)]
struct BlockRenderer {
    width: usize,
    out: String,
    containers: Vec<LinePrefix>,
    /// Pieces of the current paragraph.
    pieces: Vec<StyledPiece>,
    styles: Vec<Style>,
    lists: Vec<Option<u64>>,
    /// Number of the previous item of the outermost list.
    before: Option<u64>,
    links: Vec<OpenLink>,
    table: Option<MarkdownTable>,
    code: Option<String>,
    has_lines: bool,
}

/// A block quote or list item around a line.
struct LinePrefix {
    /// Prefix of the first line, taken when that line is written.
    first: Option<String>,
    rest: String,
    has_lines: bool,
}

/// An open link: its URL, and the index of its first text piece.
struct OpenLink {
    address: String,
    from: usize,
}

impl BlockRenderer {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => self.push_styled(&format!("`{code}`"), NAME),
            Event::SoftBreak => self.push(" "),
            Event::HardBreak => self.push("\n"),
            Event::Rule => self.rule(),
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.end_text(),
            Tag::Heading { level, .. } => self.heading(level),
            Tag::BlockQuote(_) => self.quote(),
            Tag::CodeBlock(kind) => self.code_block(&kind),
            Tag::List(start) => self.list(start),
            Tag::Item => self.item(),
            Tag::Table(alignments) => self.table = Some(MarkdownTable { alignments, ..MarkdownTable::default() }),
            Tag::TableRow => self.table.get_or_insert_default().rows.push(Vec::new()),
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().strikethrough()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_text();
                self.styles.pop();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_text(),
            TagEnd::BlockQuote(_) | TagEnd::Item => self.leave_container(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => self.end_list(),
            TagEnd::TableCell => self.cell(),
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Adds literal text. Line breaks in HTML and code are preserved.
    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            return code.push_str(text);
        }
        for line in text.split_inclusive('\n') {
            self.push(&escape_line(line.trim_end_matches('\n')));
            if line.ends_with('\n') {
                self.push("\n");
            }
        }
    }

    fn push_styled(&mut self, text: &str, style: Style) {
        self.pieces.push(StyledPiece { text: escape_line(text), style });
    }

    fn push(&mut self, text: &str) {
        self.pieces.push(StyledPiece { text: text.to_owned(), style: self.style() });
    }

    fn heading(&mut self, level: HeadingLevel) {
        self.end_text();
        self.push_styled(&format!("{} ", "#".repeat(level as usize)), QUIET);
        self.styles.push(HEADING);
    }

    fn link(&mut self, address: &str) {
        self.links.push(OpenLink { address: escape_line(address), from: self.pieces.len() });
        self.styles.push(self.style().underline());
    }

    /// Ends a link. The URL is always shown.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some(OpenLink { address, from }) = self.links.pop() else { return };
        let text: String = self.pieces.iter().skip(from).map(|piece| piece.text.as_str()).collect();
        if text != address && format!("mailto:{text}") != address {
            let space = if text.is_empty() { "" } else { " " };
            self.pieces.push(StyledPiece { text: format!("{space}({address})"), style: QUIET });
        }
    }

    fn list(&mut self, start: Option<u64>) {
        self.end_text();
        // In a list rendered item by item, the number of the first item determines the others.
        let outermost = self.lists.is_empty() && self.containers.is_empty();
        let number = start.map(|start| if outermost { self.before.map_or(start, |before| before + 1) } else { start });
        self.lists.push(number);
    }

    fn end_list(&mut self) {
        let number = self.lists.pop().flatten();
        if self.lists.is_empty() && self.containers.is_empty() {
            self.before = number.map(|next| next.saturating_sub(1));
        }
    }

    fn item(&mut self) {
        self.end_text();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "\u{2022} ".to_owned(),
        };
        let rest = " ".repeat(mark.width());
        self.containers.push(LinePrefix { first: Some(mark), rest, has_lines: false });
    }

    fn quote(&mut self) {
        self.end_text();
        self.separate();
        let bar = format!("{} ", apply_style(QUIET, "\u{2502}"));
        self.containers.push(LinePrefix { first: None, rest: bar, has_lines: false });
    }

    fn leave_container(&mut self) {
        self.end_text();
        if self.containers.last().is_some_and(|container| container.first.is_some()) {
            self.write_line("");
        }
        self.containers.pop();
    }

    fn rule(&mut self) {
        self.end_text();
        self.separate();
        self.write_line(&apply_style(QUIET, &"\u{2500}".repeat(self.available_width())));
    }

    fn code_block(&mut self, kind: &CodeBlockKind<'_>) {
        self.end_text();
        self.separate();
        if let CodeBlockKind::Fenced(language) = kind
            && !language.is_empty()
        {
            self.write_line(&apply_style(QUIET, &format!("  [{}]", escape_line(language))));
        }
        self.code = Some(String::new());
    }

    fn end_code(&mut self) {
        for line in self.code.take().unwrap_or_default().lines() {
            self.write_line(styled_code(line).trim_end_matches('\n'));
        }
    }

    fn cell(&mut self) {
        let text: String = self.pieces.drain(..).map(|piece| piece.text).collect();
        if let Some(table) = &mut self.table {
            table.rows.last_mut().unwrap_or(&mut table.head).push(text.trim().to_owned());
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        self.separate();
        for line in table.lines(self.available_width()) {
            self.write_line(&line);
        }
    }

    /// Writes the current paragraph.
    fn end_text(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces);
        while pieces.last().is_some_and(|piece| piece.text.trim().is_empty()) {
            pieces.pop();
        }
        if pieces.is_empty() {
            return;
        }
        self.separate();
        for line in wrap_pieces(&pieces, self.available_width()) {
            self.write_line(&line);
        }
    }

    /// Separates blocks of the same container by an empty line.
    fn separate(&mut self) {
        let has_lines = self.containers.last().map_or(self.has_lines, |container| container.has_lines);
        if has_lines {
            self.write_line("");
        }
    }

    /// Returns the width available inside the containers.
    fn available_width(&self) -> usize {
        let taken: usize = self.containers.iter().map(|container| plain(&container.rest).width()).sum();
        self.width.saturating_sub(taken).max(MIN_WIDTH / 2)
    }

    fn write_line(&mut self, text: &str) {
        let mut line = String::new();
        for container in &mut self.containers {
            line.push_str(&container.first.take().unwrap_or_else(|| container.rest.clone()));
            container.has_lines = true;
        }
        line.push_str(text);
        self.has_lines = true;
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
