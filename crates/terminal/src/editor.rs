//! Input: a line editor on a terminal, or lines from a pipe.

mod completion;
mod history;
mod keys;
mod line;
mod multiline;
mod pipe;
mod prompt_state;
mod terminal;
mod terminal_mode;

use std::path::PathBuf;
use std::sync::{Arc, mpsc as blocking};

use tokio::sync::mpsc;

use crate::console::Console;
use crate::failure::Failure;
pub use completion::{Candidate, LineCompleter, starting_with};
use prompt_state::PromptState;
use terminal::EditorTerminal;
pub use terminal_mode::restore;

/// One unit of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditorInput {
    /// One or more lines without the last newline.
    Line { text: String, began: LineStart },
    /// Ctrl-C. The current line is discarded.
    Interrupt,
    /// Ctrl-D on an empty line, or end of input.
    End,
}

/// Start of a line relative to the latest question. A line begun before it is not an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStart {
    Before,
    After,
}

/// Input field of the open question.
#[derive(Clone)]
pub struct InputField {
    pub echo: EchoMode,
    /// Validates the text typed so far. The error is shown next to the line.
    pub check: Option<InputCheck>,
    /// Accepted values for completion, escaped.
    pub choices: Vec<String>,
}

/// Validates a text. The error is escaped.
pub type InputCheck = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Visibility of typed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoMode {
    Shown,
    Hidden,
}

/// Options of an editor.
pub struct EditorOptions {
    pub console: Arc<Console>,
    /// Path of the history file, readable by the user only.
    pub history: Option<PathBuf>,
    pub completions: Arc<dyn LineCompleter>,
}

/// Reads lines on a dedicated thread. Dropping it restores the terminal.
pub struct InputEditor {
    typed: mpsc::Receiver<EditorInput>,
    resume_tx: blocking::Sender<()>,
    prompt_state: PromptState,
    /// `None` if input is not a terminal.
    terminal: Option<EditorTerminal>,
}

/// Channel ends of the reader thread. The thread waits on `resume_rx` before each line but the first.
struct ReaderChannels {
    typed: mpsc::Sender<EditorInput>,
    resume_rx: blocking::Receiver<()>,
}

impl InputEditor {
    /// Starts the editor. On a terminal the prompt is drawn before this returns, and console output appears above it.
    ///
    /// # Errors
    ///
    /// Fails if the terminal cannot be set up.
    pub fn start(options: EditorOptions) -> Result<Self, Failure> {
        let (sender, typed) = mpsc::channel(1);
        let (resume_tx, resume_rx) = blocking::channel();
        let (prompt_state, channels) = (PromptState::default(), ReaderChannels { typed: sender, resume_rx });
        let system = |error| Failure::other(format_args!("cannot set up the terminal: {error}"));
        let terminal = match terminal::prepare(&options.console) {
            Some(prepared) => Some(prepared.start(options, prompt_state.clone(), channels).map_err(system)?),
            None => {
                let read = move || pipe::read_pipe(&options.console, &channels);
                wharf_threads::start_thread("wharf-stdin", read).map_err(Failure::other)?;
                None
            }
        };
        Ok(Self { typed, resume_tx, prompt_state, terminal })
    }

    /// Reports whether input is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Waits for the next input. No further input follows until [`InputEditor::resume`], so that its result is shown
    /// first. Cancel-safe.
    pub async fn next(&mut self) -> EditorInput {
        self.typed.recv().await.unwrap_or(EditorInput::End)
    }

    /// Allows the next line to be typed.
    pub fn resume(&self) {
        // The reader thread is gone after the end of input.
        let _ = self.resume_tx.send(());
    }

    /// Sets the question that the line answers, or none, and redraws the prompt. Call it for every new question, but
    /// not again for an unchanged one: a line begun before the call is not an answer.
    pub fn set_question(&self, field: Option<InputField>) {
        self.prompt_state.set_field(field);
        if let Some(terminal) = &self.terminal {
            terminal.redraw();
        }
    }
}

impl ReaderChannels {
    /// Sends the input and waits until the next line is requested. Returns `false` if the editor is gone.
    fn send_and_wait(&self, typed: EditorInput) -> bool {
        // Discard surplus requests: they refer to the previous line.
        while self.resume_rx.try_recv().is_ok() {}
        self.typed.blocking_send(typed).is_ok() && self.resume_rx.recv().is_ok()
    }
}

#[cfg(test)]
mod tests;
