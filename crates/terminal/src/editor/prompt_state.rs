//! State of the prompt: the open question and the start of the current line. Shared by the event loop and the editor
//! thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{EchoMode, InputField, LineStart};

/// Shared prompt state. Clones share the same state.
#[derive(Clone, Default)]
pub struct PromptState(Arc<Mutex<PromptInner>>);

#[derive(Default)]
struct PromptInner {
    field: Option<Arc<InputField>>,
    /// Incremented on every change of the field.
    question_number: u64,
    /// Value of `question_number` when the prompt was last drawn, that is, the question the user has seen.
    seen_question: u64,
    begun: Option<LineOrigin>,
    type_ahead: TypeAhead,
}

/// Handling of keys pressed before the question was drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TypeAhead {
    /// Keys are accepted.
    #[default]
    Accept,
    /// Keys are ignored; the prompt has not been drawn yet.
    IgnoreUntilDrawn,
    /// Keys are ignored until the next redraw, which the editor performs after it has read all pending input.
    IgnoreUntilRedrawn,
}

/// Start of the current line.
#[derive(Debug, Clone, Copy)]
struct LineOrigin {
    question_number: u64,
    echo: EchoMode,
    /// True if the line was begun as an answer.
    is_answer: bool,
}

/// An entered line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnteredLine {
    pub began: LineStart,
    pub disposition: LineDisposition,
}

/// Visibility of the question to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionVisibility {
    Yes,
    NotYet,
}

/// Handling of an entered line besides delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineDisposition {
    SaveToHistory,
    Skip,
    /// An answer to a closed question. It is discarded.
    Discard,
}

impl PromptState {
    /// Sets or clears the question.
    pub fn set_field(&self, field: Option<InputField>) {
        let mut state = self.lock();
        if field.is_some() || state.field.is_some() {
            state.field = field.map(Arc::new);
            state.question_number += 1;
        }
    }

    /// Returns the input field of the question.
    pub fn field(&self) -> Option<Arc<InputField>> {
        self.lock().field.clone()
    }

    /// Starts a line. Keys typed ahead do not answer a question that has not been drawn.
    pub fn begin_line(&self) {
        let mut state = self.lock();
        let is_unseen = state.field.is_some() && state.seen_question != state.question_number;
        state.type_ahead = if is_unseen { TypeAhead::IgnoreUntilDrawn } else { TypeAhead::Accept };
    }

    /// Records that the prompt is drawn below all printed output. Returns [`QuestionVisibility::NotYet`] if it must be drawn again
    /// before the user can answer.
    pub fn on_prompt_drawn(&self) -> QuestionVisibility {
        let mut state = self.lock();
        if state.type_ahead == TypeAhead::IgnoreUntilDrawn {
            state.type_ahead = TypeAhead::IgnoreUntilRedrawn;
            return QuestionVisibility::NotYet;
        }
        (state.type_ahead, state.seen_question) = (TypeAhead::Accept, state.question_number);
        QuestionVisibility::Yes
    }

    /// Reports whether a key pressed now is ignored.
    pub fn ignores_keys(&self) -> bool {
        self.lock().type_ahead != TypeAhead::Accept
    }

    /// Records the current text of the line.
    pub fn on_line_changed(&self, line: &str) {
        let mut state = self.lock();
        let now = state.line_origin();
        state.begun = if line.is_empty() { None } else { state.begun.or(Some(now)) };
    }

    /// Returns the visibility of the line. It is hidden while a secret is requested, or if the line was begun as one.
    pub fn echo(&self) -> EchoMode {
        let state = self.lock();
        state.begun.map(|begun| begun.echo).filter(|echo| *echo == EchoMode::Hidden).unwrap_or_else(|| state.echo())
    }

    /// Ends the current line and starts the next one.
    pub fn end_line(&self) -> EnteredLine {
        let mut state = self.lock();
        let now = state.line_origin();
        let begun = state.begun.take().unwrap_or(now);
        let began = if begun.question_number == state.question_number { LineStart::After } else { LineStart::Before };
        let disposition = match (began, begun.is_answer, &state.field) {
            (LineStart::Before, true, _) => LineDisposition::Discard,
            (_, _, None) => LineDisposition::SaveToHistory,
            (LineStart::Before, _, Some(field)) if field.echo == EchoMode::Shown => LineDisposition::SaveToHistory,
            _ => LineDisposition::Skip,
        };
        EnteredLine { began, disposition }
    }

    fn lock(&self) -> MutexGuard<'_, PromptInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PromptInner {
    /// Returns the start of a line begun now.
    fn line_origin(&self) -> LineOrigin {
        let is_answer = self.field.is_some() && self.seen_question == self.question_number;
        LineOrigin { question_number: self.seen_question, echo: self.echo(), is_answer }
    }

    fn echo(&self) -> EchoMode {
        self.field.as_ref().map_or(EchoMode::Shown, |field| field.echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation on the prompt state.
    enum PromptOperation {
        Ask(EchoMode),
        Withdraw,
        See,
        Type(&'static str),
    }
    use PromptOperation::{Ask, See, Type, Withdraw};

    #[track_caller]
    fn check(steps: &[PromptOperation], began: LineStart, disposition: LineDisposition) {
        let state = PromptState::default();
        for step in steps {
            match step {
                Ask(echo) => state.set_field(Some(InputField { echo: *echo, check: None, choices: Vec::new() })),
                Withdraw => state.set_field(None),
                See => assert_eq!(state.on_prompt_drawn(), QuestionVisibility::Yes),
                Type(line) => state.on_line_changed(line),
            }
        }
        assert_eq!(state.end_line(), EnteredLine { began, disposition });
    }

    #[test]
    fn answer_must_begin_after_the_question_is_drawn() {
        use EchoMode::{Hidden, Shown};
        use LineDisposition::{Discard, SaveToHistory, Skip};
        use LineStart::{After, Before};
        check(&[See, Type("a")], After, SaveToHistory);
        check(&[See, Type("a"), Withdraw], After, SaveToHistory);
        check(&[See, Ask(Shown), See, Type("y")], After, Skip);
        check(&[See, Ask(Shown), See], After, Skip);
        check(&[See, Ask(Shown)], Before, SaveToHistory);
        check(&[See, Type("h"), Ask(Shown), See, Type("hi")], Before, SaveToHistory);
        check(&[See, Ask(Shown), Type("y"), See, Type("yes")], Before, SaveToHistory);
        check(&[See, Type("h"), Ask(Shown), See, Type(""), Type("y")], After, Skip);
        check(&[See, Ask(Shown), See, Type("y"), Ask(Shown), See], Before, Discard);
        check(&[See, Ask(Shown), See, Type("y"), Withdraw, See], Before, Discard);
        check(&[See, Type("h"), Ask(Hidden), See, Type("hi")], Before, Skip);
        check(&[See, Ask(Hidden), See, Type("s")], After, Skip);
        check(&[See, Ask(Hidden), See, Type("s"), Withdraw, See], Before, Discard);
        check(&[See, Ask(Hidden), See, Type("s"), Ask(Shown), See], Before, Discard);
    }

    #[test]
    fn line_begun_as_a_secret_stays_hidden() {
        let state = PromptState::default();
        state.set_field(Some(InputField { echo: EchoMode::Hidden, check: None, choices: Vec::new() }));
        state.on_prompt_drawn();
        state.on_line_changed("s");
        state.set_field(None);
        assert_eq!(state.echo(), EchoMode::Hidden);
        state.end_line();
        assert_eq!(state.echo(), EchoMode::Shown);
    }

    #[test]
    fn type_ahead_is_not_an_answer() {
        let state = PromptState::default();
        state.begin_line();
        assert_eq!((state.ignores_keys(), state.on_prompt_drawn()), (false, QuestionVisibility::Yes));
        state.set_field(Some(InputField { echo: EchoMode::Shown, check: None, choices: Vec::new() }));
        state.begin_line();
        assert_eq!((state.ignores_keys(), state.on_prompt_drawn()), (true, QuestionVisibility::NotYet));
        assert_eq!((state.ignores_keys(), state.on_prompt_drawn()), (true, QuestionVisibility::Yes));
        assert!(!state.ignores_keys());
        state.begin_line();
        assert!(!state.ignores_keys());
    }
}
