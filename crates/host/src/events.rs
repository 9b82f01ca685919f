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
        /// What.
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
        /// What came of it, as a result of the protocol, or why nothing did.
        outcome: Result<Raw, String>,
    },
    /// Somebody is being asked something.
    Asked {
        /// On whose behalf.
        server: ServerName,
        /// What kind of question it is.
        kind: &'static str,
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

    pub fn tell(&self, event: Event) {
        if let Some(teller) = &*self.0.load() {
            // Nobody listens: nothing to tell.
            let _ = teller.send(Told { at: SystemTime::now(), event });
        }
    }

    /// Tells nothing any more; whoever listens hears that it is over.
    pub fn end(&self) {
        self.0.store(None);
    }
}
