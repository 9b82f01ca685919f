//! Asks the questions of a host at the terminal, line by line, for commands without an editor.

use std::sync::Arc;

use wharf::{Ask, AskReply, Asker, RuleSink};

use super::{
    ElicitationContext, PermissionDialog, ScreenSize, UrlOpener, ask as ask_elicitation, has_terminal, run_dialog,
    wait_for_page_visit,
};
use crate::console::Console;
use crate::display_path::display_path;
use crate::rule_sink::{rule_file, rule_sink};
use crate::session::CommandSession;

/// An asker for permissions, forms and pages. Declines sampling and logins.
#[derive(Clone)]
pub struct TerminalAsker {
    console: Arc<Console>,
    opener: UrlOpener,
    /// Display path of the file that "always" writes to.
    rule_file: Option<String>,
}

impl TerminalAsker {
    /// Returns the asker and the receiver of its "always" rules, or `None` if stdin or stderr is not a terminal.
    pub fn open(session: &CommandSession) -> Option<(Arc<dyn Asker>, RuleSink)> {
        let asker = || Self {
            console: Arc::clone(&session.console),
            opener: UrlOpener::from_environment(&session.environment),
            rule_file: rule_file(session).map(|file| display_path(&file, &session.environment)),
        };
        has_terminal().then(|| (Arc::new(asker()) as Arc<dyn Asker>, rule_sink(session)))
    }

    async fn answer(self, ask: Ask) {
        let console = &self.console;
        match ask {
            Ask::Permission(ask, reply) => {
                let mut dialog = PermissionDialog::new(&ask, self.rule_file.as_deref(), ScreenSize::from_stderr());
                answer_unless_withdrawn(run_dialog(console, &mut dialog), reply).await;
            }
            Ask::Elicitation(ask, reply) => {
                let server = ask.server.as_str();
                let asking = ElicitationContext { console, server, opener: &self.opener, allow_secrets: false };
                answer_unless_withdrawn(ask_elicitation(&asking, &ask.question), reply).await;
            }
            Ask::Page(ask, reply) => {
                answer_unless_withdrawn(wait_for_page_visit(console, ask.server.as_str()), reply).await;
            }
            // Dropping the reply declines the question.
            _ => {}
        }
    }
}

impl Asker for TerminalAsker {
    fn ask(&self, ask: Ask) {
        // Ends with its answer, or when the caller no longer waits for it.
        tokio::spawn(self.clone().answer(ask));
    }

    fn shows_pages(&self) -> bool {
        true
    }
}

/// Sends the answer. Abandons the question if the caller no longer waits for it.
async fn answer_unless_withdrawn<T>(answer: impl Future<Output = T>, mut reply: AskReply<T>) {
    let answer = tokio::select! {
        answer = answer => answer,
        () = reply.wait_withdrawn() => return,
    };
    reply.answer(answer);
}
