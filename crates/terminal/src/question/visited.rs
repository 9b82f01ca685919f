//! Confirmation that the user is done with an opened page.

use wharf_spec::Untrusted;

use super::{Heard, Talk, Turn, one_of};
use crate::editor::Field;

/// Returns the prompt for a server's configured name.
pub fn prompt(server: &str) -> String {
    let server = Untrusted::new(server);
    format!("Press Enter once you are done there; {server} may also say so itself: ")
}

/// Dialog shown while a page is open. The page may stay open for minutes, so only Enter, `done` or end of input
/// confirms.
pub struct PageVisitDialog(String);

impl PageVisitDialog {
    pub fn new(server: &str) -> Self {
        Self(prompt(server))
    }
}

impl Talk for PageVisitDialog {
    type Answer = ();

    fn begin(&self) -> Turn<()> {
        Turn::ask("", &self.0)
    }

    fn hear(&mut self, heard: Heard) -> Turn<()> {
        match heard {
            Heard::End => Turn::Done(()),
            Heard::Line(line) if matches!(line.trim(), "" | "done") => Turn::Done(()),
            Heard::Line(_) | Heard::Garbled => Turn::ask("  That is neither Enter nor done.", &self.0),
        }
    }

    fn field(&self) -> Field {
        one_of(&["done"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_enter_and_done_say_that_somebody_is_done() {
        let line = |text: &str| Heard::Line(text.to_owned());
        for (heard, is_done) in [
            (line(""), true),
            (line(" done "), true),
            (Heard::End, true),
            (line("what is the tide?"), false),
            (line("/mcp"), false),
            (Heard::Garbled, false),
        ] {
            assert_eq!(PageVisitDialog::new("demo").hear(heard.clone()) == Turn::Done(()), is_done, "{heard:?}");
        }
        // Commands are not accepted where a fixed answer is expected.
        assert_eq!(PageVisitDialog::new("demo").field().choices, ["done"]);
    }
}
