//! The screen while a line is being edited: output is printed above the line, and a self-updating status line stands
//! directly above it.
//!
//! Only the line editor knows the position of its line and when it is drawn, so nothing is written behind its back.
//! Pending output is handed over when the editor draws its prompt, and a thread of the screen makes it redraw. Printing
//! never blocks on the terminal.

mod screen_buffer;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustyline::ExternalPrinter;
use terminal_size::{Width, terminal_size_of};

use screen_buffer::ScreenBuffer;
pub use screen_buffer::StatusLineMode;

use crate::console::LineOverlay;
use crate::output::{OutputStream, write_all, write_within};

/// Output sink while a line is edited. Clones share the same screen.
#[derive(Clone, Default)]
pub struct EditorScreen(Arc<SharedScreen>);

#[derive(Default)]
struct SharedScreen {
    inside: Mutex<ScreenState>,
    changed: Condvar,
}

#[derive(Default)]
struct ScreenState {
    stage: ScreenBuffer,
    line: LineState,
    /// The screen's thread writes directly to the terminal. The editor waits with its next line.
    is_writing: bool,
    is_closed: bool,
}

/// State of the edited line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LineState {
    #[default]
    Absent,
    Edited,
}

/// Minimum interval between redraws of the prompt.
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for the last output on a terminal that accepts nothing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Invisible sequence that makes the editor redraw its prompt: one row up, then down again by the newline.
const REDRAW_TRIGGER: &str = "\x1b[1A\n";

impl EditorScreen {
    /// Starts the screen's thread. The printer serves only to trigger redraws.
    pub fn start(&self, mut printer: impl ExternalPrinter + Send + 'static) -> io::Result<()> {
        let screen = self.clone();
        let run = move || {
            while let Some(line) = screen.next() {
                screen.show(line, &mut printer);
                std::thread::sleep(REDRAW_INTERVAL);
            }
        };
        wharf_threads::start_thread("screen", run)
    }

    /// Begins a line. From now on only the editor writes.
    pub fn begin_line(&self) {
        let mut inside =
            self.0.changed.wait_while(self.lock(), |inside| inside.is_writing).unwrap_or_else(PoisonError::into_inner);
        inside.line = LineState::Edited;
    }

    /// Returns the text to write before the prompt. Called by the editor on every redraw.
    pub fn before_prompt(&self, updating: StatusLineMode) -> String {
        self.lock().stage.before_prompt(updating, columns())
    }

    /// Ends the line. The cursor is on an empty row below it.
    pub fn end_line(&self) {
        let mut inside = self.lock();
        inside.line = LineState::Absent;
        inside.stage.forget_status_line();
        drop(inside);
        self.0.changed.notify_all();
    }

    /// Requests a redraw of the prompt.
    pub fn redraw(&self) {
        self.update(ScreenBuffer::redraw);
    }

    /// Writes the remaining output on the empty row of the prompt, and ends the screen. Waits only briefly for a
    /// terminal that accepts nothing.
    pub fn close(&self) {
        let mut inside = self.lock();
        inside.is_closed = true;
        self.0.changed.notify_all();
        inside = self
            .0
            .changed
            .wait_timeout_while(inside, CLOSE_TIMEOUT, |inside| inside.is_writing)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        if inside.is_writing {
            return;
        }
        inside.stage.end_period(Instant::now() + Duration::from_secs(60));
        let text = inside.stage.without_status(columns());
        drop(inside);
        write_within(OutputStream::Stdout, text.as_bytes(), CLOSE_TIMEOUT);
    }

    /// Waits until there is something to show. Returns `None` once closed.
    fn next(&self) -> Option<LineState> {
        let mut inside = self.lock();
        loop {
            let now = Instant::now();
            inside.stage.end_period(now);
            match inside.stage.next_redraw(now) {
                _ if inside.is_closed => return None,
                Some(Duration::ZERO) => return Some(inside.line),
                Some(later) => {
                    inside = self.0.changed.wait_timeout(inside, later).unwrap_or_else(PoisonError::into_inner).0
                }
                None => inside = self.0.changed.wait(inside).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn show(&self, line: LineState, printer: &mut impl ExternalPrinter) {
        match line {
            // The print fails only after the editor has ended.
            LineState::Edited => drop(printer.print(REDRAW_TRIGGER.to_owned())),
            LineState::Absent => self.write_directly(),
        }
    }

    /// Writes pending output directly while no line is edited.
    fn write_directly(&self) {
        let mut inside = self.lock();
        if inside.line == LineState::Edited || inside.is_closed {
            return;
        }
        inside.is_writing = true;
        let text = inside.stage.before_prompt(StatusLineMode::Gone, columns());
        drop(inside);
        // A failure is ignored: the terminal is gone.
        let _ = write_all(OutputStream::Stdout, text.as_bytes());
        self.lock().is_writing = false;
        self.0.changed.notify_all();
    }

    fn update(&self, change: impl FnOnce(&mut ScreenBuffer)) {
        change(&mut self.lock().stage);
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ScreenState> {
        self.0.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineOverlay for EditorScreen {
    fn print(&self, text: String) {
        self.update(|stage| stage.print(&text));
    }

    fn log_line(&self, text: String) {
        self.update(|stage| stage.log_line(&text, Instant::now()));
    }

    fn set_status(&self, line: Option<String>) {
        self.update(|stage| stage.set_status(line));
    }
}

fn columns() -> usize {
    terminal_size_of(io::stdout()).map_or(80, |(Width(columns), _)| usize::from(columns))
}
