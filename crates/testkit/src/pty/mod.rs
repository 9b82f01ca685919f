//! A pseudo-terminal for a program under test: its output is recorded, drawn on a screen and waited for, and keys are
//! typed.
//!
//! This module never sleeps: every wait is for output of the program, and panics after [`PATIENCE`] with the output so
//! far.

mod key;
mod pair;
mod plain;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub use key::Key;
pub use vt100::Screen;

use plain::Plain;

/// Timeout for expected output of a program.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Number of rows kept after they scroll off the screen.
const SCROLLBACK: usize = 10_000;

/// Layout of a terminal. Default: 24 rows of 100 columns with all streams on it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub rows: u16,
    pub columns: u16,
    pub stdout: StdoutTarget,
}

/// Target of a program's standard output; the other two streams are always the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdoutTarget {
    Terminal,
    /// A separate pipe, for [`Ended::stdout`].
    Pipe,
}

/// A program on its own pseudo-terminal. Dropping it kills the program.
pub struct Terminal {
    keyboard: File,
    child: Child,
    /// Thread that reads the pipe, so that the program never blocks on it.
    pipe: Option<JoinHandle<String>>,
    drawn: vt100::Parser,
    bytes: Vec<u8>,
    plain: Plain,
    /// Length of the plain text already matched by expectations.
    expected: usize,
}

/// The result of an ended program.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// All text shown, without escapes and carriage returns; includes echoed input.
    pub shown: String,
    /// All output, raw.
    pub bytes: Vec<u8>,
    /// All rows, including the scrollback.
    pub rows: Vec<String>,
    /// The same text with wrapped lines joined, up to the last non-empty line.
    pub text: String,
    /// Output of the pipe, if there was one.
    pub stdout: String,
}

/// The result of waiting for output.
enum Came {
    More,
    Nothing,
    /// The terminal was closed by all processes.
    End,
}

/// The end of a row.
enum RowEnd {
    Here,
    /// The line continues in the next row.
    Nowhere,
}

impl Default for Layout {
    fn default() -> Self {
        Self { rows: 24, columns: 100, stdout: StdoutTarget::Terminal }
    }
}

impl Terminal {
    /// Starts a command on a terminal with the default layout.
    #[track_caller]
    pub fn start(command: &Command) -> Self {
        Self::start_with(command, Layout::default())
    }

    /// Starts a command on a terminal of 80 columns, with its output in a pipe.
    #[track_caller]
    pub fn start_piped(command: &Command) -> Self {
        Self::start_with(command, Layout { columns: 80, stdout: StdoutTarget::Pipe, ..Layout::default() })
    }

    /// Starts a command on a terminal, which becomes its controlling terminal: Ctrl-C sends it a signal. Its
    /// environment has only the command's variables and `TERM`.
    #[track_caller]
    pub fn start_with(command: &Command, layout: Layout) -> Self {
        let (keyboard, screen) = pair::open(layout.rows, layout.columns);
        let mut inside = session_command(command);
        inside.stdin(screen.try_clone().expect("a descriptor is left"));
        match layout.stdout {
            StdoutTarget::Terminal => inside.stdout(screen.try_clone().expect("a descriptor is left")),
            StdoutTarget::Pipe => inside.stdout(Stdio::piped()),
        };
        let mut child = inside.stderr(screen).spawn().expect("setsid is where it always is");
        let pipe = child.stdout.take().map(|stdout| thread::spawn(|| read_all(stdout)));
        let drawn = vt100::Parser::new(cells(layout.rows), cells(layout.columns), SCROLLBACK);
        Self { keyboard, child, pipe, drawn, bytes: Vec::new(), plain: Plain::default(), expected: 0 }
    }

    /// Waits until a text is shown after the last expectation. Escapes and carriage returns are ignored, so that a text
    /// is found in any colour, also if it was overwritten since. Returns the output from there to its end.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let news = &self.plain.text()[self.expected..];
            if let Some(at) = find(news, text.as_bytes()) {
                let passed = String::from_utf8_lossy(&news[..at + text.len()]).into_owned();
                self.expected += at + text.len();
                return passed;
            }
            self.wait_for_output(until, &format!("`{text}`"));
        }
    }

    /// Waits until the screen is as wanted. Rows have no trailing blanks, as in [`Terminal::screen`]. Marks all output
    /// so far as expected.
    #[track_caller]
    pub fn expect_screen(&mut self, mut wanted: impl FnMut(&[String]) -> bool) {
        self.expect_view(|screen| wanted(&rows_of(screen).collect::<Vec<_>>()));
        self.expected = self.plain.text().len();
    }

    /// Waits until the screen with its colours and cursor is as wanted.
    #[track_caller]
    pub fn expect_view(&mut self, mut wanted: impl FnMut(&Screen) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wanted(self.view()) {
            self.wait_for_output(until, "the expected screen");
        }
    }

    /// Waits for a prompt and types a line.
    #[track_caller]
    pub fn answer(&mut self, prompt: &str, line: &str) {
        self.expect(prompt);
        self.line(line);
    }

    /// Types a line and Enter.
    pub fn line(&mut self, text: &str) {
        self.keys(text);
        self.key(Key::Enter);
    }

    /// Types characters without Enter.
    pub fn keys(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("a terminal takes what is typed");
    }

    /// Presses a non-character key.
    pub fn key(&mut self, key: Key) {
        self.keys(key.sequence());
    }

    /// Presses a letter while holding Ctrl.
    pub fn control(&mut self, letter: char) {
        self.keys(&char::from((letter as u8) & 0x1f).to_string());
    }

    /// Resizes the terminal; the program receives SIGWINCH.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        pair::resize(&self.keyboard, rows, columns);
        self.drawn.set_size(cells(rows), cells(columns));
    }

    /// Returns the rows of the screen, as read so far, without trailing blanks.
    pub fn screen(&self) -> Vec<String> {
        rows_of(self.drawn.screen()).collect()
    }

    /// Returns the screen with its colours and cursor.
    pub fn view(&self) -> &Screen {
        self.drawn.screen()
    }

    /// Returns all rows, including the scrollback and the screen.
    pub fn all_rows(&self) -> Vec<String> {
        self.history().into_iter().map(|(row, _)| row.trim_end().to_owned()).collect()
    }

    /// Returns all text shown so far, without escapes and carriage returns.
    pub fn shown_text(&self) -> String {
        String::from_utf8_lossy(self.plain.text()).into_owned()
    }

    /// Returns the process id of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program has ended and no process holds the terminal.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.read_more(until) {
                Came::More => {}
                Came::End => break,
                Came::Nothing => panic!("the program does not end:\n{}", self.screen().join("\n")),
            }
        }
        let code = self.child.wait().expect("the child is waited for once").code();
        let stdout = self.pipe.take().map(|pipe| pipe.join().expect("reading a pipe does not panic"));
        let bytes = std::mem::take(&mut self.bytes);
        let (rows, text) = (self.all_rows(), self.text());
        Ended { code, shown: self.shown_text(), bytes, rows, text, stdout: stdout.unwrap_or_default() }
    }

    fn text(&self) -> String {
        let line = |(row, breaks): (String, RowEnd)| match breaks {
            RowEnd::Here => row.trim_end().to_owned() + "\n",
            RowEnd::Nowhere => row,
        };
        let text: String = self.history().into_iter().map(line).collect();
        text.trim_end().to_owned()
    }

    /// Returns every row in full width, with its kind of line end.
    fn history(&self) -> Vec<(String, RowEnd)> {
        let mut screen = self.drawn.screen().clone();
        let (height, width) = (screen.size().0.get(), screen.size().1.get());
        let above = (1..=screen.scrollback_len()).rev().map(|up| (up, 0));
        let places: Vec<(usize, u16)> = above.chain((0..height).map(|row| (0, row))).collect();
        let row = |(up, row): (usize, u16)| {
            screen.set_scrollback(up);
            let text = screen.rows(0, width).nth(row.into()).unwrap_or_default();
            (text, if screen.row_wrapped(row) { RowEnd::Nowhere } else { RowEnd::Here })
        };
        places.into_iter().map(row).collect()
    }

    #[track_caller]
    fn wait_for_output(&mut self, until: Instant, wanted: &str) {
        let why = match self.read_more(until) {
            Came::More => return,
            Came::Nothing => "was not shown",
            Came::End => "was not shown before the program ended",
        };
        panic!("{wanted} {why}; screen:\n{}\nfull output: {:?}", self.screen().join("\n"), self.shown_text());
    }

    /// Reads the next output.
    fn read_more(&mut self, until: Instant) -> Came {
        if !readable(&self.keyboard, until) {
            return Came::Nothing;
        }
        let mut bytes = [0; 4096];
        // Reading from a terminal without a program fails.
        let count = self.keyboard.read(&mut bytes).unwrap_or(0);
        self.drawn.process(&bytes[..count]);
        self.plain.push(&bytes[..count]);
        self.bytes.extend_from_slice(&bytes[..count]);
        if count > 0 { Came::More } else { Came::End }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command wrapped in `setsid`: a process must become session leader itself.
fn session_command(command: &Command) -> Command {
    let mut inside = Command::new("/usr/bin/setsid");
    inside.arg("--ctty").arg(command.get_program()).args(command.get_args());
    inside.env_clear().env("TERM", "xterm-256color");
    inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        inside.current_dir(directory);
    }
    inside
}

fn readable(keyboard: &File, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a patience of seconds");
        match poll(&mut [PollFd::new(keyboard, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn read_all(mut stdout: ChildStdout) -> String {
    let mut bytes = Vec::new();
    let _ = stdout.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn rows_of(screen: &Screen) -> impl Iterator<Item = String> + '_ {
    screen.rows(0, screen.size().1.get()).map(|row| row.trim_end().to_owned())
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a terminal has rows and columns")
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
