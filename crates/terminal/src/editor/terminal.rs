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

use super::asked::{Asked, Entered, Fate};
use super::history::HistoryFile;
use super::keys::{Ending, Pressed, bind};
use super::line::{LineHelper, PROMPT};
use super::{EditorOptions, Ends, Typed, mode, multiline};
use crate::console::{Above as _, Console};
use crate::screen::{Screen, Updating};

type LineEditor = rustyline::Editor<LineHelper, MemHistory>;

/// The most lines that can be brought back.
const MOST_LINES: usize = 2_000;
/// How long an escape may stand alone before it is one.
const ESCAPE_MILLIS: u16 = 100;
/// How long the prompt may take to be drawn, and a thread to leave, before nobody waits any longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A terminal that lines are edited on. Dropped, it is as it was.
pub struct Terminal {
    console: Arc<Console>,
    screen: Screen,
    leaving: Arc<AtomicBool>,
    /// Ends when the thread has.
    left: Receiver<()>,
}

/// A terminal on which nothing has been done yet.
pub struct Prepared<P> {
    editor: LineEditor,
    printer: P,
}

/// Looks whether there is a terminal that can do what is needed.
pub fn prepare(console: &Console) -> Option<Prepared<impl ExternalPrinter + Send + use<>>> {
    // Answers come here, and questions to stderr: without both nobody can be asked.
    console.width()?;
    console.talk_width()?;
    let config = Config::builder().max_history_size(MOST_LINES).ok()?.history_ignore_dups(true).ok()?;
    let config = config
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .keyseq_timeout(Some(ESCAPE_MILLIS))
        .bell_style(BellStyle::None)
        // What is printed comes by way of the colours of the prompt.
        .color_mode(ColorMode::Forced)
        .build();
    let mut editor = LineEditor::with_history(config.clone(), MemHistory::with_config(&config)).ok()?;
    let printer = editor.create_external_printer().ok()?;
    Some(Prepared { editor, printer })
}

impl<P: ExternalPrinter + Send + 'static> Prepared<P> {
    /// Shows the prompt and begins to read.
    pub fn start(self, options: EditorOptions, asked: Asked, ends: Ends) -> io::Result<Terminal> {
        let Self { mut editor, printer } = self;
        let EditorOptions { console, history, completions } = options;
        let (screen, leaving, pressed) = (Screen::default(), Arc::<AtomicBool>::default(), Pressed::default());
        let (ready, is_ready) = sync_channel(1);
        bind(&mut editor, &asked, &pressed);
        editor.set_helper(Some(LineHelper {
            asked: asked.clone(),
            pressed: pressed.clone(),
            screen: screen.clone(),
            console: console.clone(),
            completions,
            leaving: leaving.clone(),
            ready: RefCell::new(Some(ready)),
            updating: Cell::new(Updating::Shown),
        }));
        mode::take()?;
        let (leave, left) = sync_channel::<()>(0);
        let mut lines = Lines { editor, asked, pressed, screen: screen.clone(), history: None };
        // From here on dropping it undoes what was done.
        let terminal = Terminal { console: console.clone(), screen, leaving, left };
        console.attach(Arc::new(terminal.screen.clone()));
        terminal.screen.start(printer)?;
        std::thread::Builder::new().name("editor".to_owned()).spawn(move || {
            lines.recall(history.as_deref(), &console);
            lines.run(&ends);
            drop((lines, leave));
        })?;
        let _ = is_ready.recv_timeout(PATIENCE);
        Ok(terminal)
    }
}

impl Terminal {
    /// Has the prompt drawn again.
    pub fn redraw(&self) {
        self.screen.redraw();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leaving.store(true, Ordering::SeqCst);
        self.screen.redraw();
        // The thread puts back what it knows of the terminal before it ends; only then is there nobody else to do so.
        let _ = self.left.recv_timeout(PATIENCE);
        self.console.detach();
        self.screen.close();
        mode::give_back();
    }
}

/// What came of reading a line.
enum Read {
    Typed(Typed),
    /// A line for nobody.
    Nothing,
    /// The editor was left in the middle of it.
    Left,
}

/// What the thread works with.
struct Lines {
    editor: LineEditor,
    asked: Asked,
    pressed: Pressed,
    screen: Screen,
    history: Option<HistoryFile>,
}

impl Lines {
    /// Brings earlier lines back. Without a file everything works but that.
    fn recall(&mut self, path: Option<&Path>, console: &Console) {
        let Some(path) = path else { return };
        match HistoryFile::open(path) {
            Ok(history) => {
                for line in history.load() {
                    let _ = self.editor.add_history_entry(line);
                }
                self.history = Some(history);
            }
            Err(error) => console.warn(format_args!("what is typed is not remembered: {error}")),
        }
    }

    /// Reads line after line until nobody wants another.
    fn run(&mut self, ends: &Ends) {
        loop {
            match self.read() {
                Read::Typed(typed) => {
                    if !ends.hand_over(typed) {
                        return;
                    }
                }
                Read::Nothing => {}
                Read::Left => return,
            }
        }
    }

    fn read(&mut self) -> Read {
        self.asked.begin();
        self.screen.begin_line();
        let read = catch_unwind(AssertUnwindSafe(|| self.editor.readline(PROMPT)));
        let entered = self.asked.enter();
        let Ok(read) = read else { return Read::Left };
        self.screen.end_line();
        self.judge(read, entered).map_or(Read::Nothing, Read::Typed)
    }

    fn judge(&mut self, read: rustyline::Result<String>, entered: Entered) -> Option<Typed> {
        match (self.pressed.take(), read) {
            (Some(Ending::Interrupt), _) | (None, Err(ReadlineError::Interrupted)) => Some(Typed::Interrupt),
            (Some(Ending::End), _) => Some(Typed::End),
            (None, Ok(line)) => self.take(line, entered),
            // Somebody has typed what is no text, or changed the size of the window at a bad moment.
            (None, Err(ReadlineError::Io(error))) if error.kind() == io::ErrorKind::InvalidData => None,
            (None, Err(ReadlineError::Signal(_))) => None,
            (None, Err(_)) => Some(Typed::End),
        }
    }

    fn take(&mut self, line: String, entered: Entered) -> Option<Typed> {
        match entered.fate {
            Fate::Remembered => self.remember(&line),
            Fate::Forgotten => {}
            Fate::ThrownAway => {
                self.screen.print("(nobody asks for that any more: what was typed is thrown away)".to_owned());
                return None;
            }
        }
        Some(Typed::Line { text: multiline::joined(&line), began: entered.began })
    }

    fn remember(&mut self, line: &str) {
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        if let Some(history) = self.history.as_mut().filter(|_| is_new) {
            // The next line may be luckier.
            let _ = history.append(line);
        }
    }
}
