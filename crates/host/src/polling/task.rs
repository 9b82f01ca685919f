//! The task of one poll subscription.

use std::sync::{Arc, Weak};

use super::Which;
use super::cadence::PollBackoff;
use super::memory::Memory;
use super::poll::{Missed, Subject, poll};
use crate::context::Context;
use crate::events::Event;

/// Continuation of a poll task.
enum AfterPoll {
    GoOn,
    Stop,
}

/// Polls until a permanent error occurs or the host is dropped. Aborting the task cancels a poll in progress.
pub(super) async fn run(context: Weak<Context>, id: String, subject: Subject) {
    let (mut cadence, mut memory) = (PollBackoff::new(subject.interval), Memory::default());
    while let Some(context) = context.upgrade() {
        let outcome = poll(&context, &subject).await;
        cadence.note(outcome.is_ok());
        if let AfterPoll::Stop = tell(&context, &id, &subject, &mut memory, outcome).await {
            context.polls.stop(&Which { id: Some(&id), ..Which::default() });
            return;
        }
        let wait = cadence.wait(|spread| context.jitter(spread));
        // A waiting task must not keep the host alive.
        drop(context);
        tokio::time::sleep(wait).await;
    }
}

/// Reports the outcome of a poll: always as an event, and as a note to the agent if it is new.
async fn tell(
    context: &Arc<Context>,
    id: &str,
    subject: &Subject,
    memory: &mut Memory,
    outcome: Result<wharf_json::RawJson, Missed>,
) -> AfterPoll {
    let what = subject.target.told();
    let (note, then, outcome) = match outcome {
        Ok(result) => {
            let news = memory.note_result(&result, &context.options.limits.bounds);
            let note = match news {
                true => Some(format!("{id}: {what} says:\n{}", subject.target.text(&result, context).await)),
                false => None,
            };
            (note, AfterPoll::GoOn, Ok(result))
        }
        Err(Missed::Once(why)) => {
            let note = memory.note_failure().then(|| format!("{id}: {what} cannot be polled now: {why}"));
            (note, AfterPoll::GoOn, Err(why))
        }
        Err(Missed::ForGood(why)) => (Some(format!("{id} has ended: {what}: {why}")), AfterPoll::Stop, Err(why)),
    };
    if let Some(note) = note {
        context.tell_note(subject.server.as_str(), &note);
    }
    let target = subject.target.name().to_owned();
    context.crier.tell(Event::Polled { subscription: id.to_owned(), server: subject.server.clone(), target, outcome });
    then
}
