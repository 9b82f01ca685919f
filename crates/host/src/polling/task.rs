//! The task of one poll subscription.

use std::sync::{Arc, Weak};

use super::PollSelector;
use super::backoff::PollBackoff;
use super::change_detector::ChangeDetector;
use super::poll::{PollError, PollRequest, poll};
use crate::context::HostContext;
use crate::events::Event;

/// Continuation of a poll task.
enum AfterPoll {
    GoOn,
    Stop,
}

/// Polls until a permanent error occurs or the host is dropped. Aborting the task cancels a poll in progress.
pub(super) async fn run_poll_task(context: Weak<HostContext>, id: String, subject: PollRequest) {
    let (mut cadence, mut memory) = (PollBackoff::new(subject.interval), ChangeDetector::default());
    while let Some(context) = context.upgrade() {
        let outcome = poll(&context, &subject).await;
        cadence.record(outcome.is_ok());
        if let AfterPoll::Stop = report_poll(&context, &id, &subject, &mut memory, outcome).await {
            context.polls.stop(&PollSelector { id: Some(&id), ..PollSelector::default() });
            return;
        }
        let wait = cadence.next_wait(|spread| context.jitter(spread));
        // A waiting task must not keep the host alive.
        drop(context);
        tokio::time::sleep(wait).await;
    }
}

/// Reports the outcome of a poll: always as an event, and as a note to the agent if it is new.
async fn report_poll(
    context: &Arc<HostContext>,
    id: &str,
    subject: &PollRequest,
    memory: &mut ChangeDetector,
    outcome: Result<wharf_json::RawJson, PollError>,
) -> AfterPoll {
    let what = subject.target.describe();
    let (note, then, outcome) = match outcome {
        Ok(result) => {
            let news = memory.record_result(&result, &context.options.limits.bounds);
            let note = match news {
                true => Some(format!("{id}: {what} returned:\n{}", subject.target.text(&result, context).await)),
                false => None,
            };
            (note, AfterPoll::GoOn, Ok(result))
        }
        Err(PollError::Once(why)) => {
            let note =
                memory.record_failure().then(|| format!("{id}: polling {what} failed (it will be retried): {why}"));
            (note, AfterPoll::GoOn, Err(why))
        }
        Err(PollError::ForGood(why)) => (Some(format!("{id} ended: {what}: {why}")), AfterPoll::Stop, Err(why)),
    };
    if let Some(note) = note {
        context.push_note(subject.server.as_str(), &note);
    }
    let target = subject.target.name().to_owned();
    context.event_bus.publish(Event::Polled {
        subscription: id.to_owned(),
        server: subject.server.clone(),
        target,
        outcome,
    });
    then
}
