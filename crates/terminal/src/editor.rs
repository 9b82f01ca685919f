//! What is typed: a line editor on a terminal, or whatever comes through a pipe, line by line.

mod asked;
mod completion;
mod history;
mod keys;
mod line;
mod mode;
mod multiline;
mod pipe;
mod terminal;

use std::path::PathBuf;
use std::sync::{Arc, mpsc as blocking};

use tokio::sync::mpsc;

use crate::console::Console;
use crate::failure::Failure;
use asked::Asked;
pub use completion::{Candidate, LineCompleter, starting_with};
pub use mode::give_back;
use terminal::Terminal;

/// Something that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A line, or several at once, without the last end.
    Line { text: String, began: Began },
    /// Ctrl-C, with whatever stood on the line thrown away.
    Interrupt,
    /// Ctrl-D on an empty line, or the end of the input.
    End,
}

/// Whether the first key of a line came before or after the person was last asked something: what was being typed when
/// a question came up answers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Began {
    Before,
    After,
}

/// What is being asked, while something is.
#[derive(Clone)]
pub struct Field {
    pub echo: Echo,
    /// Says what is wrong with what was typed so far, shown beside it.
    pub check: Option<Check>,
    /// What may be typed, for completion; escaped.
    pub choices: Vec<String>,
}

/// Says what is wrong with a text, escaped.
pub type Check = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Whether what is typed is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    Shown,
    Hidden,
}

/// What an editor is made with.
pub struct EditorOptions {
    pub console: Arc<Console>,
    /// Where lines are remembered; private.
    pub history: Option<PathBuf>,
    pub completions: Arc<dyn LineCompleter>,
}

/// Reads lines on a thread of its own. Dropped, it gives the terminal back as it was.
pub struct Editor {
    typed: mpsc::Receiver<Typed>,
    again: blocking::Sender<()>,
    asked: Asked,
    /// None in a pipe.
    terminal: Option<Terminal>,
}

/// What a thread that reads lines says, and what it waits for before each but the first.
struct Ends {
    typed: mpsc::Sender<Typed>,
    again: blocking::Receiver<()>,
}

impl Editor {
    /// Begins: on a terminal the prompt is there when this returns, and from now on everything the console says
    /// appears above it.
    pub fn start(options: EditorOptions) -> Result<Self, Failure> {
        let (typed, heard) = mpsc::channel(1);
        let (again, permitted) = blocking::channel();
        let (asked, ends) = (Asked::default(), Ends { typed, again: permitted });
        let system = |error| Failure::other(format_args!("the terminal cannot be used: {error}"));
        let terminal = match terminal::prepare(&options.console) {
            Some(prepared) => Some(prepared.start(options, asked.clone(), ends).map_err(system)?),
            None => {
                std::thread::spawn(move || pipe::run(&options.console, &ends));
                None
            }
        };
        Ok(Self { typed: heard, again, asked, terminal })
    }

    /// Whether somebody sits at a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// The next thing typed. After one there is no other until [`Editor::again`]: what it leads to is shown first.
    /// Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Typed {
        self.typed.recv().await.unwrap_or(Typed::End)
    }

    /// Lets the next line be typed.
    pub fn again(&self) {
        // Nobody reads any more after the end.
        let _ = self.again.send(());
    }

    /// Says what the line is for: an answer to a question, or nothing in particular. A question that takes the place of
    /// another is said anew; one that stays is not.
    pub fn asks(&self, field: Option<Field>) {
        self.asked.ask(field);
        if let Some(terminal) = &self.terminal {
            terminal.redraw();
        }
    }
}

impl Ends {
    /// Hands over what was typed and waits until the next line is wanted; false if it never will be.
    fn hand_over(&self, typed: Typed) -> bool {
        // Who has said twice that the line before is over has said nothing about this one.
        while self.again.try_recv().is_ok() {}
        self.typed.blocking_send(typed).is_ok() && self.again.recv().is_ok()
    }
}

#[cfg(test)]
mod tests;
