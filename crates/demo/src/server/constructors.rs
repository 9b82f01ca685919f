//! Constructors of servers: for a connection, for a session, and for a single request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{DemoServer, DemoServerOptions};
use crate::call_signal::CallSignal;
use crate::calls::RunningCalls;
use crate::logging::LogSettings;
use crate::negotiation::RevisionNegotiation;
use crate::revision::DemoRevision;

/// Arguments repeated in request headers: lower-case header names and their values.
pub type HeaderParams = Vec<(String, String)>;

/// State shared by all servers of one process.
#[derive(Clone)]
pub struct ProcessState {
    pub name: String,
    /// Names of the environment variables, sorted.
    pub environment: Arc<[String]>,
    /// Number of tool calls before the crash.
    pub calls_left: Arc<Mutex<Option<u32>>>,
    pub tide: Option<Duration>,
}

impl DemoServer {
    /// Creates a server.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the pinned revision does not exist.
    pub fn new(options: DemoServerOptions, environment: Vec<String>) -> Result<Self, String> {
        let pinned = match &options.revision {
            None => None,
            Some(text) => Some(DemoRevision::parse(text).ok_or_else(|| unknown_revision(text))?),
        };
        let nature = ProcessState {
            name: options.name,
            environment: environment.into(),
            calls_left: Arc::new(Mutex::new(options.crash_after)),
            tide: options.tide,
        };
        Ok(Self::with_state(nature, RevisionNegotiation::new(pinned)))
    }

    /// Creates a server for one stateless request. `None` if no stateless revision is supported.
    ///
    /// All such servers share the port, the tasks, the parked calls and the subscriptions.
    pub fn for_request(&self, mirrored: HeaderParams) -> Option<Self> {
        Some(Self {
            mirrored,
            rounds: Arc::clone(&self.rounds),
            tasks: Arc::clone(&self.tasks),
            subscriptions: Arc::clone(&self.subscriptions),
            port: Arc::clone(&self.port),
            ..Self::with_state(self.nature.clone(), self.negotiation.for_request()?)
        })
    }

    /// Creates a server for one session of a handshake revision. `None` if none is supported.
    pub fn for_session(&self) -> Option<Self> {
        Some(Self::with_state(self.nature.clone(), self.negotiation.for_session()?))
    }

    /// Creates a server with separate state except for `nature`.
    fn with_state(nature: ProcessState, negotiation: RevisionNegotiation) -> Self {
        Self {
            connection: next_connection_id(),
            nature,
            mirrored: HeaderParams::new(),
            negotiation,
            capabilities: Mutex::default(),
            calls: RunningCalls::default(),
            questions: Arc::default(),
            rounds: Arc::default(),
            tasks: Arc::default(),
            subscriptions: Arc::default(),
            logging: LogSettings::default(),
            port: Arc::default(),
            closing: CallSignal::default(),
        }
    }
}

fn next_connection_id() -> u64 {
    static MADE: AtomicU64 = AtomicU64::new(0);
    MADE.fetch_add(1, Ordering::Relaxed)
}

fn unknown_revision(text: &str) -> String {
    let known = DemoRevision::ALL.map(DemoRevision::as_str).join(", ");
    format!("unknown protocol revision `{text}`; choose one of {known}")
}
