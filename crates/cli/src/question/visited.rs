//! A page that was opened: whoever agreed to it says when they are done there.

use wharf_spec::Untrusted;

use super::{Heard, Talk, Turn};

/// The words of it. The name is the server's here.
pub fn prompt(server: &str) -> String {
    let server = Untrusted::new(server);
    format!("Press Enter once you are done there; {server} may also say so itself: ")
}

/// The talk about an open page: whatever is typed means that the person is done.
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

    fn hear(&mut self, _: Heard) -> Turn<()> {
        Turn::Done(())
    }
}
