//! The task of one subscription.

use std::sync::{Arc, Weak};

use super::Which;
use super::cadence::Cadence;
use super::memory::Memory;
use super::poll::{Missed, Subject, poll};
use crate::context::Context;
use crate::events::Event;

/// Whether to go on.
enum Then {
    GoOn,
    Stop,
}

/// Polls until there is no hope, or the host is gone. Stopped at any point, a poll under way is withdrawn.
pub(super) async fn run(context: Weak<Context>, id: String, subject: Subject) {
    let (mut cadence, mut memory) = (Cadence::new(subject.interval), Memory::default());
    while let Some(context) = context.upgrade() {
        let outcome = poll(&context, &subject).await;
        cadence.note(outcome.is_ok());
        if let Then::Stop = tell(&context, &id, &subject, &mut memory, outcome).await {
            context.polls.stop(&Which { id: Some(&id), ..Which::default() });
            return;
        }
        let wait = cadence.wait(|spread| context.jitter(spread));
        // Nobody's host is kept by what only waits.
        drop(context);
        tokio::time::sleep(wait).await;
    }
}

/// Tells what came of a poll: always to the events, and to the agent where it is news.
async fn tell(
    context: &Arc<Context>,
    id: &str,
    subject: &Subject,
    memory: &mut Memory,
    outcome: Result<wharf_json::Raw, Missed>,
) -> Then {
    let what = subject.target.told();
    let (note, then, outcome) = match outcome {
        Ok(result) => {
            let news = memory.note_result(&result, &context.options.limits.bounds);
            let note = match news {
                true => Some(format!("{id}: {what} says:\n{}", subject.target.text(&result, context).await)),
                false => None,
            };
            (note, Then::GoOn, Ok(result))
        }
        Err(Missed::Once(why)) => {
            let note = memory.note_failure().then(|| format!("{id}: {what} cannot be polled now: {why}"));
            (note, Then::GoOn, Err(why))
        }
        Err(Missed::ForGood(why)) => (Some(format!("{id} has ended: {what}: {why}")), Then::Stop, Err(why)),
    };
    if let Some(note) = note {
        context.tell_note(subject.server.as_str(), &note);
    }
    let target = subject.target.name().to_owned();
    context.crier.tell(Event::Polled { subscription: id.to_owned(), server: subject.server.clone(), target, outcome });
    then
}
