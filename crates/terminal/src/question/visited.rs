//! A page that was opened: whoever agreed to it says when they are done there.

use wharf_spec::Untrusted;

use super::{Heard, Talk, Turn, one_of};
use crate::editor::Field;

/// The words of it. The name is the server's here.
pub fn prompt(server: &str) -> String {
    let server = Untrusted::new(server);
    format!("Press Enter once you are done there; {server} may also say so itself: ")
}

/// The talk about an open page. It may take minutes, so that only what can be meant so says that the person is done.
pub struct VisitedTalk(String);

impl VisitedTalk {
    pub fn new(server: &str) -> Self {
        Self(prompt(server))
    }
}

impl Talk for VisitedTalk {
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
            assert_eq!(VisitedTalk::new("demo").hear(heard.clone()) == Turn::Done(()), is_done, "{heard:?}");
        }
        // Where something certain is to be typed, commands are none of it.
        assert_eq!(VisitedTalk::new("demo").field().choices, ["done"]);
    }
}
