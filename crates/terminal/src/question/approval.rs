//! Approval of a server configured by a project.

use wharf::ConsentAnswer;

use super::{Dialog, DialogInput, DialogStep, choice_field, consent_step};
use crate::editor::InputField;
use crate::style::{NAME, paint};

/// Dialog that asks for an approval.
pub struct ApprovalDialog {
    say: String,
    prompt: String,
}

impl ApprovalDialog {
    /// Takes the escaped server name and an escaped description of the command, which is shown in full.
    pub fn new(name: &str, what: String) -> Self {
        Self { say: what, prompt: prompt(name) }
    }

    /// Asks with another prompt, about a text that is on the screen already.
    pub fn with_prompt(prompt: String) -> Self {
        Self { say: String::new(), prompt }
    }
}

/// Returns the prompt of the question.
pub fn prompt(name: &str) -> String {
    format!("Approve {}? It runs with your permissions. [y/N] ", paint(NAME, name))
}

impl Dialog for ApprovalDialog {
    type Answer = ConsentAnswer;

    fn begin(&self) -> DialogStep<ConsentAnswer> {
        DialogStep::ask(self.say.clone(), &self.prompt)
    }

    fn on_input(&mut self, input: DialogInput) -> DialogStep<ConsentAnswer> {
        match input {
            DialogInput::Line(line) if matches!(line.trim(), "l" | "later") => DialogStep::Done(ConsentAnswer::Refused),
            input => consent_step(input, &self.prompt),
        }
    }

    fn field(&self) -> InputField {
        choice_field(&["yes", "no", "later"])
    }
}
