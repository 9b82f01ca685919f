//! Polling: repeated tool calls and resource reads until they are stopped.
//!
//! Each subscription has one task that polls sequentially, so that polls never overlap. The tasks hold only a weak
//! reference to the host while they wait, and end with it. `backoff` schedules the polls, `change_detector`
//! decides which results are reported.

mod backoff;
mod change_detector;
mod poll;
mod task;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use wharf_spec::{ServerName, UntrustedText};

pub(crate) use backoff::{DEFAULT_POLL_INTERVAL, MAX_POLL_INTERVAL, MIN_POLL_INTERVAL};
pub(crate) use poll::{PollRequest, PollTarget};

use crate::context::HostContext;
use crate::server::Server;

/// Maximum number of subscriptions per host.
const MAX_POLL_SUBSCRIPTIONS: usize = 32;

/// The poll subscriptions of one host.
#[derive(Default)]
pub(crate) struct PollSubscriptions(Mutex<PollTable>);

#[derive(Default)]
struct PollTable {
    /// Number of subscriptions made so far, which is the number of the last one.
    made: u64,
    running: BTreeMap<u64, RunningPoll>,
}

struct RunningPoll {
    server: ServerName,
    generation: u64,
    target: String,
    task: AbortHandle,
}

/// A selector of subscriptions: those that match all of the given values.
#[derive(Debug, Default)]
pub(crate) struct PollSelector<'a> {
    pub id: Option<&'a str>,
    pub server: Option<&'a str>,
    pub target: Option<&'a str>,
}

/// Errors of beginning to poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollStartError {
    TooMany(usize),
    /// The server was removed in the meantime.
    TakenOff,
}

impl PollSubscriptions {
    /// Returns the number of subscriptions.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().running.len()
    }

    /// Returns one line per subscription, escaped.
    pub fn describe_all(&self) -> Vec<String> {
        let told = |(number, running): (&u64, &RunningPoll)| {
            format!(
                "{} ({} of {})",
                subscription_id(*number),
                UntrustedText::new(&*running.target).truncate(100),
                running.server
            )
        };
        self.lock().running.iter().map(told).collect()
    }

    /// Stops the selected subscriptions, including polls in progress. Returns their number.
    pub fn stop(&self, which: &PollSelector<'_>) -> usize {
        self.stop_where(|number, running| which.matches(number, running)).len()
    }

    fn stop_where(&self, wanted: impl Fn(u64, &RunningPoll) -> bool) -> Vec<u64> {
        let mut table = self.lock();
        let stopped = table.running.extract_if(.., |number, running| wanted(*number, running));
        stopped.inspect(|(_, running)| running.task.abort()).map(|(number, _)| number).collect()
    }

    fn lock(&self) -> MutexGuard<'_, PollTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostContext {
    /// Begins to poll, immediately for the first time, and returns the subscription's ID.
    pub fn begin_polling(self: &Arc<Self>, server: &Server, subject: PollRequest) -> Result<String, PollStartError> {
        let mut table = self.polls.lock();
        if table.running.len() >= MAX_POLL_SUBSCRIPTIONS {
            return Err(PollStartError::TooMany(MAX_POLL_SUBSCRIPTIONS));
        }
        // Under the lock, so that a server removed from now on finds this subscription.
        if !self.is_current(server) {
            return Err(PollStartError::TakenOff);
        }
        table.made += 1;
        let number = table.made;
        let target = subject.target.name().to_owned();
        // The task cannot end before it is in the table, because ending takes the lock.
        let task = self.spawn(task::run_poll_task(Arc::downgrade(self), subscription_id(number), subject));
        let running = RunningPoll { server: server.name.clone(), generation: server.generation, target, task };
        table.running.insert(number, running);
        Ok(subscription_id(number))
    }

    /// Stops all polling of a removed server and notifies the agent.
    pub fn end_polling(&self, server: &Server) {
        for number in self.polls.stop_where(|_, running| running.generation == server.generation) {
            let text = format!("{} ended because the server was removed", subscription_id(number));
            self.push_note(server.name.as_str(), &text);
        }
    }
}

impl PollSelector<'_> {
    fn matches(&self, number: u64, running: &RunningPoll) -> bool {
        self.id.is_none_or(|wanted| wanted == subscription_id(number))
            && self.server.is_none_or(|wanted| wanted == running.server.as_str())
            && self.target.is_none_or(|wanted| wanted == running.target)
    }
}

fn subscription_id(number: u64) -> String {
    format!("poll-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::PermittedAccess;
    use crate::events::{Event, EventDelivery};
    use crate::host::Host;

    #[tokio::test]
    async fn removing_a_server_ends_its_polls() {
        let name = ServerName::new("one").unwrap();
        let make = || {
            let server = wharf_client::ClosureServer::new("one", "1");
            server.resource("a:b", "b", "text/plain", || async { Ok("there".to_owned()) })
        };
        let host = Host::builder().local(name.clone(), make).start().await.unwrap();
        let (context, mut events) = (host.context(), host.events());
        let server = context.server("one").unwrap();
        let begin = || {
            let mut tool =
                wharf_tools::ToolDescription::new("SubscribePolling", "", wharf_json::RawJson::empty_object());
            (tool.risk, tool.permission) = (wharf_tools::ToolRisk::Low, wharf_tools::PermissionRequirement::NotNeeded);
            let permitted = PermittedAccess { tool: Arc::new(tool), by: wharf_tools::PermissionSource::Rules };
            let (arguments, caller) = (wharf_json::RawJson::empty_object(), wharf_tools::ToolCaller::agent());
            let target = PollTarget::Resource { uri: "a:b".to_owned(), arguments, permitted, caller };
            context.begin_polling(&server, PollRequest { server: name.clone(), target, interval: MAX_POLL_INTERVAL })
        };
        assert_eq!(begin().as_deref(), Ok("poll-1"));
        while let Some(EventDelivery::Event(told)) = events.next().await {
            if let Event::Polled { outcome, .. } = told.event {
                outcome.unwrap();
                break;
            }
        }
        assert_eq!(context.polls.len(), 1);
        context.servers.store(Arc::default());
        assert_eq!(begin(), Err(PollStartError::TakenOff));
        server.leave();
        let mut snapshot = server.snapshot.clone();
        while snapshot.changed().await.is_ok() {}
        assert_eq!(context.polls.len(), 0);
        let told = host.registry().notes().take_all().pop().unwrap();
        assert_eq!((&*told.from, &*told.text), ("one", "poll-1 ended because the server was removed"));
    }
}
