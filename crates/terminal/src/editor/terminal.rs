//! The thread that edits lines on a terminal.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustyline::config::BellStyle;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{ColorMode, CompletionType, Config, ExternalPrinter};

use super::history::HistoryFile;
use super::keys::{ExitKey, PressedExitKey, bind_keys};
use super::line::{LineHelper, PROMPT};
use super::prompt_state::{EnteredLine, LineDisposition, PromptState};
use super::{EditorInput, EditorOptions, ReaderChannels, multiline, terminal_mode};
use crate::console::{Console, LineOverlay as _};
use crate::screen::{EditorScreen, StatusLineMode};

type LineEditor = rustyline::Editor<LineHelper, MemHistory>;

/// Maximum number of history entries.
const MAX_HISTORY_LINES: usize = 2_000;
/// Timeout after which a lone escape byte is the Escape key.
const ESCAPE_TIMEOUT_MILLIS: u16 = 100;
/// Timeout for the first drawing of the prompt, and for the end of the thread.
const THREAD_TIMEOUT: Duration = Duration::from_secs(1);

/// A terminal in editing mode. Dropping it restores the terminal.
pub struct EditorTerminal {
    console: Arc<Console>,
    screen: EditorScreen,
    is_closing: Arc<AtomicBool>,
    /// Disconnected when the thread has ended.
    thread_end: Receiver<()>,
}

/// An editor that has not changed its terminal yet.
pub struct UnstartedEditor<P> {
    editor: LineEditor,
    printer: P,
}

/// Checks whether the terminal supports editing.
pub fn prepare(console: &Console) -> Option<UnstartedEditor<impl ExternalPrinter + Send + use<>>> {
    // Input is echoed on stdout and questions go to stderr: both must be terminals.
    console.stdout_width()?;
    console.stderr_width()?;
    let config = Config::builder().max_history_size(MAX_HISTORY_LINES).ok()?.history_ignore_dups(true).ok()?;
    let config = config
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .keyseq_timeout(Some(ESCAPE_TIMEOUT_MILLIS))
        .bell_style(BellStyle::None)
        // Printed output passes through the prompt's highlighting.
        .color_mode(ColorMode::Forced)
        .build();
    let mut editor = LineEditor::with_history(config.clone(), MemHistory::with_config(&config)).ok()?;
    let printer = editor.create_external_printer().ok()?;
    Some(UnstartedEditor { editor, printer })
}

impl<P: ExternalPrinter + Send + 'static> UnstartedEditor<P> {
    /// Shows the prompt and starts the reader thread.
    pub fn start(
        self,
        options: EditorOptions,
        prompt_state: PromptState,
        channels: ReaderChannels,
    ) -> io::Result<EditorTerminal> {
        let Self { mut editor, printer } = self;
        let EditorOptions { console, history, completions } = options;
        let (screen, is_closing, pressed) =
            (EditorScreen::default(), Arc::<AtomicBool>::default(), PressedExitKey::default());
        let (ready, is_ready) = sync_channel(1);
        bind_keys(&mut editor, &prompt_state, &pressed);
        editor.set_helper(Some(LineHelper {
            prompt_state: prompt_state.clone(),
            pressed: pressed.clone(),
            screen: screen.clone(),
            console: console.clone(),
            completions,
            is_closing: is_closing.clone(),
            ready: RefCell::new(Some(ready)),
            updating: Cell::new(StatusLineMode::Shown),
        }));
        terminal_mode::enter_raw_mode()?;
        let (thread_alive, thread_end) = sync_channel::<()>(0);
        let mut lines = LineReader { editor, prompt_state, pressed, screen: screen.clone(), history: None };
        // From here on, dropping `terminal` undoes every change.
        let terminal = EditorTerminal { console: console.clone(), screen, is_closing, thread_end };
        console.attach_overlay(Arc::new(terminal.screen.clone()));
        terminal.screen.start(printer)?;
        wharf_threads::start_thread("editor", move || {
            lines.load_history(history.as_deref(), &console);
            lines.run(&channels);
            drop((lines, thread_alive));
        })?;
        let _ = is_ready.recv_timeout(THREAD_TIMEOUT);
        Ok(terminal)
    }
}

impl EditorTerminal {
    /// Requests a redraw of the prompt.
    pub fn redraw(&self) {
        self.screen.redraw();
    }
}

impl Drop for EditorTerminal {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.screen.redraw();
        // Wait for the thread: it restores its own terminal settings before it ends.
        let _ = self.thread_end.recv_timeout(THREAD_TIMEOUT);
        self.console.detach_overlay();
        self.screen.close();
        terminal_mode::restore();
    }
}

/// Result of reading a line.
enum LineReadOutcome {
    Typed(EditorInput),
    /// A line that is not delivered.
    Nothing,
    /// The editor was closed while reading.
    Left,
}

/// State of the editor thread.
struct LineReader {
    editor: LineEditor,
    prompt_state: PromptState,
    pressed: PressedExitKey,
    screen: EditorScreen,
    history: Option<HistoryFile>,
}

impl LineReader {
    /// Loads the history. Editing works without it.
    fn load_history(&mut self, path: Option<&Path>, console: &Console) {
        let Some(path) = path else { return };
        match HistoryFile::open(path) {
            Ok(history) => {
                for line in history.load() {
                    let _ = self.editor.add_history_entry(line);
                }
                self.history = Some(history);
            }
            Err(error) => console.warn(format_args!("input history is not saved: {error}")),
        }
    }

    /// Reads lines until the receiver is gone.
    fn run(&mut self, channels: &ReaderChannels) {
        loop {
            match self.read() {
                LineReadOutcome::Typed(typed) => {
                    if !channels.send_and_wait(typed) {
                        return;
                    }
                }
                LineReadOutcome::Nothing => {}
                LineReadOutcome::Left => return,
            }
        }
    }

    fn read(&mut self) -> LineReadOutcome {
        self.prompt_state.begin_line();
        self.screen.begin_line();
        let read = catch_unwind(AssertUnwindSafe(|| self.editor.readline(PROMPT)));
        let entered = self.prompt_state.end_line();
        let Ok(read) = read else { return LineReadOutcome::Left };
        self.screen.end_line();
        self.classify(read, entered).map_or(LineReadOutcome::Nothing, LineReadOutcome::Typed)
    }

    fn classify(&mut self, read: rustyline::Result<String>, entered: EnteredLine) -> Option<EditorInput> {
        match (self.pressed.take(), read) {
            (Some(ExitKey::Interrupt), _) | (None, Err(ReadlineError::Interrupted)) => Some(EditorInput::Interrupt),
            (Some(ExitKey::End), _) => Some(EditorInput::End),
            (None, Ok(line)) => self.accept_line(line, entered),
            // Input that is not valid UTF-8, or a window resize during the read.
            (None, Err(ReadlineError::Io(error))) if error.kind() == io::ErrorKind::InvalidData => None,
            (None, Err(ReadlineError::Signal(_))) => None,
            (None, Err(_)) => Some(EditorInput::End),
        }
    }

    fn accept_line(&mut self, line: String, entered: EnteredLine) -> Option<EditorInput> {
        match entered.disposition {
            LineDisposition::SaveToHistory => self.save_to_history(&line),
            LineDisposition::Skip => {}
            LineDisposition::Discard => {
                self.screen.print("(input discarded: the question is no longer open)".to_owned());
                return None;
            }
        }
        Some(EditorInput::Line { text: multiline::join_lines(&line), began: entered.began })
    }

    fn save_to_history(&mut self, line: &str) {
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        if let Some(history) = self.history.as_mut().filter(|_| is_new) {
            // A failed write is ignored; the next one may succeed.
            let _ = history.append(line);
        }
    }
}
