//! Approval of a server configured by a project.

use wharf::Consent;

use super::{Heard, Talk, Turn, one_of, yes_or_no};
use crate::editor::Field;
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
}

/// Returns the prompt of the question.
pub fn prompt(name: &str) -> String {
    format!("Approve {}? It runs with your rights. [y/N] ", paint(NAME, name))
}

impl Talk for ApprovalDialog {
    type Answer = Consent;

    fn begin(&self) -> Turn<Consent> {
        Turn::ask(self.say.clone(), &self.prompt)
    }

    fn hear(&mut self, heard: Heard) -> Turn<Consent> {
        match heard {
            Heard::Line(line) if matches!(line.trim(), "l" | "later") => Turn::Done(Consent::Refused),
            heard => yes_or_no(heard, &self.prompt),
        }
    }

    fn field(&self) -> Field {
        one_of(&["yes", "no", "later"])
    }
}
