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
    state: Mutex<ScreenState>,
    changed: Condvar,
}

#[derive(Default)]
struct ScreenState {
    buffer: ScreenBuffer,
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
        let mut state =
            self.0.changed.wait_while(self.lock(), |state| state.is_writing).unwrap_or_else(PoisonError::into_inner);
        state.line = LineState::Edited;
    }

    /// Returns the text to write before the prompt. Called by the editor on every redraw.
    pub fn before_prompt(&self, updating: StatusLineMode) -> String {
        self.lock().buffer.before_prompt(updating, columns())
    }

    /// Ends the line. The cursor is on an empty row below it.
    pub fn end_line(&self) {
        let mut state = self.lock();
        state.line = LineState::Absent;
        state.buffer.forget_status_line();
        drop(state);
        self.0.changed.notify_all();
    }

    /// Requests a redraw of the prompt.
    pub fn redraw(&self) {
        self.update(ScreenBuffer::redraw);
    }

    /// Writes the remaining output on the empty row of the prompt, and ends the screen. Waits only briefly for a
    /// terminal that accepts nothing.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.0.changed.notify_all();
        state = self
            .0
            .changed
            .wait_timeout_while(state, CLOSE_TIMEOUT, |state| state.is_writing)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        if state.is_writing {
            return;
        }
        state.buffer.end_period(Instant::now() + Duration::from_secs(60));
        let text = state.buffer.without_status(columns());
        drop(state);
        write_within(OutputStream::Stdout, text.as_bytes(), CLOSE_TIMEOUT);
    }

    /// Waits until there is something to show. Returns `None` once closed.
    fn next(&self) -> Option<LineState> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            state.buffer.end_period(now);
            match state.buffer.next_redraw(now) {
                _ if state.is_closed => return None,
                Some(Duration::ZERO) => return Some(state.line),
                Some(later) => {
                    state = self.0.changed.wait_timeout(state, later).unwrap_or_else(PoisonError::into_inner).0
                }
                None => state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
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
        let mut state = self.lock();
        if state.line == LineState::Edited || state.is_closed {
            return;
        }
        state.is_writing = true;
        let text = state.buffer.before_prompt(StatusLineMode::Gone, columns());
        drop(state);
        // A failure is ignored: the terminal is gone.
        let _ = write_all(OutputStream::Stdout, text.as_bytes());
        self.lock().is_writing = false;
        self.0.changed.notify_all();
    }

    fn update(&self, change: impl FnOnce(&mut ScreenBuffer)) {
        change(&mut self.lock().buffer);
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ScreenState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineOverlay for EditorScreen {
    fn print(&self, text: String) {
        self.update(|buffer| buffer.print(&text));
    }

    fn log_line(&self, text: String) {
        self.update(|buffer| buffer.log_line(&text, Instant::now()));
    }

    fn set_status(&self, line: Option<String>) {
        self.update(|buffer| buffer.set_status(line));
    }
}

fn columns() -> usize {
    terminal_size_of(io::stdout()).map_or(80, |(Width(columns), _)| usize::from(columns))
}
