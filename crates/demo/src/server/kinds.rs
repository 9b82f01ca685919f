//! How servers come about: for a connection, for a session, and for a single request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{DemoServer, Options};
use crate::alarm::Alarm;
use crate::calls::Calls;
use crate::logging::Logging;
use crate::negotiation::Negotiation;
use crate::revision::Revision;

/// The arguments that a request repeats in its headers: the headers' names in lower case, and their values.
pub type Mirrored = Vec<(String, String)>;

/// What all servers of one process have in common.
#[derive(Clone)]
pub struct Nature {
    pub name: String,
    /// The names of the environment variables, sorted.
    pub environment: Arc<[String]>,
    /// How many more tool calls to survive.
    pub calls_left: Arc<Mutex<Option<u32>>>,
    pub tide: Option<Duration>,
}

impl DemoServer {
    /// Makes a server that speaks every revision; fails, with a sentence, for a pinned one that does not exist.
    pub fn new(options: Options, environment: Vec<String>) -> Result<Self, String> {
        let pinned = match &options.revision {
            None => None,
            Some(text) => Some(Revision::parse(text).ok_or_else(|| unknown_revision(text))?),
        };
        let nature = Nature {
            name: options.name,
            environment: environment.into(),
            calls_left: Arc::new(Mutex::new(options.crash_after)),
            tide: options.tide,
        };
        Ok(Self::with(nature, Negotiation::new(pinned)))
    }

    /// Makes a server for one request of a stateless revision, if those are spoken.
    ///
    /// All such servers share the port, the tasks, the rounds of calls and who listens.
    pub fn for_request(&self, mirrored: Mirrored) -> Option<Self> {
        Some(Self {
            mirrored,
            rounds: Arc::clone(&self.rounds),
            tasks: Arc::clone(&self.tasks),
            subscriptions: Arc::clone(&self.subscriptions),
            port: Arc::clone(&self.port),
            ..Self::with(self.nature.clone(), self.negotiation.stateless()?)
        })
    }

    /// Makes a server for one session of the handshake revisions, if those are spoken.
    pub fn for_session(&self) -> Option<Self> {
        Some(Self::with(self.nature.clone(), self.negotiation.handshake()?))
    }

    /// A server that shares nothing but its nature.
    fn with(nature: Nature, negotiation: Negotiation) -> Self {
        Self {
            connection: fresh_connection(),
            nature,
            mirrored: Mirrored::new(),
            negotiation,
            capabilities: Mutex::default(),
            calls: Calls::default(),
            questions: Arc::default(),
            rounds: Arc::default(),
            tasks: Arc::default(),
            subscriptions: Arc::default(),
            logging: Logging::default(),
            port: Arc::default(),
            closing: Alarm::default(),
        }
    }
}

fn fresh_connection() -> u64 {
    static MADE: AtomicU64 = AtomicU64::new(0);
    MADE.fetch_add(1, Ordering::Relaxed)
}

fn unknown_revision(text: &str) -> String {
    let known = Revision::ALL.map(Revision::as_str).join(", ");
    format!("there is no revision `{text}` of the protocol; choose one of {known}")
}
