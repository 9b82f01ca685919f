//! A pseudo-terminal for a program to run on: what it shows is kept, drawn on a screen and waited for, and keys are
//! typed.
//!
//! Nothing here sleeps: whoever waits, waits for the program to write, and after [`PATIENCE`] panics with what was seen
//! until then.

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

/// How long a program may take to show what is expected of it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How many rows are kept of what has left the screen at the top.
const SCROLLBACK: usize = 10_000;

/// How a terminal is laid out: 24 rows of 100 columns with everything on it, where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub rows: u16,
    pub columns: u16,
    pub stdout: Stdout,
}

/// Where a program's standard output goes; the other two streams are always the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdout {
    Terminal,
    /// Kept apart, for [`Ended::stdout`].
    Pipe,
}

/// A program on a pseudo-terminal of its own. Dropped, it takes the program with it.
pub struct Terminal {
    keyboard: File,
    child: Child,
    /// What reads the pipe, so that nobody waits for room in it.
    pipe: Option<JoinHandle<String>>,
    drawn: vt100::Parser,
    bytes: Vec<u8>,
    plain: Plain,
    /// How much of the plain text has been expected already.
    expected: usize,
}

/// What a program that ended left.
#[derive(Debug)]
pub struct Ended {
    /// None where a signal ended it.
    pub code: Option<i32>,
    /// All text that was shown, without escapes and carriage returns; typed lines are in it where they were echoed.
    pub shown: String,
    /// The same as it came.
    pub bytes: Vec<u8>,
    /// What somebody sees who scrolls up to the first row.
    pub rows: Vec<String>,
    /// The same text, with each line that the terminal broke in one piece, up to the last that is not empty.
    pub text: String,
    /// What came through the pipe, where there was one.
    pub stdout: String,
}

/// What waiting for a program comes to.
enum Came {
    More,
    Nothing,
    /// Nobody holds the terminal any more.
    End,
}

/// Where the line of a row ends.
enum Breaks {
    Here,
    /// It goes on in the next row.
    Nowhere,
}

impl Default for Layout {
    fn default() -> Self {
        Self { rows: 24, columns: 100, stdout: Stdout::Terminal }
    }
}

impl Terminal {
    /// Starts a command on a terminal of the usual layout.
    #[track_caller]
    pub fn start(command: &Command) -> Self {
        Self::start_with(command, Layout::default())
    }

    /// Starts a command on a terminal, which becomes its controlling one: Ctrl-C sends it a signal. It sees no
    /// variables but those the command names, and `TERM`.
    #[track_caller]
    pub fn start_with(command: &Command, layout: Layout) -> Self {
        let (keyboard, screen) = pair::open(layout.rows, layout.columns);
        let mut inside = in_a_session(command);
        inside.stdin(screen.try_clone().expect("a descriptor is left"));
        match layout.stdout {
            Stdout::Terminal => inside.stdout(screen.try_clone().expect("a descriptor is left")),
            Stdout::Pipe => inside.stdout(Stdio::piped()),
        };
        let mut child = inside.stderr(screen).spawn().expect("setsid is where it always is");
        let pipe = child.stdout.take().map(|stdout| thread::spawn(|| read_all(stdout)));
        let drawn = vt100::Parser::new(cells(layout.rows), cells(layout.columns), SCROLLBACK);
        Self { keyboard, child, pipe, drawn, bytes: Vec::new(), plain: Plain::default(), expected: 0 }
    }

    /// Waits until a text is shown, after whatever was expected before. Escapes and carriage returns do not count, so
    /// that a text is found whatever its colours are, and also where it was drawn over since. Gives what was shown from
    /// there up to its end.
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
            self.await_more(until, &format!("`{text}`"));
        }
    }

    /// Waits until the screen looks as wanted; its rows come without the blanks at their ends, as in
    /// [`Terminal::screen`]. What was shown until then counts as expected.
    #[track_caller]
    pub fn expect_screen(&mut self, mut wanted: impl FnMut(&[String]) -> bool) {
        self.expect_view(|screen| wanted(&rows_of(screen).collect::<Vec<_>>()));
        self.expected = self.plain.text().len();
    }

    /// Waits until the screen with its colours and its cursor is as wanted.
    #[track_caller]
    pub fn expect_view(&mut self, mut wanted: impl FnMut(&Screen) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wanted(self.view()) {
            self.await_more(until, "the screen that is waited for");
        }
    }

    /// Waits for a prompt and answers it.
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

    /// Types characters, and no Enter.
    pub fn keys(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("a terminal takes what is typed");
    }

    /// Presses a key that is no character.
    pub fn key(&mut self, key: Key) {
        self.keys(key.sent());
    }

    /// Presses a letter while holding Ctrl.
    pub fn control(&mut self, letter: char) {
        self.keys(&char::from((letter as u8) & 0x1f).to_string());
    }

    /// Makes the terminal larger or smaller, which the program is told by a signal.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        pair::resize(&self.keyboard, rows, columns);
        self.drawn.set_size(cells(rows), cells(columns));
    }

    /// The rows of the screen after what has been read so far, without the blanks at their ends.
    pub fn screen(&self) -> Vec<String> {
        rows_of(self.drawn.screen()).collect()
    }

    /// The screen with its colours and its cursor.
    pub fn view(&self) -> &Screen {
        self.drawn.screen()
    }

    /// What somebody sees who scrolls up to the first row, the screen included.
    pub fn scrolled(&self) -> Vec<String> {
        self.history().into_iter().map(|(row, _)| row.trim_end().to_owned()).collect()
    }

    /// All text that was shown so far, without escapes and carriage returns.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(self.plain.text()).into_owned()
    }

    /// The process of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program has ended and nobody it started holds the terminal any more.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.read_more(until) {
                Came::More => {}
                Came::End => break,
                Came::Nothing => panic!("it does not end:\n{}", self.screen().join("\n")),
            }
        }
        let code = self.child.wait().expect("nobody else waits for it").code();
        let stdout = self.pipe.take().map(|pipe| pipe.join().expect("reading a pipe does not panic"));
        let bytes = std::mem::take(&mut self.bytes);
        let (rows, text) = (self.scrolled(), self.text());
        Ended { code, shown: self.shown(), bytes, rows, text, stdout: stdout.unwrap_or_default() }
    }

    fn text(&self) -> String {
        let line = |(row, breaks): (String, Breaks)| match breaks {
            Breaks::Here => row.trim_end().to_owned() + "\n",
            Breaks::Nowhere => row,
        };
        let text: String = self.history().into_iter().map(line).collect();
        text.trim_end().to_owned()
    }

    /// Every row from the first on, in full width, and whether its line goes on in the next.
    fn history(&self) -> Vec<(String, Breaks)> {
        let mut screen = self.drawn.screen().clone();
        let (height, width) = (screen.size().0.get(), screen.size().1.get());
        let above = (1..=screen.scrollback_len()).rev().map(|up| (up, 0));
        let places: Vec<(usize, u16)> = above.chain((0..height).map(|row| (0, row))).collect();
        let row = |(up, row): (usize, u16)| {
            screen.set_scrollback(up);
            let text = screen.rows(0, width).nth(row.into()).unwrap_or_default();
            (text, if screen.row_wrapped(row) { Breaks::Nowhere } else { Breaks::Here })
        };
        places.into_iter().map(row).collect()
    }

    #[track_caller]
    fn await_more(&mut self, until: Instant, wanted: &str) {
        let why = match self.read_more(until) {
            Came::More => return,
            Came::Nothing => "did not come",
            Came::End => "did not come before the end",
        };
        panic!("{wanted} {why}; on the screen:\n{}\nall of it: {:?}", self.screen().join("\n"), self.shown());
    }

    /// Takes in what is shown next.
    fn read_more(&mut self, until: Instant) -> Came {
        if !readable(&self.keyboard, until) {
            return Came::Nothing;
        }
        let mut bytes = [0; 4096];
        // A terminal without a program on it reads as an error.
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

/// The same command as the leader of a session, which is for a process to become itself.
fn in_a_session(command: &Command) -> Command {
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
