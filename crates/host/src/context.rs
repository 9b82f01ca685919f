//! State shared by all components of a host: servers, catalog, gate and events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use wharf_client::{
    ClientServices, ConnectOptions, GuardProgram, Limits, LogSink, LowPriorityThread, ProcessLog, Tap, TransportCache,
};
use wharf_spec::{Environment, ServerName};
use wharf_tools::{Gate, closest_name};
use wharf_wire::Root;

use crate::account::AccountFactory;
use crate::ask::Asker;
use crate::audit::AuditLog;
use crate::catalog::NameStyle;
use crate::catalog_publisher::CatalogPublisher;
use crate::definition_review::RemedyText;
use crate::error::HostError;
use crate::events::{Event, EventBus};
use crate::gate::RuleGate;
use crate::lister::ListingMode;
use crate::login::BrowserFactory;
use crate::logs::ServerLogs;
use crate::management::AgentSubscriptions;
use crate::polling::PollSubscriptions;
use crate::results::ResultLimits;
use crate::server::Server;
use crate::state_directory::{ReleasedDefinitions, StateDirectory};
use crate::supervise::{ServerSnapshot, ServerState};

/// Size from which on texts of servers are processed one at a time, on a low-priority thread.
pub(crate) const LARGE_TEXT_BYTES: usize = 64 << 10;

/// Options of a host.
#[derive(Clone, Default)]
pub(crate) struct HostSettings {
    pub surroundings: Environment,
    pub limits: Limits,
    pub guard: GuardProgram,
    pub names: NameStyle,
    pub roots: Vec<Root>,
    pub results: ResultLimits,
    pub tap: Option<Arc<dyn Tap>>,
    pub process_log: Option<Arc<dyn ProcessLog>>,
    pub prepare: Option<ConnectOptionsFactory>,
    pub attention: ListingMode,
    /// Start lazy servers whose tools are not known.
    pub lists_lazy: bool,
    pub accounts: Option<AccountFactory>,
    pub visitors: Option<BrowserFactory>,
    pub remedies: Option<RemedyText>,
}

/// Returns the connect options of a server by name.
pub(crate) type ConnectOptionsFactory = Arc<dyn Fn(&str) -> ConnectOptions + Send + Sync>;

/// Shared state of one host.
pub(crate) struct HostContext {
    pub options: HostSettings,
    pub servers: ArcSwap<HashMap<ServerName, Arc<Server>>>,
    pub publisher: CatalogPublisher,
    pub gate: Arc<dyn Gate>,
    /// The rules of the default gate, which need to know the servers.
    pub rules: Arc<RuleGate>,
    pub asker: Option<Arc<dyn Asker>>,
    pub event_bus: Arc<EventBus>,
    pub audit: Option<AuditLog>,
    pub disk: Option<StateDirectory>,
    /// The servers' log files, if this host writes them.
    pub logs: Option<Arc<ServerLogs>>,
    /// Receives the servers' log messages besides the events.
    pub log_sink: OnceLock<Arc<dyn LogSink>>,
    /// Tool definitions that a person has released from quarantine.
    pub released: Mutex<ReleasedDefinitions>,
    /// Background tasks of the host. None of them holds a strong reference to the context while it waits.
    pub background: Mutex<JoinSet<()>>,
    pub polls: PollSubscriptions,
    pub watches: AgentSubscriptions,
    pub services: OnceLock<ClientServices>,
    pub transport_cache: Arc<TransportCache>,
    pub dice: AtomicU64,
    /// Set once the host is closing.
    pub closing: watch::Sender<bool>,
    /// Counter that numbers servers, to distinguish a server from its replacement.
    pub generations: AtomicU64,
    /// Serializes changes of the set of servers.
    pub changing: Semaphore,
    /// Processes large texts one at a time, because that takes a multiple of their memory.
    pub large: LowPriorityThread,
}

impl HostContext {
    /// Returns the server of that name.
    pub fn server(&self, name: &str) -> Result<Arc<Server>, HostError> {
        let servers = self.servers.load();
        if let Some(server) = servers.get(name) {
            return Ok(Arc::clone(server));
        }
        if self.is_closing() {
            return Err(HostError::Closed);
        }
        let meant = closest_name(name, servers.keys().map(ServerName::as_str)).map(str::to_owned);
        Err(HostError::UnknownServer { name: name.to_owned(), nearest: meant })
    }

    /// Returns the connect options of a server.
    pub fn connect_options(&self, server: &Server) -> ConnectOptions {
        let mut options = match &self.options.prepare {
            Some(prepare) => prepare(server.name.as_str()),
            None => self.default_connect_options(),
        };
        // All servers of a host share its budgets, even with custom options.
        options.limits.memory_budget_in_all = self.options.limits.memory_budget_in_all.clone();
        options.limits.lists_in_all = self.options.limits.lists_in_all.clone();
        options.name = server.name.as_str().to_owned();
        options.services = self.services.get().cloned().unwrap_or_default();
        options.transport_cache = Some(Arc::clone(&self.transport_cache));
        server.set_authorizer(self, &mut options);
        options
    }

    fn default_connect_options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.surroundings = self.options.surroundings.clone();
        options.limits = self.options.limits.clone();
        options.guard = self.options.guard.clone();
        options.tap = self.options.tap.clone();
        options.process_log = self.options.process_log.clone();
        options
    }

    /// Runs work on a text of this many bytes: inline if it is small, otherwise on the low-priority thread. Returns
    /// `None` if the work panics or the runtime is shutting down.
    ///
    /// Dropping the future does not stop the work; its result is discarded.
    pub async fn run_sized<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if bytes < LARGE_TEXT_BYTES { Some(work()) } else { self.large.run(work).await }
    }

    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Spawns a task that runs until it ends or the host closes.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> tokio::task::AbortHandle {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        while background.try_join_next().is_some() {}
        background.spawn(task)
    }

    /// Sets the servers. The rules learn about them before they can be called.
    pub fn publish_servers(&self, servers: HashMap<ServerName, Arc<Server>>) {
        let mut names: Vec<ServerName> = servers.keys().cloned().collect();
        names.sort();
        self.rules.set_servers(names);
        self.servers.store(Arc::new(servers));
    }

    /// Returns the directory for large results.
    pub fn spill(&self) -> Option<Arc<wharf_store::SpillDir>> {
        self.disk.as_ref().map(StateDirectory::spill)
    }

    /// Publishes a change of a server's state.
    pub fn publish_state(&self, server: &Server, snapshot: &ServerSnapshot) {
        let last_error = snapshot.last_error.clone().filter(|_| snapshot.state != ServerState::Ready);
        match (&last_error, snapshot.state) {
            // Listeners receive the event; a warning in the log would repeat it.
            (Some(last_error), ServerState::Failed | ServerState::AuthRequired) if !self.event_bus.has_receivers() => {
                tracing::warn!(target: "wharf::state", server = %server.name, state = %snapshot.state, "{last_error}");
            }
            (Some(last_error), _) => tracing::info!(server = %server.name, state = %snapshot.state, "{last_error}"),
            (None, _) => tracing::info!(server = %server.name, state = %snapshot.state),
        }
        self.event_bus.publish(Event::State { server: server.name.clone(), state: snapshot.state, last_error });
    }

    /// Publishes the change of a resource, as an event and as a note to the agent.
    pub fn report_updated(&self, server: &Server, uri: String) {
        if !server.watched.covers(&uri) || self.denial_of(server).is_some() {
            return;
        }
        self.push_note(server.name.as_str(), &format!("the resource {} has changed", display_uri(&uri)));
        self.event_bus.publish(Event::ResourceUpdated { server: server.name.clone(), uri });
    }

    /// Publishes that resources may have changed while the subscription was interrupted.
    pub fn report_possibly_updated(&self, server: &Server, uris: impl IntoIterator<Item = String>) {
        for uri in uris.into_iter().filter(|uri| server.watched.covers(uri)) {
            let note =
                format!("the resource {} may have changed while the subscription was interrupted", display_uri(&uri));
            self.push_note(server.name.as_str(), &note);
            self.event_bus.publish(Event::ResourceUpdated { server: server.name.clone(), uri });
        }
    }

    /// Notifies the agent of subscribed resources that the server no longer reports.
    pub fn report_unsubscribed(&self, server: &Server, uris: impl IntoIterator<Item = String>) {
        for uri in uris.into_iter().filter(|uri| server.watched.covers(uri)) {
            let note = format!("the server no longer reports changes of the resource {}", display_uri(&uri));
            self.push_note(server.name.as_str(), &note);
        }
    }

    /// Queues a note about a server for the agent's next request to a model. A closing host queues nothing.
    pub fn push_note(&self, server: &str, text: &str) {
        if !self.is_closing() {
            self.publisher.registry().notes().push(server, text);
        }
    }

    /// Reports whether another server has replaced this one.
    pub fn is_replaced(&self, server: &Server) -> bool {
        self.servers.load().get(&server.name).is_some_and(|now| now.generation > server.generation)
    }

    /// Reports whether the server belongs to the host and has not been replaced.
    pub fn is_current(&self, server: &Server) -> bool {
        self.servers.load().get(&server.name).is_some_and(|now| now.generation == server.generation)
    }

    /// Returns a random fraction of a duration.
    pub fn jitter(&self, most: Duration) -> Duration {
        let mut dice = self.dice.load(Ordering::Relaxed);
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        self.dice.store(dice, Ordering::Relaxed);
        most.mul_f64(f64::from(u32::try_from(dice >> 40).unwrap_or(0)) / f64::from(1u32 << 24))
    }
}

fn display_uri(uri: &str) -> wharf_spec::EscapedText<'_> {
    wharf_spec::EscapedText::single_line(uri, 500)
}
