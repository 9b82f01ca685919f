//! The two streams people see: stdout is data, stderr is talk.
//!
//! Owns the one line on stderr that updates itself, and takes it away before anything else is written. While a person
//! is being asked, that line stays away and asides wait. While a line is being edited, all of it goes above that line.
//! Whatever comes from a server is escaped before it gets here.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};
use wharf_spec::Untrusted;

use crate::failure::Failure;
use crate::style::{WARNING, paint};
use crate::table::cut;

/// How to talk.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Data goes out as JSON documents.
    pub json: bool,
    /// Wire messages and steps are shown.
    pub debug: bool,
    pub color: ColorChoice,
}

/// Where everything that is shown goes through.
pub struct Console {
    pub manner: Manner,
    data_terminal: bool,
    talk_terminal: bool,
    status: Mutex<Status>,
    above: Mutex<Option<Arc<dyn Above>>>,
}

/// The updating line, and what waits for the end of a question.
#[derive(Debug, Default)]
struct Status {
    shown: bool,
    at: Option<Instant>,
    /// Whether a person is being asked.
    asking: bool,
    /// Asides that came meanwhile.
    kept: Vec<String>,
    /// How many more there were than can be kept.
    lost: usize,
}

/// Where everything goes while a line is being edited.
pub trait Above: Send + Sync {
    /// Puts lines above that line. Returns at once.
    fn print(&self, text: String);

    /// The same for lines that nobody waits for, of which some may be dropped. Returns at once.
    fn aside(&self, text: String);

    /// Changes the line that updates itself, or takes it away.
    fn status(&self, line: Option<String>);
}

/// A person being asked. Dropped, it lets everybody else talk again.
pub struct Floor<'a>(&'a Console);

/// A line that changes more often than this only tires the eye.
const STATUS_EVERY: Duration = Duration::from_millis(80);
/// The most asides that wait for the end of a question.
const MOST_KEPT: usize = 1_000;

impl Console {
    pub fn new(manner: Manner) -> Self {
        Self {
            manner,
            data_terminal: io::stdout().is_terminal(),
            talk_terminal: io::stderr().is_terminal(),
            status: Mutex::default(),
            above: Mutex::default(),
        }
    }

    /// From now on everything goes above a line that is being edited. For where data goes to a terminal.
    pub fn attach(&self, above: Arc<dyn Above>) {
        self.clear();
        *self.above.lock().unwrap_or_else(PoisonError::into_inner) = Some(above);
    }

    /// Nothing is being edited any more.
    pub fn detach(&self) {
        *self.above.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Where data goes, if above a line.
    fn above(&self) -> Option<Arc<dyn Above>> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where talk goes, if above a line: not where somebody has led it elsewhere.
    fn above_talk(&self) -> Option<Arc<dyn Above>> {
        self.above().filter(|_| self.talk_terminal)
    }

    /// A text with its colours, where there are to be any.
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

    /// The width that data has to fit into; none in a pipe.
    pub fn width(&self) -> Option<usize> {
        let (Width(columns), _) = self.data_terminal.then(|| terminal_size_of(io::stdout()))??;
        Some(usize::from(columns))
    }

    /// The width that talk has to fit into; none in a pipe.
    pub fn talk_width(&self) -> Option<usize> {
        let (Width(columns), _) = self.talk_terminal.then(|| terminal_size_of(io::stderr()))??;
        Some(usize::from(columns))
    }

    /// Whether a line that updates itself is seen by anybody.
    pub fn has_status(&self) -> bool {
        self.talk_terminal
    }

    /// Writes data for people, as it is.
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

    /// Writes data in the place of the lines written last, this many of them. For a terminal only.
    pub fn redraw(&self, lines: usize, text: impl Display) -> Result<(), Failure> {
        self.write(|| {
            if lines > 0 {
                // Not by way of the stream that takes colours away: it would take this away as well.
                write!(io::stdout(), "\x1b[{lines}A\x1b[J")?;
            }
            let mut out = AutoStream::new(io::stdout().lock(), self.manner.color);
            write!(out, "{text}")?;
            out.flush()
        })
    }

    /// Writes one JSON document on a line of its own.
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

    /// Says something beside the data, as one or several lines.
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
        // Nobody listens: nothing to be done, and nobody to be told.
        let _ = writeln!(err, "{text}");
    }

    /// Says something that nobody waits for, such as what a server logs. It does not break into a question.
    pub fn aside(&self, text: impl Display) {
        if let Some(above) = self.above_talk() {
            return above.aside(self.colored(text));
        }
        let mut status = self.lock();
        if !status.asking {
            self.wipe(&mut status);
            self.write_talk(text);
        } else if status.kept.len() < MOST_KEPT {
            status.kept.push(text.to_string());
        } else {
            status.lost += 1;
        }
    }

    /// Gives the terminal to a question: until the floor is dropped there is no updating line and no aside. Where
    /// everything goes above a line, there is room for all.
    pub fn take_floor(&self) -> Floor<'_> {
        let mut status = self.lock();
        self.wipe(&mut status);
        status.asking = true;
        Floor(self)
    }

    /// Warns of something that did not stop the command.
    pub fn warn(&self, text: impl Display) {
        self.say(format_args!("{} {text}", paint(WARNING, "warning:")));
    }

    /// Shows a line that the next one replaces. On a terminal only.
    pub fn status(&self, text: &str) {
        if !self.talk_terminal {
            return;
        }
        if let Some(above) = self.above() {
            return above.status(Some(self.colored(text)));
        }
        let mut status = self.lock();
        let now = Instant::now();
        if status.asking || status.at.is_some_and(|at| now.duration_since(at) < STATUS_EVERY) {
            return;
        }
        self.wipe(&mut status);
        let width = self.talk_width().unwrap_or(80);
        let _ = write!(io::stderr(), "{}", cut(text, width.saturating_sub(1)));
        (status.shown, status.at) = (true, Some(now));
    }

    /// Takes the updating line away.
    pub fn clear(&self) {
        if let Some(above) = self.above() {
            return above.status(None);
        }
        let mut status = self.lock();
        self.wipe(&mut status);
        status.at = None;
    }

    fn wipe(&self, status: &mut Status) {
        if std::mem::take(&mut status.shown) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Floor<'_> {
    fn drop(&mut self) {
        let mut status = self.0.lock();
        status.asking = false;
        for text in std::mem::take(&mut status.kept) {
            self.0.write_talk(text);
        }
        let lost = std::mem::take(&mut status.lost);
        if lost > 0 {
            self.0.write_talk(format_args!("({lost} more lines came meanwhile)"));
        }
    }
}

/// The same JSON with whatever could act on a terminal written as an escape. What is not ASCII stands inside strings.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        let acts = (letter == '\x7f' || !letter.is_ascii()) && {
            let mut buffer = [0; 4];
            let whole: &str = letter.encode_utf8(&mut buffer);
            Untrusted::new(whole).to_string() != whole
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
    fn json_on_a_terminal_means_the_same_and_does_nothing() {
        let text = "{\"a\":\"\u{9b}31m é 漢 \u{202e}\u{e0041}\u{7f} 🎉\"}";
        let shown = harmless(text);
        assert_eq!(shown, "{\"a\":\"\\u009b31m é 漢 \\u202e\\udb40\\udc41\\u007f 🎉\"}");
        let (before, after): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(text).unwrap(), serde_json::from_str(&shown).unwrap());
        assert_eq!(before, after);
    }

    /// Writes down what comes.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Above for Notes {
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
    fn what_is_said_goes_above_a_line_that_is_edited() {
        let manner = Manner { json: false, debug: false, color: ColorChoice::Never };
        let console = Console { data_terminal: true, talk_terminal: true, ..Console::new(manner) };
        let notes = Arc::new(Notes::default());
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
    fn a_question_keeps_the_floor() {
        let console = Console::new(Manner { json: false, debug: false, color: ColorChoice::Never });
        let floor = console.take_floor();
        let held = |status: &Status| (status.asking, status.kept.len(), status.lost);
        console.aside("later");
        assert_eq!(held(&console.lock()), (true, 1, 0));
        console.lock().kept.resize(MOST_KEPT, String::new());
        console.aside("too much");
        assert_eq!(held(&console.lock()), (true, MOST_KEPT, 1));
        console.lock().kept.truncate(1);
        drop(floor);
        assert_eq!(held(&console.lock()), (false, 0, 0));
    }
}
