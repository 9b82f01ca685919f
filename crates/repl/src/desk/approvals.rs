//! Servers that a project brings along: looked at, asked about and approved as `wharf approve` does.

use std::sync::Arc;

use tokio::sync::oneshot;
use wharf::{AskReply, Consent};
use wharf_config::{Approvals, Config, Configured};

use super::queue::{Open, Question};
use wharf_terminal::approval::{self, Waiting};
use wharf_terminal::console::Console;
use wharf_terminal::failure::{Failure, render};
use wharf_terminal::question::ApprovalTalk;
use wharf_terminal::session::Session;

/// What was said about a server, and whether a yes could be kept.
pub struct Decided {
    waiting: Waiting,
    outcome: Result<Consent, Failure>,
}

/// Whether two are the same entry of the same file, whatever it says by now.
pub fn is_same_entry(one: &Configured, other: &Configured) -> bool {
    (&one.name, one.layer, &one.place.file) == (&other.name, other.layer, &other.place.file)
}

/// Looks for those of some servers that wait for approval. Blocks when it is called.
pub fn finder(
    session: &Session,
    servers: Vec<Configured>,
    config: Arc<Config>,
) -> impl FnOnce() -> Result<Vec<Waiting>, Failure> + use<> {
    let approvals = approval::approvals(session);
    let (project, around) = (session.configuration.places.project.clone(), session.surroundings.clone());
    move || {
        let found = approval::waiting(&servers, &approvals?, &project, &around)?;
        Ok(found.into_iter().map(|one| one.among(&config)).collect())
    }
}

/// The question about a server, and what is done when it was answered.
pub fn asked(session: &Session, waiting: Waiting) -> (Box<dyn Open>, impl Future<Output = Decided> + use<>) {
    let (reply, answer) = AskReply::pair();
    let name = waiting.server.name.as_str();
    let question = Question::new(name, ApprovalTalk::new(name, waiting.shown()), reply);
    let approvals = approval::approvals(session);
    (Box::new(question), decide(waiting, approvals, answer))
}

async fn decide(
    waiting: Waiting,
    approvals: Result<Approvals, Failure>,
    answer: oneshot::Receiver<Consent>,
) -> Decided {
    match answer.await.unwrap_or(Consent::Refused) {
        Consent::Refused => Decided { waiting, outcome: Ok(Consent::Refused) },
        Consent::Given => keep(waiting, approvals).await,
    }
}

async fn keep(waiting: Waiting, approvals: Result<Approvals, Failure>) -> Decided {
    let keeping = tokio::task::spawn_blocking(move || {
        let outcome = approvals.and_then(|approvals| waiting.approve(&approvals)).map(|()| Consent::Given);
        Decided { waiting, outcome }
    });
    keeping.await.expect("approving panics nowhere, and nobody aborts what cannot be aborted")
}

/// Says what came of it; gives the server's name where it is approved now.
pub fn told(console: &Console, decided: Decided) -> Option<String> {
    let Decided { waiting, outcome } = decided;
    let name = &waiting.server.name;
    match outcome {
        Ok(consent) => {
            console.say(approval::told(name, consent));
            (consent == Consent::Given).then(|| name.to_string())
        }
        Err(failure) => {
            console.say(render(&failure.about(name.as_str())));
            None
        }
    }
}
