//! What happens in a host, for whoever wants to hear it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use tokio::sync::broadcast;
use wharf_json::Raw;
use wharf_spec::{ServerName, ToolId};
use wharf_wire::{LogMessage, Progress};

use crate::supervise::State;
use crate::trouble::Trouble;

/// Events kept for a reader that is slow; older ones are dropped for it, and it is told how many.
const KEPT: usize = 1024;
/// The most bytes of a server's that one event keeps.
const LONGEST: usize = 16 << 10;
/// The same where a server decides how many events there are.
const LONGEST_REMARK: usize = 4 << 10;

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A server stands elsewhere than before.
    State {
        /// Which server.
        server: ServerName,
        /// Where it stands.
        state: State,
        /// What is wrong with it, if anything.
        trouble: Option<Arc<Trouble>>,
    },
    /// What a server offers has changed.
    Catalog {
        /// Which server.
        server: ServerName,
        /// How many tools it offers now.
        tools: usize,
    },
    /// A call has got on.
    Progress {
        /// What was called.
        tool: ToolId,
        /// How far it is: untrusted.
        progress: Progress,
    },
    /// A server logged something: untrusted.
    Log {
        /// Which server.
        server: ServerName,
        /// What. Data of more than 4 KiB is a JSON string of its beginning.
        message: LogMessage,
    },
    /// A resource that is watched has changed.
    ResourceUpdated {
        /// Whose it is.
        server: ServerName,
        /// Which: untrusted.
        uri: String,
    },
    /// Something that is looked at from time to time was looked at.
    Polled {
        /// The subscription.
        subscription: String,
        /// Which server was asked.
        server: ServerName,
        /// The tool or the resource.
        target: String,
        /// What came of it, as a result of the protocol, or why nothing did. A result of more than 16 KiB is a JSON
        /// string of its beginning.
        outcome: Result<Raw, String>,
    },
    /// Somebody is being asked something.
    Asked {
        /// On whose behalf.
        server: ServerName,
        /// What kind of question it is.
        kind: &'static str,
    },
    /// Somebody has logged in to a server.
    LoggedIn {
        /// Which server.
        server: ServerName,
    },
    /// A call has ended.
    Called {
        /// What was called.
        tool: ToolId,
        /// How long it took.
        duration: Duration,
        /// Whether it came to a result that is no error.
        success: bool,
    },
    /// The audit log cannot be written.
    AuditFailed {
        /// Why.
        text: String,
    },
    /// What people approved or released could not be written down: it holds only as long as the host runs.
    NotKept {
        /// Why.
        text: String,
    },
    /// Something is not as it should be, but goes on.
    Warning {
        /// Whose it is.
        server: ServerName,
        /// What; escaped.
        text: String,
    },
}

/// An event and when it happened.
#[derive(Debug, Clone)]
pub struct Told {
    /// When.
    pub at: SystemTime,
    /// What.
    pub event: Event,
}

/// A reader of events. It keeps up, or is told how many it missed; nobody ever waits for it.
pub struct Events(broadcast::Receiver<Told>);

/// What a reader is given.
#[derive(Debug, Clone)]
pub enum Heard {
    /// An event.
    Event(Told),
    /// This many events were dropped, because the reader was slow.
    Missed(u64),
}

impl Events {
    /// The next event; nothing once the host is closed. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.0.recv().await {
            Ok(told) => Some(Heard::Event(told)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Heard::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Where events come from.
pub(crate) struct Crier(ArcSwapOption<broadcast::Sender<Told>>);

impl Crier {
    pub fn new() -> Self {
        Self(ArcSwapOption::from_pointee(broadcast::channel(KEPT).0))
    }

    pub fn listen(&self) -> Events {
        let listener = self.0.load().as_ref().map(|teller| teller.subscribe());
        // After the end: a channel that is closed already.
        Events(listener.unwrap_or_else(|| broadcast::channel(1).1))
    }

    /// Whether anybody hears it.
    pub fn is_heard(&self) -> bool {
        self.0.load().as_ref().is_some_and(|teller| teller.receiver_count() > 0)
    }

    /// Tells whoever listens. What servers say is copied and bounded: events wait in a ring, and a piece of a message
    /// would keep the whole of it.
    pub fn tell(&self, event: Event) {
        if let Some(teller) = self.0.load().as_ref().filter(|teller| teller.receiver_count() > 0) {
            // Fails where the last one has just stopped listening.
            let _ = teller.send(Told { at: SystemTime::now(), event: bounded(event) });
        }
    }

    /// Tells nothing any more; whoever listens hears that it is over.
    pub fn end(&self) {
        self.0.store(None);
    }
}

fn bounded(mut event: Event) -> Event {
    match &mut event {
        Event::Progress { progress, .. } => {
            progress.token = copied(&progress.token, LONGEST_REMARK);
            progress.message.iter_mut().for_each(|message| shorten(message, LONGEST_REMARK));
        }
        Event::Log { message, .. } => {
            message.data = copied(&message.data, LONGEST_REMARK);
            message.logger.iter_mut().for_each(|logger| shorten(logger, LONGEST_REMARK));
        }
        Event::ResourceUpdated { uri, .. } => shorten(uri, LONGEST),
        Event::Polled { target, outcome, .. } => {
            shorten(target, LONGEST);
            match outcome {
                Ok(result) => *result = copied(result, LONGEST),
                Err(why) => shorten(why, LONGEST),
            }
        }
        _ => {}
    }
    event
}

fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
        text.shrink_to_fit();
    }
}

/// The same value in memory of its own, or the beginning of its text.
fn copied(value: &Raw, most: usize) -> Raw {
    let text = value.get();
    if text.len() <= most {
        return Raw::known(text.to_owned());
    }
    let beginning = format!("{}…", &text[..text.floor_char_boundary(most)]);
    Raw::of(&beginning).unwrap_or_else(|_| Raw::known("null"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::LogLevel;

    async fn told(event: Event) -> Event {
        let crier = Crier::new();
        let mut events = crier.listen();
        crier.tell(event);
        let Some(Heard::Event(told)) = events.next().await else { panic!("nothing was told") };
        told.event
    }

    #[tokio::test]
    async fn an_event_keeps_little_of_what_a_server_says() {
        let server = ServerName::new("one").unwrap();
        for (length, whole) in [(10, true), (1 << 20, false)] {
            let text = "ü".repeat(length);
            let data = Raw::of(&text).unwrap();
            let message = LogMessage { level: LogLevel::Info, logger: Some(text.clone()), data: data.clone() };
            let Event::Log { message, .. } = told(Event::Log { server: server.clone(), message }).await else {
                panic!("another event")
            };
            assert_eq!((message.data == data, message.logger == Some(text.clone())), (whole, whole));
            let most = LONGEST_REMARK + 100;
            assert!(message.data.as_bytes().len() < most && message.logger.unwrap().len() < most);
            assert_ne!(message.data.as_bytes().as_ptr(), data.as_bytes().as_ptr());
            let updated = told(Event::ResourceUpdated { server: server.clone(), uri: text.clone() }).await;
            assert!(matches!(updated, Event::ResourceUpdated { uri, .. } if (uri == text) == whole));
            let (subscription, target) = ("poll-1".to_owned(), "t".to_owned());
            let polled = Event::Polled { subscription, server: server.clone(), target, outcome: Ok(data.clone()) };
            assert!(matches!(told(polled).await, Event::Polled { outcome: Ok(it), .. } if (it == data) == whole));
        }
    }
}
