//! Approval of project servers, with the same checks and storage as `wharf approve`.

use std::sync::Arc;

use tokio::sync::oneshot;
use wharf::{AskReply, ConsentAnswer};
use wharf_config::{ApprovalStore, Config, ConfiguredServer};

use super::queue::{DialogQuestion, PendingQuestion};
use wharf_terminal::approval::{self, Waiting};
use wharf_terminal::console::Console;
use wharf_terminal::failure::{Failure, render_failure};
use wharf_terminal::question::ApprovalDialog;
use wharf_terminal::session::CommandSession;

/// Answer about a server, and the result of saving an approval.
pub struct ApprovalResult {
    waiting: Waiting,
    outcome: Result<ConsentAnswer, Failure>,
}

/// Reports whether two entries are the same entry of the same file, regardless of their content.
pub fn is_same_entry(one: &ConfiguredServer, other: &ConfiguredServer) -> bool {
    (&one.name, one.layer, &one.place.file) == (&other.name, other.layer, &other.place.file)
}

/// Returns a function that finds the servers that need approval. Calling it blocks.
pub fn approval_finder(
    session: &CommandSession,
    servers: Vec<ConfiguredServer>,
    config: Arc<Config>,
) -> impl FnOnce() -> Result<Vec<Waiting>, Failure> + use<> {
    let approvals = approval::open_approvals(session);
    let (project, environment) = (session.configuration.places.project.clone(), session.environment.clone());
    move || {
        let found = approval::pending_approvals(&servers, &approvals?, &project, &environment)?;
        Ok(found.into_iter().map(|one| one.with_effects(&config)).collect())
    }
}

/// Returns the question about a server, and a future that handles the answer.
pub fn approval_question(
    session: &CommandSession,
    waiting: Waiting,
) -> (Box<dyn PendingQuestion>, impl Future<Output = ApprovalResult> + use<>) {
    let (reply, answer) = AskReply::pair();
    let name = waiting.server.name.as_str();
    let question = DialogQuestion::about(name, ApprovalDialog::new(name, waiting.review_text()), reply);
    let approvals = approval::open_approvals(session);
    (Box::new(question), await_answer(waiting, approvals, answer))
}

async fn await_answer(
    waiting: Waiting,
    approvals: Result<ApprovalStore, Failure>,
    answer: oneshot::Receiver<ConsentAnswer>,
) -> ApprovalResult {
    match answer.await.unwrap_or(ConsentAnswer::Refused) {
        ConsentAnswer::Refused => ApprovalResult { waiting, outcome: Ok(ConsentAnswer::Refused) },
        ConsentAnswer::Given => save_approval(waiting, approvals).await,
    }
}

async fn save_approval(waiting: Waiting, approvals: Result<ApprovalStore, Failure>) -> ApprovalResult {
    let (done, saved) = oneshot::channel();
    wharf_threads::run_in_background(move || {
        let outcome = approvals.and_then(|approvals| waiting.approve(&approvals)).map(|()| ConsentAnswer::Given);
        let _ = done.send(ApprovalResult { waiting, outcome });
    });
    saved.await.expect("saving an approval does not panic, and background work is not aborted")
}

/// Prints the result. Returns the server's name if it is now approved.
pub fn print_result(console: &Console, decided: ApprovalResult) -> Option<String> {
    let ApprovalResult { waiting, outcome } = decided;
    let name = &waiting.server.name;
    match outcome {
        Ok(consent) => {
            console.say(approval::decision_line(name, consent));
            (consent == ConsentAnswer::Given).then(|| name.to_string())
        }
        Err(failure) => {
            console.say(render_failure(&failure.about_server(name.as_str())));
            None
        }
    }
}
