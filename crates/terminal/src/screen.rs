//! The screen while a line is being edited: everything is printed above that line, and right above it stands one line
//! that updates itself.
//!
//! A line editor draws its line whenever it likes and knows alone where that line is. So nothing is written past it: what
//! waits is handed over where the editor draws its prompt, and a thread of the screen's own makes it draw. Nobody who
//! prints waits for a terminal.

mod stage;

use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustyline::ExternalPrinter;
use terminal_size::{Width, terminal_size_of};

use stage::Stage;
pub use stage::Updating;

use crate::console::Above;

/// Where everything goes while a line is edited. Clones are the same screen.
#[derive(Clone, Default)]
pub struct Screen(Arc<Shared>);

#[derive(Default)]
struct Shared {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// Held by whoever writes past the editor, and by the editor while it begins a line.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Inside {
    stage: Stage,
    line: Line,
    is_closed: bool,
}

/// Whether a line is being edited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Absent,
    Edited,
}

/// How often the prompt is drawn again while much happens.
const EVERY: Duration = Duration::from_millis(50);
/// Makes a line editor draw its prompt again and is not seen: up a row and, by the end of the line, down again.
const NUDGE: &str = "\x1b[1A\n";

impl Screen {
    /// Begins to show what is printed. The printer is used for nothing but nudging the editor.
    pub fn start(&self, mut printer: impl ExternalPrinter + Send + 'static) -> io::Result<()> {
        let screen = self.clone();
        let run = move || {
            while let Some(line) = screen.next() {
                screen.show(line, &mut printer);
                std::thread::sleep(EVERY);
            }
        };
        std::thread::Builder::new().name("screen".to_owned()).spawn(run).map(drop)
    }

    /// A line begins: from now on nothing is written past the editor.
    pub fn begin_line(&self) {
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().line = Line::Edited;
    }

    /// What goes before the prompt; for the editor, wherever it draws one.
    pub fn before_prompt(&self, updating: Updating) -> String {
        self.lock().stage.before_prompt(updating, columns())
    }

    /// The line has ended, and the cursor stands on an empty row below it.
    pub fn end_line(&self) {
        let mut inside = self.lock();
        inside.line = Line::Absent;
        inside.stage.leave_line();
        drop(inside);
        self.0.changed.notify_all();
    }

    /// Has the prompt drawn again.
    pub fn redraw(&self) {
        self.change(Stage::redraw);
    }

    /// Writes what is left, on the empty row where the prompt was. Nothing is shown after that.
    pub fn close(&self) {
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inside = self.lock();
        inside.is_closed = true;
        inside.stage.settle(Instant::now() + Duration::from_secs(60));
        let text = inside.stage.without_status(columns());
        drop(inside);
        self.0.changed.notify_all();
        write(&text);
    }

    /// Waits for something to show. None once all is over.
    fn next(&self) -> Option<Line> {
        let mut inside = self.lock();
        loop {
            let now = Instant::now();
            inside.stage.settle(now);
            match inside.stage.due(now) {
                _ if inside.is_closed => return None,
                Some(Duration::ZERO) => return Some(inside.line),
                Some(later) => {
                    inside = self.0.changed.wait_timeout(inside, later).unwrap_or_else(PoisonError::into_inner).0
                }
                None => inside = self.0.changed.wait(inside).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn show(&self, line: Line, printer: &mut impl ExternalPrinter) {
        match line {
            // One who cannot be nudged any more has left.
            Line::Edited => drop(printer.print(NUDGE.to_owned())),
            Line::Absent => self.write_past(),
        }
    }

    /// Writes what waits while no line is edited.
    fn write_past(&self) {
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inside = self.lock();
        if inside.line == Line::Edited {
            return;
        }
        let text = inside.stage.before_prompt(Updating::Gone, columns());
        drop(inside);
        write(&text);
    }

    fn change(&self, change: impl FnOnce(&mut Stage)) {
        change(&mut self.lock().stage);
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Above for Screen {
    fn print(&self, text: String) {
        self.change(|stage| stage.print(&text));
    }

    fn aside(&self, text: String) {
        self.change(|stage| stage.aside(&text, Instant::now()));
    }

    fn status(&self, line: Option<String>) {
        self.change(|stage| stage.set_status(line));
    }
}

fn write(text: &str) {
    let mut out = io::stdout().lock();
    // A terminal that is gone shows nothing to nobody.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn columns() -> usize {
    terminal_size_of(io::stdout()).map_or(80, |(Width(columns), _)| usize::from(columns))
}
