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
    number: u64,
    /// Value of `number` when the prompt was last drawn, that is, the question the user has seen.
    seen: u64,
    begun: Option<LineOrigin>,
    ahead: TypeAhead,
}

/// Handling of keys pressed before the question was drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TypeAhead {
    /// Keys are accepted.
    #[default]
    Taken,
    /// Keys are ignored; the prompt has not been drawn yet.
    PassedOver,
    /// Keys are ignored until the next redraw, which the editor performs after it has read all pending input.
    Drained,
}

/// Start of the current line.
#[derive(Debug, Clone, Copy)]
struct LineOrigin {
    number: u64,
    echo: EchoMode,
    /// True if the line was begun as an answer.
    is_answer: bool,
}

/// An entered line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnteredLine {
    pub began: LineStart,
    pub fate: LineDisposition,
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
    Remembered,
    Forgotten,
    /// An answer to a closed question. It is discarded.
    ThrownAway,
}

impl PromptState {
    /// Sets or clears the question.
    pub fn set_field(&self, field: Option<InputField>) {
        let mut table = self.lock();
        if field.is_some() || table.field.is_some() {
            table.field = field.map(Arc::new);
            table.number += 1;
        }
    }

    /// Returns the input field of the question.
    pub fn field(&self) -> Option<Arc<InputField>> {
        self.lock().field.clone()
    }

    /// Starts a line. Keys typed ahead do not answer a question that has not been drawn.
    pub fn begin_line(&self) {
        let mut table = self.lock();
        let is_unseen = table.field.is_some() && table.seen != table.number;
        table.ahead = if is_unseen { TypeAhead::PassedOver } else { TypeAhead::Taken };
    }

    /// Records that the prompt is drawn below all printed output. Returns [`QuestionVisibility::NotYet`] if it must be drawn again
    /// before the user can answer.
    pub fn on_prompt_drawn(&self) -> QuestionVisibility {
        let mut table = self.lock();
        if table.ahead == TypeAhead::PassedOver {
            table.ahead = TypeAhead::Drained;
            return QuestionVisibility::NotYet;
        }
        (table.ahead, table.seen) = (TypeAhead::Taken, table.number);
        QuestionVisibility::Yes
    }

    /// Reports whether a key pressed now is ignored.
    pub fn ignores_keys(&self) -> bool {
        self.lock().ahead != TypeAhead::Taken
    }

    /// Records the current text of the line.
    pub fn on_line_changed(&self, line: &str) {
        let mut table = self.lock();
        let now = table.line_origin();
        table.begun = if line.is_empty() { None } else { table.begun.or(Some(now)) };
    }

    /// Returns the visibility of the line. It is hidden while a secret is requested, or if the line was begun as one.
    pub fn echo(&self) -> EchoMode {
        let table = self.lock();
        table.begun.map(|begun| begun.echo).filter(|echo| *echo == EchoMode::Hidden).unwrap_or_else(|| table.echo())
    }

    /// Ends the current line and starts the next one.
    pub fn end_line(&self) -> EnteredLine {
        let mut table = self.lock();
        let now = table.line_origin();
        let begun = table.begun.take().unwrap_or(now);
        let began = if begun.number == table.number { LineStart::After } else { LineStart::Before };
        let fate = match (began, begun.is_answer, &table.field) {
            (LineStart::Before, true, _) => LineDisposition::ThrownAway,
            (_, _, None) => LineDisposition::Remembered,
            (LineStart::Before, _, Some(field)) if field.echo == EchoMode::Shown => LineDisposition::Remembered,
            _ => LineDisposition::Forgotten,
        };
        EnteredLine { began, fate }
    }

    fn lock(&self) -> MutexGuard<'_, PromptInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PromptInner {
    /// Returns the start of a line begun now.
    fn line_origin(&self) -> LineOrigin {
        let is_answer = self.field.is_some() && self.seen == self.number;
        LineOrigin { number: self.seen, echo: self.echo(), is_answer }
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
    fn check(steps: &[PromptOperation], began: LineStart, fate: LineDisposition) {
        let asked = PromptState::default();
        for step in steps {
            match step {
                Ask(echo) => asked.set_field(Some(InputField { echo: *echo, check: None, choices: Vec::new() })),
                Withdraw => asked.set_field(None),
                See => assert_eq!(asked.on_prompt_drawn(), QuestionVisibility::Yes),
                Type(line) => asked.on_line_changed(line),
            }
        }
        assert_eq!(asked.end_line(), EnteredLine { began, fate });
    }

    #[test]
    fn answer_must_begin_after_the_question_is_drawn() {
        use EchoMode::{Hidden, Shown};
        use LineDisposition::{Forgotten, Remembered, ThrownAway};
        use LineStart::{After, Before};
        check(&[See, Type("a")], After, Remembered);
        check(&[See, Type("a"), Withdraw], After, Remembered);
        check(&[See, Ask(Shown), See, Type("y")], After, Forgotten);
        check(&[See, Ask(Shown), See], After, Forgotten);
        check(&[See, Ask(Shown)], Before, Remembered);
        check(&[See, Type("h"), Ask(Shown), See, Type("hi")], Before, Remembered);
        check(&[See, Ask(Shown), Type("y"), See, Type("yes")], Before, Remembered);
        check(&[See, Type("h"), Ask(Shown), See, Type(""), Type("y")], After, Forgotten);
        check(&[See, Ask(Shown), See, Type("y"), Ask(Shown), See], Before, ThrownAway);
        check(&[See, Ask(Shown), See, Type("y"), Withdraw, See], Before, ThrownAway);
        check(&[See, Type("h"), Ask(Hidden), See, Type("hi")], Before, Forgotten);
        check(&[See, Ask(Hidden), See, Type("s")], After, Forgotten);
        check(&[See, Ask(Hidden), See, Type("s"), Withdraw, See], Before, ThrownAway);
        check(&[See, Ask(Hidden), See, Type("s"), Ask(Shown), See], Before, ThrownAway);
    }

    #[test]
    fn line_begun_as_a_secret_stays_hidden() {
        let asked = PromptState::default();
        asked.set_field(Some(InputField { echo: EchoMode::Hidden, check: None, choices: Vec::new() }));
        asked.on_prompt_drawn();
        asked.on_line_changed("s");
        asked.set_field(None);
        assert_eq!(asked.echo(), EchoMode::Hidden);
        asked.end_line();
        assert_eq!(asked.echo(), EchoMode::Shown);
    }

    #[test]
    fn type_ahead_is_not_an_answer() {
        let asked = PromptState::default();
        asked.begin_line();
        assert_eq!((asked.ignores_keys(), asked.on_prompt_drawn()), (false, QuestionVisibility::Yes));
        asked.set_field(Some(InputField { echo: EchoMode::Shown, check: None, choices: Vec::new() }));
        asked.begin_line();
        assert_eq!((asked.ignores_keys(), asked.on_prompt_drawn()), (true, QuestionVisibility::NotYet));
        assert_eq!((asked.ignores_keys(), asked.on_prompt_drawn()), (true, QuestionVisibility::Yes));
        assert!(!asked.ignores_keys());
        asked.begin_line();
        assert!(!asked.ignores_keys());
    }
}
