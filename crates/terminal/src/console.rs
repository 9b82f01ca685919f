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
use crate::table::cut;

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
    fn aside(&self, text: String);

    /// Replaces the status line, or removes it.
    fn status(&self, line: Option<String>);
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
    pub fn attach(&self, above: Arc<dyn LineOverlay>) {
        self.clear();
        *self.above.lock().unwrap_or_else(PoisonError::into_inner) = Some(above);
    }

    /// Restores direct output after editing.
    pub fn detach(&self) {
        *self.above.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the overlay for data, if one is attached.
    fn above(&self) -> Option<Arc<dyn LineOverlay>> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the overlay for messages, if one is attached and stderr is not redirected.
    fn above_talk(&self) -> Option<Arc<dyn LineOverlay>> {
        self.above().filter(|_| self.talk_terminal)
    }

    /// Renders a text, without its colours unless the colour setting allows them on stdout.
    pub fn colored(&self, text: impl Display) -> String {
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
    pub fn width(&self) -> Option<usize> {
        let (Width(columns), _) = self.data_terminal.then(|| terminal_size_of(io::stdout()))??;
        Some(usize::from(columns))
    }

    /// Width of the terminal on stderr, or `None` if stderr is not a terminal.
    pub fn talk_width(&self) -> Option<usize> {
        let (Width(columns), _) = self.talk_terminal.then(|| terminal_size_of(io::stderr()))??;
        Some(usize::from(columns))
    }

    /// Reports whether a status line is visible.
    pub fn has_status(&self) -> bool {
        self.talk_terminal
    }

    /// Writes human-readable data to stdout verbatim.
    pub fn print(&self, text: impl Display) -> Result<(), Failure> {
        if let Some(above) = self.above() {
            above.print(self.colored(text));
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
    pub fn document(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document).map_err(Failure::other)?;
        let text = if self.data_terminal { harmless(&text) } else { text };
        if let Some(above) = self.above() {
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
        self.clear();
        write().map_err(Failure::stdout)
    }

    /// Prints a message of one or more lines to stderr.
    pub fn say(&self, text: impl Display) {
        if let Some(above) = self.above_talk() {
            return above.print(self.colored(text));
        }
        let mut status = self.lock();
        self.wipe(&mut status);
        self.write_talk(text);
    }

    fn write_talk(&self, text: impl Display) {
        let mut err = AutoStream::new(io::stderr().lock(), self.manner.color);
        // Ignored: a failed write to stderr cannot be reported.
        let _ = writeln!(err, "{text}");
    }

    /// Prints a log line, such as server output. While a question is open, the line is deferred.
    pub fn aside(&self, text: impl Display) {
        if let Some(above) = self.above_talk() {
            return above.aside(self.colored(text));
        }
        let mut status = self.lock();
        if !status.asking {
            self.wipe(&mut status);
            self.write_talk(text);
        } else if status.kept.len() < MAX_DEFERRED_LINES {
            status.kept.push(text.to_string());
        } else {
            status.lost += 1;
        }
    }

    /// Reserves the terminal for a question. Until the guard is dropped, the status line is hidden and log lines are
    /// deferred. Output above an edited line is not affected.
    pub fn take_floor(&self) -> PromptGuard<'_> {
        let mut status = self.lock();
        self.wipe(&mut status);
        status.asking = true;
        PromptGuard(self)
    }

    /// Warns about a problem that does not stop the command.
    pub fn warn(&self, text: impl Display) {
        self.say(format_args!("{} {text}", paint(WARNING, "warning:")));
    }

    /// Shows a status line that the next one replaces. Terminals only.
    pub fn status(&self, text: &str) {
        if !self.talk_terminal {
            return;
        }
        if let Some(above) = self.above() {
            return above.status(Some(self.colored(text)));
        }
        let mut status = self.lock();
        let now = Instant::now();
        if status.asking || status.at.is_some_and(|at| now.duration_since(at) < STATUS_INTERVAL) {
            return;
        }
        self.wipe(&mut status);
        let width = self.talk_width().unwrap_or(80);
        let _ = write!(io::stderr(), "{}", cut(text, width.saturating_sub(1)));
        (status.shown, status.at) = (true, Some(now));
    }

    /// Removes the status line.
    pub fn clear(&self) {
        if let Some(above) = self.above() {
            return above.status(None);
        }
        let mut status = self.lock();
        self.wipe(&mut status);
        status.at = None;
    }

    fn wipe(&self, status: &mut StatusLine) {
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
            self.0.write_talk(text);
        }
        let lost = std::mem::take(&mut status.lost);
        if lost > 0 {
            self.0.write_talk(format_args!("({lost} more log lines dropped)"));
        }
    }
}

/// Replaces characters that could control a terminal with JSON escapes. Non-ASCII characters occur only inside JSON
/// strings.
fn harmless(json: &str) -> String {
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
        let shown = harmless(text);
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

        fn aside(&self, text: String) {
            self.0.lock().unwrap().push(format!("aside {text}"));
        }

        fn status(&self, line: Option<String>) {
            self.0.lock().unwrap().push(format!("status {line:?}"));
        }
    }

    #[test]
    fn output_goes_to_the_attached_overlay() {
        let manner = OutputMode { json: false, debug: false, color: ColorChoice::Never };
        let console = Console { data_terminal: true, talk_terminal: true, ..Console::new(manner) };
        let notes = Arc::new(RecordingOverlay::default());
        console.attach(notes.clone());
        let _floor = console.take_floor();
        console.print(paint(WARNING, "data")).unwrap();
        console.document(&"\u{9b}").unwrap();
        console.warn("careful");
        console.aside("beside");
        console.status("working");
        console.clear();
        console.detach();
        console.clear();
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
        let floor = console.take_floor();
        let held = |status: &StatusLine| (status.asking, status.kept.len(), status.lost);
        console.aside("later");
        assert_eq!(held(&console.lock()), (true, 1, 0));
        console.lock().kept.resize(MAX_DEFERRED_LINES, String::new());
        console.aside("too much");
        assert_eq!(held(&console.lock()), (true, MAX_DEFERRED_LINES, 1));
        console.lock().kept.truncate(1);
        drop(floor);
        assert_eq!(held(&console.lock()), (false, 0, 0));
    }
}
