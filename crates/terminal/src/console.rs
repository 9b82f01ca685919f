//! Terminal output: data on stdout, messages on stderr.
//!
//! Owns the self-updating status line on stderr and erases it before other output. While a question is open, the status
//! line is hidden and log lines are deferred. While the line editor is active, all output goes above the edited line.
//! Server text must be escaped by the caller.

use std::fmt::Display;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};
use wharf_spec::UntrustedText;

use crate::failure::Failure;
use crate::output::{OutputQueue, TextPriority};
use crate::style::{WARNING, paint};
use crate::table::truncate_columns;

/// Output settings of a command.
#[derive(Debug, Clone, Copy)]
pub struct OutputMode {
    /// Print data as JSON documents.
    pub json: bool,
    /// Show wire messages and internal steps.
    pub debug: bool,
    /// Show informational lines of Wharf and of servers, without wire messages.
    pub info: bool,
    pub color: ColorChoice,
}

impl OutputMode {
    /// Reports whether informational lines are shown.
    pub fn shows_info(self) -> bool {
        self.debug || self.info
    }
}

/// Output of the program. While a line is edited, text goes to the attached [`LineOverlay`], which writes to the
/// terminal itself.
pub struct Console {
    pub mode: OutputMode,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    output: OutputQueue,
    status: Mutex<StatusLine>,
    overlay: Mutex<Option<Arc<dyn LineOverlay>>>,
}

/// State of the status line, and log lines deferred while a question is open.
#[derive(Debug, Default)]
struct StatusLine {
    shown: bool,
    at: Option<Instant>,
    /// True while a question is open.
    is_prompting: bool,
    /// Log lines received while the question is open.
    deferred: Vec<String>,
    /// Number of log lines dropped because the limit was reached.
    dropped: usize,
    /// The cursor is behind a prompt whose line has not ended.
    is_behind_prompt: bool,
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
/// Time limit for pending output when a line editor takes over the terminal.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of log lines deferred while a question is open.
const MAX_DEFERRED_LINES: usize = 1_000;

/// JSON document of a command.
#[derive(Serialize)]
struct CommandDocument<'a, T> {
    schema: u32,
    ok: bool,
    #[serde(flatten)]
    body: &'a T,
}

impl Console {
    pub fn new(mode: OutputMode) -> Self {
        Self {
            mode,
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            output: OutputQueue::default(),
            status: Mutex::default(),
            overlay: Mutex::default(),
        }
    }

    /// Routes all output above a line that is being edited. Requires stdout to be a terminal.
    pub fn attach_overlay(&self, overlay: Arc<dyn LineOverlay>) {
        self.clear_status();
        // The editor writes to the terminal itself.
        let _ = self.output.drain_blocking(ATTACH_TIMEOUT);
        *self.overlay.lock().unwrap_or_else(PoisonError::into_inner) = Some(overlay);
    }

    /// Restores direct output after editing.
    pub fn detach_overlay(&self) {
        *self.overlay.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the overlay for data, if one is attached.
    fn overlay(&self) -> Option<Arc<dyn LineOverlay>> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the overlay for messages, if one is attached and stderr is not redirected.
    fn stderr_overlay(&self) -> Option<Arc<dyn LineOverlay>> {
        self.overlay().filter(|_| self.stderr_is_terminal)
    }

    /// Renders a text, without its colours unless the colour setting allows them on stdout.
    pub fn apply_color_choice(&self, text: impl Display) -> String {
        let choice = match self.mode.color {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()),
            choice => choice,
        };
        apply_color(choice, text)
    }

    /// The same for stderr.
    fn apply_stderr_color(&self, text: impl Display) -> String {
        let choice = match self.mode.color {
            ColorChoice::Auto => AutoStream::choice(&io::stderr()),
            choice => choice,
        };
        apply_color(choice, text)
    }

    /// Width of the terminal on stdout, or `None` if stdout is not a terminal.
    pub fn stdout_width(&self) -> Option<usize> {
        let (Width(columns), _) = self.stdout_is_terminal.then(|| terminal_size_of(io::stdout()))??;
        Some(usize::from(columns))
    }

    /// Width of the terminal on stderr, or `None` if stderr is not a terminal.
    pub fn stderr_width(&self) -> Option<usize> {
        let (Width(columns), _) = self.stderr_is_terminal.then(|| terminal_size_of(io::stderr()))??;
        Some(usize::from(columns))
    }

    /// Reports whether a status line is visible.
    pub fn shows_status(&self) -> bool {
        self.stderr_is_terminal
    }

    /// Writes human-readable data to stdout verbatim.
    pub fn print(&self, text: impl Display) -> Result<(), Failure> {
        if let Some(overlay) = self.overlay() {
            overlay.print(self.apply_color_choice(text));
            return Ok(());
        }
        self.write_data(self.apply_color_choice(text))
    }

    /// Replaces the last `lines` lines on stdout. Terminals only.
    pub fn redraw(&self, lines: usize, text: impl Display) -> Result<(), Failure> {
        let text = self.apply_color_choice(text);
        self.write_data(if lines > 0 { format!("\x1b[{lines}A\x1b[J{text}") } else { text })
    }

    /// Writes the JSON document of a finished command, on its own line. `ok` tells whether everything succeeded.
    pub fn print_document(&self, ok: bool, body: &impl Serialize) -> Result<(), Failure> {
        self.print_json(&CommandDocument { schema: 1, ok, body })
    }

    /// Writes one JSON value on its own line.
    pub fn print_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_string(document).map_err(Failure::other)?;
        if self.stdout_is_terminal {
            text = escape_json_controls(&text);
        }
        if let Some(overlay) = self.overlay() {
            overlay.print(text);
            return Ok(());
        }
        text.push('\n');
        self.write_data(text)
    }

    fn write_data(&self, text: String) -> Result<(), Failure> {
        self.clear_status();
        self.output.write_data(text.into_bytes()).map_err(Failure::from_stdout_error)
    }

    /// Waits until all output is written, or until nothing is written for the time limit. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Fails if data could not be written to stdout.
    pub async fn drain(&self, limit: Option<Duration>) -> Result<(), Failure> {
        self.output.drain(limit).await.map_err(Failure::from_stdout_error)
    }

    /// The same without a runtime and without a time limit.
    pub fn drain_blocking(&self) {
        let _ = self.output.drain_blocking(Duration::MAX);
    }

    /// Makes output that waits for a reader fail. For the end of the program.
    pub fn abandon_output(&self) {
        self.output.abandon();
    }

    /// Writes a prompt to stderr and waits until it is visible.
    pub async fn write_prompt(&self, prompt: &str) {
        self.clear_status();
        {
            let mut status = self.lock();
            status.is_behind_prompt = true;
            self.write_stderr(self.apply_stderr_color(prompt), TextPriority::Message);
        }
        let _ = self.output.drain(None).await;
    }

    /// Records that the user has ended the line of the prompt.
    pub fn mark_prompt_line_ended(&self) {
        self.lock().is_behind_prompt = false;
    }

    /// Ends the line of a prompt, unless the user or a message has ended it.
    pub fn end_prompt_line(&self) {
        self.start_line(&mut self.lock());
    }

    /// Prints a message of one or more lines to stderr.
    pub fn say(&self, text: impl Display) {
        if let Some(overlay) = self.stderr_overlay() {
            return overlay.print(self.apply_color_choice(text));
        }
        let mut status = self.lock();
        self.start_line(&mut status);
        self.write_line(text, TextPriority::Message);
    }

    fn write_line(&self, text: impl Display, priority: TextPriority) {
        self.write_stderr(self.apply_stderr_color(format_args!("{text}\n")), priority);
    }

    fn write_stderr(&self, text: String, priority: TextPriority) {
        self.output.write_text(text.into_bytes(), priority);
    }

    /// Prints a log line, such as server output. While a question is open, the line is deferred.
    pub fn log_line(&self, text: impl Display) {
        if let Some(overlay) = self.stderr_overlay() {
            return overlay.log_line(self.apply_color_choice(text));
        }
        let mut status = self.lock();
        if !status.is_prompting {
            self.start_line(&mut status);
            self.write_line(text, TextPriority::Log);
        } else if status.deferred.len() < MAX_DEFERRED_LINES {
            status.deferred.push(text.to_string());
        } else {
            status.dropped += 1;
        }
    }

    /// Reserves the terminal for a question. Until the guard is dropped, the status line is hidden and log lines are
    /// deferred. Output above an edited line is not affected.
    pub fn begin_prompt(&self) -> PromptGuard<'_> {
        let mut status = self.lock();
        self.erase_status(&mut status);
        status.is_prompting = true;
        PromptGuard(self)
    }

    /// Warns about a problem that does not stop the command.
    pub fn warn(&self, text: impl Display) {
        self.say(format_args!("{} {text}", paint(WARNING, "warning:")));
    }

    /// Shows a status line that the next one replaces. Terminals only.
    pub fn show_status(&self, text: &str) {
        if !self.stderr_is_terminal {
            return;
        }
        if let Some(overlay) = self.overlay() {
            return overlay.set_status(Some(self.apply_color_choice(text)));
        }
        let mut status = self.lock();
        let now = Instant::now();
        if status.is_prompting || status.at.is_some_and(|at| now.duration_since(at) < STATUS_INTERVAL) {
            return;
        }
        self.erase_status(&mut status);
        let width = self.stderr_width().unwrap_or(80);
        self.write_stderr(truncate_columns(text, width.saturating_sub(1)).to_string(), TextPriority::Log);
        (status.shown, status.at) = (true, Some(now));
    }

    /// Removes the status line.
    pub fn clear_status(&self) {
        if let Some(overlay) = self.overlay() {
            return overlay.set_status(None);
        }
        let mut status = self.lock();
        self.erase_status(&mut status);
        status.at = None;
    }

    fn erase_status(&self, status: &mut StatusLine) {
        if std::mem::take(&mut status.shown) {
            self.write_stderr("\r\x1b[2K".to_owned(), TextPriority::Log);
        }
    }

    /// Moves the cursor to the start of an empty line. Whichever output follows an interrupted prompt ends its line,
    /// because the task that asked may still be running then.
    fn start_line(&self, status: &mut StatusLine) {
        self.erase_status(status);
        if std::mem::take(&mut status.is_behind_prompt) {
            self.write_stderr("\n".to_owned(), TextPriority::Message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, StatusLine> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PromptGuard<'_> {
    fn drop(&mut self) {
        let mut status = self.0.lock();
        status.is_prompting = false;
        self.0.start_line(&mut status);
        for text in std::mem::take(&mut status.deferred) {
            self.0.write_line(text, TextPriority::Log);
        }
        let dropped = std::mem::take(&mut status.dropped);
        if dropped > 0 {
            self.0.write_line(format_args!("({dropped} more log lines dropped)"), TextPriority::Log);
        }
    }
}

fn apply_color(choice: ColorChoice, text: impl Display) -> String {
    let text = text.to_string();
    match choice {
        ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text,
    }
}

/// Replaces characters that could control a terminal with JSON escapes. Non-ASCII characters occur only inside JSON
/// strings.
fn escape_json_controls(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        let is_control = (letter == '\x7f' || !letter.is_ascii()) && {
            let mut buffer = [0; 4];
            let character: &str = letter.encode_utf8(&mut buffer);
            UntrustedText::new(character).to_string() != character
        };
        if is_control {
            let mut units = [0; 2];
            text.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
impl Console {
    /// Returns the console with its streams treated as a terminal.
    pub fn with_terminal(self) -> Self {
        Self { stdout_is_terminal: true, stderr_is_terminal: true, ..self }
    }
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
        let mode = OutputMode { json: false, debug: false, info: false, color: ColorChoice::Never };
        let console = Console::new(mode).with_terminal();
        let notes = Arc::new(RecordingOverlay::default());
        console.attach_overlay(notes.clone());
        let _guard = console.begin_prompt();
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
        let console = Console::new(OutputMode { json: false, debug: false, info: false, color: ColorChoice::Never });
        let guard = console.begin_prompt();
        let held = |status: &StatusLine| (status.is_prompting, status.deferred.len(), status.dropped);
        console.log_line("later");
        assert_eq!(held(&console.lock()), (true, 1, 0));
        console.lock().deferred.resize(MAX_DEFERRED_LINES, String::new());
        console.log_line("too much");
        assert_eq!(held(&console.lock()), (true, MAX_DEFERRED_LINES, 1));
        console.lock().deferred.truncate(1);
        drop(guard);
        assert_eq!(held(&console.lock()), (false, 0, 0));
    }
}
