//! Pending output above the prompt, as a pure value without terminal or clock.
//!
//! Requested output is never dropped. Log lines are rate-limited, and dropped ones are counted.

use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr as _;

use crate::style::{QUIET, paint};
use crate::table::truncate_columns;

/// Pending output and the status line.
#[derive(Debug, Default)]
pub struct ScreenBuffer {
    /// Complete lines.
    pending: String,
    status: Option<String>,
    /// Width of the status line as currently drawn.
    drawn: Option<usize>,
    /// True if the prompt must be redrawn.
    is_stale: bool,
    log_rate: LogLineRate,
}

/// Log lines in the current period.
#[derive(Debug, Default)]
struct LogLineRate {
    since: Option<Instant>,
    accepted: usize,
    dropped: usize,
}

/// State of the status line when the prompt is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusLineMode {
    /// Shown above the prompt.
    Shown,
    /// Removed: the entered line is final and stays as it is.
    Gone,
}

/// Maximum number of log lines per [`LOG_LINE_PERIOD`].
const MAX_LOG_LINES: usize = 200;
const LOG_LINE_PERIOD: Duration = Duration::from_secs(1);
/// Maximum pending bytes before log lines are dropped immediately, for a terminal that is not read.
const MAX_PENDING_BYTES: usize = 1 << 20;

impl ScreenBuffer {
    /// Adds requested output.
    pub fn print(&mut self, text: &str) {
        self.pending.push_str(text);
        if !text.ends_with('\n') {
            self.pending.push('\n');
        }
    }

    /// Adds a log line.
    pub fn log_line(&mut self, text: &str, now: Instant) {
        self.end_period(now);
        self.log_rate.since.get_or_insert(now);
        let lines = text.lines().count().max(1);
        if self.log_rate.accepted + lines <= MAX_LOG_LINES && self.pending.len() < MAX_PENDING_BYTES {
            self.log_rate.accepted += lines;
            self.print(text);
        } else {
            self.log_rate.dropped += lines;
        }
    }

    /// Sets the status line.
    pub fn set_status(&mut self, line: Option<String>) {
        if self.status != line {
            (self.status, self.is_stale) = (line, true);
        }
    }

    /// Requests a redraw of the prompt.
    pub fn redraw(&mut self) {
        self.is_stale = true;
    }

    /// Returns the time until the next redraw, or `None` if nothing is pending.
    pub fn next_redraw(&self, now: Instant) -> Option<Duration> {
        if self.is_stale || !self.pending.is_empty() {
            return Some(Duration::ZERO);
        }
        let since = self.log_rate.since.filter(|_| self.log_rate.dropped > 0)?;
        Some((since + LOG_LINE_PERIOD).saturating_duration_since(now))
    }

    /// Reports dropped log lines at the end of the period.
    pub fn end_period(&mut self, now: Instant) {
        if self.log_rate.since.is_none_or(|since| now < since + LOG_LINE_PERIOD) {
            return;
        }
        let LogLineRate { dropped, .. } = std::mem::take(&mut self.log_rate);
        if dropped > 0 {
            self.print(&paint(QUIET, format_args!("({} more lines)", group_digits(dropped))).to_string());
        }
    }

    /// Returns the text to write on the empty row of the prompt: erases the old status line, prints the pending output
    /// and leaves the cursor at the position of the prompt.
    pub fn before_prompt(&mut self, updating: StatusLineMode, columns: usize) -> String {
        let mut text = self.without_status(columns);
        if let Some(status) = self.status.as_deref().filter(|_| updating == StatusLineMode::Shown) {
            let line = fit_line(status, columns.saturating_sub(1));
            self.drawn = Some(plain_width(&line));
            text.push_str(&line);
            text.push('\n');
        }
        self.is_stale = false;
        text
    }

    /// Returns the pending output and erases the status line. For writing without a prompt.
    pub fn without_status(&mut self, columns: usize) -> String {
        let rows = self.drawn.take().map_or(0, |width| width.div_ceil(columns.max(1)).max(1));
        let mut text = "\x1b[1A\x1b[2K".repeat(rows);
        text.push_str(&std::mem::take(&mut self.pending));
        text
    }

    /// Forgets the drawn status line after the line was ended or discarded.
    pub fn forget_status_line(&mut self) {
        self.drawn = None;
        self.is_stale = false;
    }
}

/// Fits a line to a width. A truncated line loses its colours.
fn fit_line(line: &str, width: usize) -> String {
    let line = line.lines().next().unwrap_or_default();
    if plain_width(line) <= width {
        line.to_owned()
    } else {
        truncate_columns(&anstream::adapter::strip_str(line).to_string(), width)
    }
}

fn plain_width(line: &str) -> usize {
    anstream::adapter::strip_str(line).to_string().width()
}

/// Formats a number in groups of three digits.
fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal in the state in which the editor draws: the rows of the line are empty.
    struct DrawnTerminal(vt100::Parser);

    impl DrawnTerminal {
        fn new() -> Self {
            let cells = |count| std::num::NonZeroU16::new(count).unwrap();
            let mut parser = vt100::Parser::new(cells(8), cells(20), 100);
            parser.process(b"before\r\n");
            Self(parser)
        }

        /// Draws a prompt after the text above it, like the editor.
        fn prompt(&mut self, buffer: &mut ScreenBuffer, updating: StatusLineMode, line: &str) -> String {
            let text = format!("\r\x1b[K{}\u{203a} {line}", buffer.before_prompt(updating, 20));
            self.0.process(text.replace('\n', "\r\n").as_bytes());
            self.0.screen().contents()
        }
    }

    #[test]
    fn status_line_stays_above_the_prompt() {
        let (mut buffer, mut drawn) = (ScreenBuffer::default(), DrawnTerminal::new());
        buffer.set_status(Some("working".to_owned()));
        assert_eq!(drawn.prompt(&mut buffer, StatusLineMode::Shown, ""), "before\nworking\n\u{203a} ");
        buffer.print("one\ntwo");
        assert_eq!(drawn.prompt(&mut buffer, StatusLineMode::Shown, "a"), "before\none\ntwo\nworking\n\u{203a} a");
        buffer.set_status(Some("\x1b[2mstill working on it all\x1b[0m".to_owned()));
        let cut = "before\none\ntwo\nstill working on i…\n\u{203a} ab";
        assert_eq!(drawn.prompt(&mut buffer, StatusLineMode::Shown, "ab"), cut);
        assert_eq!(drawn.prompt(&mut buffer, StatusLineMode::Gone, "ab"), "before\none\ntwo\n\u{203a} ab");
        buffer.forget_status_line();
        drawn.0.process(b"\r\n");
        buffer.set_status(None);
        buffer.print("three");
        assert_eq!(
            drawn.prompt(&mut buffer, StatusLineMode::Shown, ""),
            "before\none\ntwo\n\u{203a} ab\nthree\n\u{203a} "
        );
    }

    #[test]
    fn log_flood_is_counted_and_output_is_preserved() {
        let (mut buffer, start) = (ScreenBuffer::default(), Instant::now());
        for number in 0..1_434 {
            buffer.log_line(&format!("line {number}"), start);
        }
        buffer.print("the answer");
        let text = buffer.without_status(80);
        assert_eq!(text.lines().count(), MAX_LOG_LINES + 1);
        assert!(text.ends_with("the answer\n"), "{text}");
        assert_eq!(buffer.next_redraw(start), Some(LOG_LINE_PERIOD));
        buffer.end_period(start + LOG_LINE_PERIOD / 2);
        assert_eq!(buffer.without_status(80), "");
        buffer.end_period(start + LOG_LINE_PERIOD);
        assert_eq!(buffer.next_redraw(start + LOG_LINE_PERIOD), Some(Duration::ZERO));
        assert_eq!(anstream::adapter::strip_str(&buffer.without_status(80)).to_string(), "(1,234 more lines)\n");
        buffer.log_line("again", start + LOG_LINE_PERIOD);
        assert_eq!(buffer.without_status(80), "again\n");
        assert_eq!(buffer.next_redraw(start + LOG_LINE_PERIOD), None);
    }

    #[test]
    fn pending_log_lines_are_bounded() {
        let (mut buffer, now) = (ScreenBuffer::default(), Instant::now());
        let long = "x".repeat(MAX_PENDING_BYTES);
        buffer.log_line(&long, now);
        buffer.log_line(&long, now);
        assert_eq!((buffer.pending.len(), buffer.log_rate.dropped), (MAX_PENDING_BYTES + 1, 1));
    }

    #[test]
    fn only_changes_are_redrawn() {
        let (mut buffer, now) = (ScreenBuffer::default(), Instant::now());
        buffer.set_status(None);
        assert_eq!(buffer.next_redraw(now), None);
        buffer.set_status(Some("a".to_owned()));
        assert_eq!(buffer.next_redraw(now), Some(Duration::ZERO));
        buffer.before_prompt(StatusLineMode::Shown, 80);
        buffer.set_status(Some("a".to_owned()));
        assert_eq!(buffer.next_redraw(now), None);
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(7, "7"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(group_digits(number), text);
        }
    }
}
