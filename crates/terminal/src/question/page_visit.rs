//! Confirmation that the user is done with an opened page.

use wharf_spec::UntrustedText;

use super::{Dialog, DialogInput, DialogStep, choice_field};
use crate::editor::InputField;

/// Returns the prompt for a server's configured name.
pub fn prompt(server: &str) -> String {
    let server = UntrustedText::new(server);
    format!("Press Enter when you are done in the browser ({server} may also report it): ")
}

/// Dialog shown while a page is open. The page may stay open for minutes, so only Enter, `done` or end of input
/// confirms.
pub struct PageVisitDialog(String);

impl PageVisitDialog {
    pub fn new(server: &str) -> Self {
        Self(prompt(server))
    }
}

impl Dialog for PageVisitDialog {
    type Answer = ();

    fn begin(&self) -> DialogStep<()> {
        DialogStep::ask("", &self.0)
    }

    fn on_input(&mut self, input: DialogInput) -> DialogStep<()> {
        match input {
            DialogInput::End => DialogStep::Done(()),
            DialogInput::Line(line) if matches!(line.trim(), "" | "done") => DialogStep::Done(()),
            DialogInput::Line(_) | DialogInput::Garbled => DialogStep::ask("  Press Enter or type `done`.", &self.0),
        }
    }

    fn field(&self) -> InputField {
        choice_field(&["done"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_enter_and_done_confirm() {
        let line = |text: &str| DialogInput::Line(text.to_owned());
        for (input, is_done) in [
            (line(""), true),
            (line(" done "), true),
            (DialogInput::End, true),
            (line("what is the tide?"), false),
            (line("/mcp"), false),
            (DialogInput::Garbled, false),
        ] {
            assert_eq!(
                PageVisitDialog::new("demo").on_input(input.clone()) == DialogStep::Done(()),
                is_done,
                "{input:?}"
            );
        }
        // Commands are not accepted where a fixed answer is expected.
        assert_eq!(PageVisitDialog::new("demo").field().choices, ["done"]);
    }
}
