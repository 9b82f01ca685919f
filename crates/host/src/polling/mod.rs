//! What is looked at from time to time: tools called and resources read again and again, until somebody stops it.
//!
//! Each subscription has a task that makes one poll after the other, so that none overlap. The tasks hold nothing of
//! the host while they wait, and end with it. When to poll is decided in `cadence`, what is told in `memory`.

mod cadence;
mod memory;
mod poll;
mod task;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use wharf_spec::{ServerName, Untrusted};

pub(crate) use cadence::{DEFAULT, LONGEST, MINIMUM};
pub(crate) use poll::{PermittedBy, Subject, Target};

use crate::context::Context;
use crate::server::Server;

/// The most subscriptions of one host.
const MOST: usize = 32;

/// The subscriptions of one host.
#[derive(Default)]
pub(crate) struct Polls(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// How many there have been: the last one's number.
    made: u64,
    running: BTreeMap<u64, Running>,
}

struct Running {
    server: ServerName,
    generation: u64,
    target: String,
    task: AbortHandle,
}

/// Which subscriptions are meant: those that fit everything that is said.
#[derive(Debug, Default)]
pub(crate) struct Which<'a> {
    pub id: Option<&'a str>,
    pub server: Option<&'a str>,
    pub target: Option<&'a str>,
}

/// Why polling has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotBegun {
    TooMany(usize),
    /// The server was taken off meanwhile.
    TakenOff,
}

impl Polls {
    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().running.len()
    }

    /// Every subscription in a line, escaped.
    pub fn told(&self) -> Vec<String> {
        let told = |(number, running): (&u64, &Running)| {
            format!("{} ({} of {})", id(*number), Untrusted::new(&*running.target).shortened(100), running.server)
        };
        self.lock().running.iter().map(told).collect()
    }

    /// Stops those that are meant, polls under way included, and says how many there were.
    pub fn stop(&self, which: &Which<'_>) -> usize {
        self.stop_where(|number, running| which.fits(number, running)).len()
    }

    fn stop_where(&self, wanted: impl Fn(u64, &Running) -> bool) -> Vec<u64> {
        let mut table = self.lock();
        let stopped = table.running.extract_if(.., |number, running| wanted(*number, running));
        stopped.inspect(|(_, running)| running.task.abort()).map(|(number, _)| number).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Begins to poll, at once for the first time, and says what the subscription is called.
    pub fn begin_polling(self: &Arc<Self>, server: &Server, subject: Subject) -> Result<String, NotBegun> {
        let mut table = self.polls.lock();
        if table.running.len() >= MOST {
            return Err(NotBegun::TooMany(MOST));
        }
        // Under the lock: what is taken off from now on finds this subscription.
        if !self.is_current(server) {
            return Err(NotBegun::TakenOff);
        }
        table.made += 1;
        let number = table.made;
        let target = subject.target.name().to_owned();
        // It cannot end before it is in the table: ending takes the lock.
        let task = self.spawn(task::run(Arc::downgrade(self), id(number), subject));
        let running = Running { server: server.name.clone(), generation: server.generation, target, task };
        table.running.insert(number, running);
        Ok(id(number))
    }

    /// Stops whatever is polled on a server that is taken off, and says so.
    pub fn end_polling(&self, server: &Server) {
        for number in self.polls.stop_where(|_, running| running.generation == server.generation) {
            let text = format!("{} has ended, because the server was taken off", id(number));
            self.tell_note(server.name.as_str(), &text);
        }
    }
}

impl Which<'_> {
    fn fits(&self, number: u64, running: &Running) -> bool {
        self.id.is_none_or(|wanted| wanted == id(number))
            && self.server.is_none_or(|wanted| wanted == running.server.as_str())
            && self.target.is_none_or(|wanted| wanted == running.target)
    }
}

fn id(number: u64) -> String {
    format!("poll-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Permitted;
    use crate::events::{Event, Heard};
    use crate::host::Host;

    #[tokio::test]
    async fn a_server_that_is_taken_off_takes_its_subscriptions_along() {
        let name = ServerName::new("one").unwrap();
        let make = || {
            let server = wharf_client::ClosureServer::new("one", "1");
            server.resource("a:b", "b", "text/plain", || async { Ok("there".to_owned()) })
        };
        let host = Host::builder().local(name.clone(), make).start().await.unwrap();
        let (context, mut events) = (host.context(), host.events());
        let server = context.server("one").unwrap();
        let begin = || {
            let mut tool = wharf_tools::Description::new("SubscribePolling", "", wharf_json::Raw::empty_object());
            (tool.risk, tool.permission) = (wharf_tools::Risk::Low, wharf_tools::Permission::NotNeeded);
            let permitted = Permitted { tool: Arc::new(tool), by: PermittedBy::Rules };
            let (arguments, caller) = (wharf_json::Raw::empty_object(), wharf_tools::Caller::agent());
            let target = Target::Resource { uri: "a:b".to_owned(), arguments, permitted, caller };
            context.begin_polling(&server, Subject { server: name.clone(), target, interval: LONGEST })
        };
        assert_eq!(begin().as_deref(), Ok("poll-1"));
        while let Some(Heard::Event(told)) = events.next().await {
            if let Event::Polled { outcome, .. } = told.event {
                outcome.unwrap();
                break;
            }
        }
        assert_eq!(context.polls.len(), 1);
        context.servers.store(Arc::default());
        assert_eq!(begin(), Err(NotBegun::TakenOff));
        server.leave();
        let mut standing = server.standing.clone();
        while standing.changed().await.is_ok() {}
        assert_eq!(context.polls.len(), 0);
        let told = host.registry().notes().take().pop().unwrap();
        assert_eq!((&*told.from, &*told.text), ("one", "poll-1 has ended, because the server was taken off"));
    }
}
