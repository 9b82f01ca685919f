//! Terminal output: data on stdout, messages on stderr.
//!
//! Owns the self-updating status line on stderr and erases it before other output. While a question is open, the status
//! line is hidden and log lines are deferred. While the line editor is active, all output goes above the edited line.
//! Server text must be escaped by the caller.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};
use wharf_spec::UntrustedText;

use crate::failure::Failure;
use crate::style::{WARNING, paint};
use crate::table::truncate_columns;

/// Output settings of a command.
#[derive(Debug, Clone, Copy)]
pub struct OutputMode {
    /// Print data as JSON documents.
    pub json: bool,
    /// Show wire messages and internal steps.
    pub debug: bool,
    pub color: ColorChoice,
}

/// The single output path of the program.
pub struct Console {
    pub manner: OutputMode,
    data_terminal: bool,
    talk_terminal: bool,
    status: Mutex<StatusLine>,
    above: Mutex<Option<Arc<dyn LineOverlay>>>,
}

/// State of the status line, and log lines deferred while a question is open.
#[derive(Debug, Default)]
struct StatusLine {
    shown: bool,
    at: Option<Instant>,
    /// True while a question is open.
    asking: bool,
    /// Log lines received while the question is open.
    kept: Vec<String>,
    /// Number of log lines dropped because the limit was reached.
    lost: usize,
}

/// Output sink that prints above the line being edited.
pub trait LineOverlay: Send + Sync {
    /// Prints lines above the edited line. Does not block.
    fn print(&self, text: String);

    /// Prints log lines, some of which may be dropped under load. Does not block.
    fn log_line(&self, text: String);

    /// Replaces the status line, or removes it.
    fn set_status(&self, line: Option<String>);
}

/// Guard of an open question. Dropping it prints the deferred log lines.
pub struct PromptGuard<'a>(&'a Console);

/// Minimum interval between two updates of the status line.
const STATUS_INTERVAL: Duration = Duration::from_millis(80);
/// Maximum number of log lines deferred while a question is open.
const MAX_DEFERRED_LINES: usize = 1_000;

impl Console {
    pub fn new(manner: OutputMode) -> Self {
        Self {
            manner,
            data_terminal: io::stdout().is_terminal(),
            talk_terminal: io::stderr().is_terminal(),
            status: Mutex::default(),
            above: Mutex::default(),
        }
    }

    /// Routes all output above a line that is being edited. Requires stdout to be a terminal.
    pub fn attach_overlay(&self, above: Arc<dyn LineOverlay>) {
        self.clear_status();
        *self.above.lock().unwrap_or_else(PoisonError::into_inner) = Some(above);
    }

    /// Restores direct output after editing.
    pub fn detach_overlay(&self) {
        *self.above.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the overlay for data, if one is attached.
    fn overlay(&self) -> Option<Arc<dyn LineOverlay>> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the overlay for messages, if one is attached and stderr is not redirected.
    fn stderr_overlay(&self) -> Option<Arc<dyn LineOverlay>> {
        self.overlay().filter(|_| self.talk_terminal)
    }

    /// Renders a text, without its colours unless the colour setting allows them on stdout.
    pub fn apply_color_choice(&self, text: impl Display) -> String {
        let choice = match self.manner.color {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()),
            choice => choice,
        };
        match choice {
            ColorChoice::Never => anstream::adapter::strip_str(&text.to_string()).to_string(),
            _ => text.to_string(),
        }
    }

    /// Width of the terminal on stdout, or `None` if stdout is not a terminal.
    pub fn stdout_width(&self) -> Option<usize> {
        let (Width(columns), _) = self.data_terminal.then(|| terminal_size_of(io::stdout()))??;
        Some(usize::from(columns))
    }

    /// Width of the terminal on stderr, or `None` if stderr is not a terminal.
    pub fn stderr_width(&self) -> Option<usize> {
        let (Width(columns), _) = self.talk_terminal.then(|| terminal_size_of(io::stderr()))??;
        Some(usize::from(columns))
    }

    /// Reports whether a status line is visible.
    pub fn shows_status(&self) -> bool {
        self.talk_terminal
    }

    /// Writes human-readable data to stdout verbatim.
    pub fn print(&self, text: impl Display) -> Result<(), Failure> {
        if let Some(above) = self.overlay() {
            above.print(self.apply_color_choice(text));
            return Ok(());
        }
        self.write(|| {
            let mut out = AutoStream::new(io::stdout().lock(), self.manner.color);
            write!(out, "{text}")?;
            out.flush()
        })
    }

    /// Replaces the last `lines` lines on stdout. Terminals only.
    pub fn redraw(&self, lines: usize, text: impl Display) -> Result<(), Failure> {
        self.write(|| {
            if lines > 0 {
                // Bypasses the stream that strips colours: it would strip this sequence too.
                write!(io::stdout(), "\x1b[{lines}A\x1b[J")?;
            }
            let mut out = AutoStream::new(io::stdout().lock(), self.manner.color);
            write!(out, "{text}")?;
            out.flush()
        })
    }

    /// Writes one JSON document on its own line.
    pub fn print_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document).map_err(Failure::other)?;
        let text = if self.data_terminal { escape_json_controls(&text) } else { text };
        if let Some(above) = self.overlay() {
            above.print(text);
            return Ok(());
        }
        self.write(|| {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.write_all(b"\n")?;
            out.flush()
        })
    }

    fn write(&self, write: impl FnOnce() -> io::Result<()>) -> Result<(), Failure> {
        self.clear_status();
        write().map_err(Failure::from_stdout_error)
    }

    /// Prints a message of one or more lines to stderr.
    pub fn say(&self, text: impl Display) {
        if let Some(above) = self.stderr_overlay() {
            return above.print(self.apply_color_choice(text));
        }
        let mut status = self.lock();
        self.erase_status(&mut status);
        self.write_stderr(text);
    }

    fn write_stderr(&self, text: impl Display) {
        let mut err = AutoStream::new(io::stderr().lock(), self.manner.color);
        // Ignored: a failed write to stderr cannot be reported.
        let _ = writeln!(err, "{text}");
    }

    /// Prints a log line, such as server output. While a question is open, the line is deferred.
    pub fn log_line(&self, text: impl Display) {
        if let Some(above) = self.stderr_overlay() {
            return above.log_line(self.apply_color_choice(text));
        }
        let mut status = self.lock();
        if !status.asking {
            self.erase_status(&mut status);
            self.write_stderr(text);
        } else if status.kept.len() < MAX_DEFERRED_LINES {
            status.kept.push(text.to_string());
        } else {
            status.lost += 1;
        }
    }

    /// Reserves the terminal for a question. Until the guard is dropped, the status line is hidden and log lines are
    /// deferred. Output above an edited line is not affected.
    pub fn begin_prompt(&self) -> PromptGuard<'_> {
        let mut status = self.lock();
        self.erase_status(&mut status);
        status.asking = true;
        PromptGuard(self)
    }

    /// Warns about a problem that does not stop the command.
    pub fn warn(&self, text: impl Display) {
        self.say(format_args!("{} {text}", paint(WARNING, "warning:")));
    }

    /// Shows a status line that the next one replaces. Terminals only.
    pub fn show_status(&self, text: &str) {
        if !self.talk_terminal {
            return;
        }
        if let Some(above) = self.overlay() {
            return above.set_status(Some(self.apply_color_choice(text)));
        }
        let mut status = self.lock();
        let now = Instant::now();
        if status.asking || status.at.is_some_and(|at| now.duration_since(at) < STATUS_INTERVAL) {
            return;
        }
        self.erase_status(&mut status);
        let width = self.stderr_width().unwrap_or(80);
        let _ = write!(io::stderr(), "{}", truncate_columns(text, width.saturating_sub(1)));
        (status.shown, status.at) = (true, Some(now));
    }

    /// Removes the status line.
    pub fn clear_status(&self) {
        if let Some(above) = self.overlay() {
            return above.set_status(None);
        }
        let mut status = self.lock();
        self.erase_status(&mut status);
        status.at = None;
    }

    fn erase_status(&self, status: &mut StatusLine) {
        if std::mem::take(&mut status.shown) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }

    fn lock(&self) -> MutexGuard<'_, StatusLine> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PromptGuard<'_> {
    fn drop(&mut self) {
        let mut status = self.0.lock();
        status.asking = false;
        for text in std::mem::take(&mut status.kept) {
            self.0.write_stderr(text);
        }
        let lost = std::mem::take(&mut status.lost);
        if lost > 0 {
            self.0.write_stderr(format_args!("({lost} more log lines dropped)"));
        }
    }
}

/// Replaces characters that could control a terminal with JSON escapes. Non-ASCII characters occur only inside JSON
/// strings.
fn escape_json_controls(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        let acts = (letter == '\x7f' || !letter.is_ascii()) && {
            let mut buffer = [0; 4];
            let whole: &str = letter.encode_utf8(&mut buffer);
            UntrustedText::new(whole).to_string() != whole
        };
        if acts {
            let mut units = [0; 2];
            text.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_escapes_terminal_controls() {
        let text = "{\"a\":\"\u{9b}31m é 漢 \u{202e}\u{e0041}\u{7f} 🎉\"}";
        let shown = escape_json_controls(text);
        assert_eq!(shown, "{\"a\":\"\\u009b31m é 漢 \\u202e\\udb40\\udc41\\u007f 🎉\"}");
        let (before, after): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(text).unwrap(), serde_json::from_str(&shown).unwrap());
        assert_eq!(before, after);
    }

    /// Records its calls.
    #[derive(Default)]
    struct RecordingOverlay(Mutex<Vec<String>>);

    impl LineOverlay for RecordingOverlay {
        fn print(&self, text: String) {
            self.0.lock().unwrap().push(format!("print {text}"));
        }

        fn log_line(&self, text: String) {
            self.0.lock().unwrap().push(format!("aside {text}"));
        }

        fn set_status(&self, line: Option<String>) {
            self.0.lock().unwrap().push(format!("status {line:?}"));
        }
    }

    #[test]
    fn output_goes_to_the_attached_overlay() {
        let manner = OutputMode { json: false, debug: false, color: ColorChoice::Never };
        let console = Console { data_terminal: true, talk_terminal: true, ..Console::new(manner) };
        let notes = Arc::new(RecordingOverlay::default());
        console.attach_overlay(notes.clone());
        let _floor = console.begin_prompt();
        console.print(paint(WARNING, "data")).unwrap();
        console.print_json(&"\u{9b}").unwrap();
        console.warn("careful");
        console.log_line("beside");
        console.show_status("working");
        console.clear_status();
        console.detach_overlay();
        console.clear_status();
        let noted = notes.0.lock().unwrap().join("; ");
        let document = r#"print "\u009b""#;
        assert_eq!(
            noted,
            format!(
                "print data; {document}; print warning: careful; aside beside; status Some(\"working\"); status None"
            )
        );
    }

    #[test]
    fn log_lines_are_deferred_during_a_prompt() {
        let console = Console::new(OutputMode { json: false, debug: false, color: ColorChoice::Never });
        let floor = console.begin_prompt();
        let held = |status: &StatusLine| (status.asking, status.kept.len(), status.lost);
        console.log_line("later");
        assert_eq!(held(&console.lock()), (true, 1, 0));
        console.lock().kept.resize(MAX_DEFERRED_LINES, String::new());
        console.log_line("too much");
        assert_eq!(held(&console.lock()), (true, MAX_DEFERRED_LINES, 1));
        console.lock().kept.truncate(1);
        drop(floor);
        assert_eq!(held(&console.lock()), (false, 0, 0));
    }
}
