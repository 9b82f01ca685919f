//! Rendering, validation and completion of the edited line.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::completion::{Candidate, LineCompleter, starting_with};
use super::keys::{ExitKey, PressedExitKey};
use super::prompt_state::{PromptState, QuestionVisibility};
use super::{EchoMode, InputField, multiline};
use crate::console::{Console, LineOverlay as _};
use crate::screen::{EditorScreen, StatusLineMode};
use crate::style::{BAD, NAME, QUIET, WARNING, paint};

/// The prompt. While a question is open, another one of the same width replaces it.
pub const PROMPT: &str = "\u{203a} ";
const QUESTION_PROMPT: &str = "? ";
/// Shown while the question is not ready for an answer.
const WAITING_PROMPT: &str = "  ";

/// Callbacks of the line editor.
pub struct LineHelper {
    pub prompt_state: PromptState,
    pub pressed: PressedExitKey,
    pub screen: EditorScreen,
    pub console: Arc<Console>,
    pub completions: Arc<dyn LineCompleter>,
    /// Set when the editor is being dropped.
    pub is_closing: Arc<AtomicBool>,
    /// Notified once, when the prompt is drawn for the first time.
    pub ready: RefCell<Option<SyncSender<()>>>,
    pub updating: Cell<StatusLineMode>,
}

/// Panic payload that unwinds the editor thread out of `readline`.
struct EditorClosed;

impl Helper for LineHelper {}

impl Highlighter for LineHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.prompt_state.echo() {
            EchoMode::Hidden => mask(line).into(),
            EchoMode::Shown => strip_controls(line),
        }
    }

    /// Prints pending output before the prompt: only here is its row known to be empty.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, default: bool) -> Cow<'b, str> {
        if self.is_closing.load(Ordering::SeqCst) {
            // Does not run the panic hook. Unwinding is the only way out of `readline`.
            std::panic::resume_unwind(Box::new(EditorClosed));
        }
        let above = self.screen.before_prompt(self.updating.get());
        let seen = self.prompt_state.on_prompt_drawn();
        if seen == QuestionVisibility::NotYet {
            self.screen.redraw();
        }
        if let Some(ready) = self.ready.take() {
            // The receiver may have timed out.
            let _ = ready.try_send(());
        }
        let own = match self.prompt_state.field() {
            _ if !default => prompt.to_owned(),
            _ if seen == QuestionVisibility::NotYet => WAITING_PROMPT.to_owned(),
            Some(_) => paint(WARNING, QUESTION_PROMPT).to_string(),
            None => paint(NAME, PROMPT).to_string(),
        };
        format!("{above}{}", self.console.apply_color_choice(own)).into()
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        self.console.apply_color_choice(paint(if self.pressed.peek().is_some() { QUIET } else { BAD }, hint)).into()
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.updating.set(if kind == CmdKind::ForcedRefresh { StatusLineMode::Gone } else { StatusLineMode::Shown });
        self.prompt_state.echo() == EchoMode::Hidden
    }
}

/// Validation error of the current text.
pub struct ValidationHint(String);

impl Hint for ValidationHint {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for LineHelper {
    type Hint = ValidationHint;

    /// Called on every change of the line.
    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<ValidationHint> {
        self.prompt_state.on_line_changed(line);
        let field = self.prompt_state.field().filter(|_| !line.is_empty())?;
        let wrong = field.check.as_ref()?(line).err()?;
        Some(ValidationHint(format!("  {}", strip_controls(&wrong).replace('\n', " "))))
    }
}

impl Validator for LineHelper {
    /// Called on Enter. Any message, even an empty one, makes the editor redraw the line without the status line.
    fn validate(&self, line: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let is_answer = self.prompt_state.field().is_some();
        Ok(match self.pressed.peek() {
            Some(ExitKey::Interrupt) => ValidationResult::Valid(Some("^C".to_owned())),
            None if !is_answer && multiline::is_incomplete(line.input()) => ValidationResult::Incomplete,
            _ => ValidationResult::Valid(Some(String::new())),
        })
    }
}

impl Completer for LineHelper {
    type Candidate = Pair;

    /// Prints the candidates above the line: below, they would interfere with other output.
    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        let (start, candidates) = match self.prompt_state.field() {
            Some(field) => (0, choices(&field, typed)),
            None => self.completions.candidates(typed),
        };
        let extended = common_extension(&candidates, &typed[start..]);
        if extended.is_none() && !candidates.is_empty() {
            let width = self.console.stdout_width().unwrap_or(80);
            self.screen.print(self.console.apply_color_choice(paint(QUIET, format_candidates(&candidates, width))));
        }
        let pair = |text: String| Pair { display: text.clone(), replacement: text };
        Ok((start, extended.map(pair).into_iter().collect()))
    }
}

fn choices(field: &InputField, typed: &str) -> Vec<Candidate> {
    starting_with(typed, field.choices.iter().map(String::as_str)).map(Candidate::plain).collect()
}

/// Returns the replacement for the typed text: the only candidate, or the common prefix if it is longer.
fn common_extension(candidates: &[Candidate], typed: &str) -> Option<String> {
    let (first, rest) = candidates.split_first()?;
    let shared = rest.iter().fold(first.text.as_str(), |shared, other| common_prefix(shared, &other.text));
    (rest.is_empty() || shared.len() > typed.len()).then(|| shared.to_owned())
}

fn common_prefix<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    &one[..same.map(|(letter, _)| letter.len_utf8()).sum()]
}

/// Formats the candidates in columns.
fn format_candidates(candidates: &[Candidate], width: usize) -> String {
    let widest = candidates.iter().map(|candidate| candidate.shown.width()).max().unwrap_or(0) + 2;
    let columns = (width / widest).max(1);
    let mut text = String::new();
    for row in candidates.chunks(columns) {
        let cells = row.iter().map(|Candidate { shown, .. }| format!("{shown}{}", " ".repeat(widest - shown.width())));
        text.push_str(cells.collect::<String>().trim_end());
        text.push('\n');
    }
    text
}

/// Returns one dot per column of the line.
fn mask(line: &str) -> String {
    line.chars().map(|letter| "\u{2022}".repeat(letter.width().unwrap_or(0))).collect()
}

/// Removes control characters, for example from a paste, except newlines and tabs.
fn strip_controls(line: &str) -> Cow<'_, str> {
    let acts = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if line.contains(acts) { line.replace(acts, "").into() } else { line.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_prefix_is_completed() {
        for (candidates, typed, expected) in [
            (&["/mcp"][..], "/m", Some("/mcp")),
            (&["/mcp"], "/mcp", Some("/mcp")),
            (&["/tools", "/top"], "/t", Some("/to")),
            (&["/tools", "/top"], "/to", None),
            (&["\u{fc}a", "\u{fc}b"], "", Some("\u{fc}")),
            (&[], "x", None),
        ] {
            let candidates: Vec<Candidate> = candidates.iter().map(|text| Candidate::plain(text)).collect();
            assert_eq!(common_extension(&candidates, typed).as_deref(), expected, "{typed}");
        }
    }

    #[test]
    fn candidates_are_listed_in_columns() {
        let candidates = ["one", "three", "\u{6f22}"].map(Candidate::plain);
        for (width, expected) in
            [(80, "one    three  \u{6f22}\n"), (14, "one    three\n\u{6f22}\n"), (3, "one\nthree\n\u{6f22}\n")]
        {
            assert_eq!(format_candidates(&candidates, width), expected);
        }
    }

    #[test]
    fn secrets_are_masked_and_controls_are_stripped() {
        assert_eq!(mask("a\u{6f22}\u{301}"), "\u{2022}\u{2022}\u{2022}");
        assert_eq!(strip_controls("a\u{1b}[2Jb\u{9b}c\td\n"), "a[2Jbc\td\n");
    }
}
