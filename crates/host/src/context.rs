//! What all parts of a host share: its servers, its shelf, its gate, and where things are told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use wharf_client::{ConnectOptions, GuardProgram, Limits, LowPriorityThread, ProcessLog, Services, Tap, Verdicts};
use wharf_spec::{ServerName, Surroundings};
use wharf_tools::{Gate, nearest};
use wharf_wire::Root;

use crate::account::Accounts;
use crate::ask::Asker;
use crate::attend::Attention;
use crate::audit::Audit;
use crate::catalog::NameStyle;
use crate::disk::{Disk, Released};
use crate::error::HostError;
use crate::events::{Crier, Event};
use crate::gate::RuleGate;
use crate::login::Visitors;
use crate::logs::ServerLogs;
use crate::management::Watches;
use crate::polling::Polls;
use crate::results::ResultLimits;
use crate::server::Server;
use crate::shelf::Shelf;
use crate::supervise::{Standing, State};

/// Texts of servers from this size on are worked on one at a time, on a thread of low priority.
pub(crate) const LARGE: usize = 64 << 10;

/// What a host is made with.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub surroundings: Surroundings,
    pub limits: Limits,
    pub guard: GuardProgram,
    pub names: NameStyle,
    pub roots: Vec<Root>,
    pub results: ResultLimits,
    pub tap: Option<Arc<dyn Tap>>,
    pub process_log: Option<Arc<dyn ProcessLog>>,
    pub prepare: Option<Prepare>,
    pub attention: Attention,
    pub accounts: Option<Accounts>,
    pub visitors: Option<Visitors>,
}

/// How a server of this name is connected to.
pub(crate) type Prepare = Arc<dyn Fn(&str) -> ConnectOptions + Send + Sync>;

/// Everything one host shares.
pub(crate) struct Context {
    pub options: Options,
    pub servers: ArcSwap<HashMap<ServerName, Arc<Server>>>,
    pub shelf: Shelf,
    pub gate: Arc<dyn Gate>,
    /// The gate's own rules, which want to know which servers there are.
    pub rules: Arc<RuleGate>,
    pub asker: Option<Arc<dyn Asker>>,
    pub crier: Arc<Crier>,
    pub audit: Option<Audit>,
    pub disk: Option<Disk>,
    /// The log files of servers, where they are this host's own.
    pub logs: Option<Arc<ServerLogs>>,
    /// Definitions of tools that a person has let out of quarantine.
    pub released: Mutex<Released>,
    /// Tasks that are nobody else's: what is looked at from time to time. None of them holds this.
    pub background: Mutex<JoinSet<()>>,
    pub polls: Polls,
    pub watches: Watches,
    pub services: OnceLock<Services>,
    pub verdicts: Arc<Verdicts>,
    pub dice: AtomicU64,
    /// Whether the host is being closed, for whoever waits.
    pub closing: watch::Sender<bool>,
    /// Numbers servers, so that one can be told from another that took its place.
    pub generations: AtomicU64,
    /// The set of servers is changed by one at a time.
    pub changing: Semaphore,
    /// Large texts of servers are worked on one at a time: what that needs is a multiple of the text.
    pub large: LowPriorityThread,
}

impl Context {
    /// The server of that name.
    pub fn server(&self, name: &str) -> Result<Arc<Server>, HostError> {
        let servers = self.servers.load();
        if let Some(server) = servers.get(name) {
            return Ok(Arc::clone(server));
        }
        if self.is_closing() {
            return Err(HostError::Closed);
        }
        let meant = nearest(name, servers.keys().map(ServerName::as_str)).map(str::to_owned);
        Err(HostError::UnknownServer { name: name.to_owned(), nearest: meant })
    }

    /// How every server is connected to, but for what is its own.
    pub fn connect_options(&self, server: &Server) -> ConnectOptions {
        let mut options = match &self.options.prepare {
            Some(prepare) => prepare(server.name.as_str()),
            None => self.plain_options(),
        };
        // Whoever prepares them, all servers of a host share its budgets.
        options.limits.held_in_all = self.options.limits.held_in_all.clone();
        options.limits.lists_in_all = self.options.limits.lists_in_all.clone();
        options.name = server.name.as_str().to_owned();
        options.services = self.services.get().cloned().unwrap_or_default();
        options.verdicts = Some(Arc::clone(&self.verdicts));
        server.introduce(self, &mut options);
        options
    }

    fn plain_options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.surroundings = self.options.surroundings.clone();
        options.limits = self.options.limits.clone();
        options.guard = self.options.guard.clone();
        options.tap = self.options.tap.clone();
        options.process_log = self.options.process_log.clone();
        options
    }

    /// Does work on this many bytes of a server: at once where they are few, else where that keeps no other task waiting.
    /// Nothing where the work panics or the runtime is shutting down.
    ///
    /// Dropped while it waits, the work is done all the same, and its result is dropped.
    pub async fn work<T: Send + 'static>(&self, bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if bytes < LARGE { Some(work()) } else { self.large.run(work).await }
    }

    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Runs something until it is done or the host is.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> tokio::task::AbortHandle {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        while background.try_join_next().is_some() {}
        background.spawn(task)
    }

    /// Makes these the servers. The rules know of them before anybody can call them.
    pub fn take_servers(&self, servers: HashMap<ServerName, Arc<Server>>) {
        let mut names: Vec<ServerName> = servers.keys().cloned().collect();
        names.sort();
        self.rules.servers_changed(names);
        self.servers.store(Arc::new(servers));
    }

    /// Where large results go.
    pub fn spill(&self) -> Option<Arc<wharf_store::SpillDir>> {
        self.disk.as_ref().map(Disk::spill)
    }

    /// Tells that a server stands elsewhere.
    pub fn tell_state(&self, server: &Server, standing: &Standing) {
        let trouble = standing.trouble.clone().filter(|_| standing.state != State::Ready);
        match (&trouble, standing.state) {
            // Whoever hears events is told there, and need not be told twice.
            (Some(trouble), State::Failed | State::AuthRequired) if !self.crier.is_heard() => {
                tracing::warn!(target: "wharf::state", server = %server.name, state = %standing.state, "{trouble}");
            }
            (Some(trouble), _) => tracing::info!(server = %server.name, state = %standing.state, "{trouble}"),
            (None, _) => tracing::info!(server = %server.name, state = %standing.state),
        }
        self.crier.tell(Event::State { server: server.name.clone(), state: standing.state, trouble });
    }

    /// Tells that a resource has changed, to the events and to the agent.
    pub fn tell_updated(&self, server: &Server, uri: String) {
        if !server.watched.concerns(&uri) || self.denial_of(server).is_some() {
            return;
        }
        self.tell_note(server.name.as_str(), &format!("the resource {} has changed", shown(&uri)));
        self.crier.tell(Event::ResourceUpdated { server: server.name.clone(), uri });
    }

    /// Tells that resources may have changed while nobody heard of it.
    pub fn tell_perhaps_updated(&self, server: &Server, uris: impl IntoIterator<Item = String>) {
        for uri in uris.into_iter().filter(|uri| server.watched.concerns(uri)) {
            let note = format!("the resource {} may have changed: the watch was interrupted, and is back", shown(&uri));
            self.tell_note(server.name.as_str(), &note);
            self.crier.tell(Event::ResourceUpdated { server: server.name.clone(), uri });
        }
    }

    /// Tells that resources somebody wants to hear of are not watched, because their server does not do that any more.
    pub fn tell_unwatched(&self, server: &Server, uris: impl IntoIterator<Item = String>) {
        for uri in uris.into_iter().filter(|uri| server.watched.concerns(uri)) {
            let note = format!("the server does not tell of changes of the resource {} any more", shown(&uri));
            self.tell_note(server.name.as_str(), &note);
        }
    }

    /// Tells the agent something before its next request to a model, and whom it is about. Nothing more is told by a
    /// host that closes.
    pub fn tell_note(&self, server: &str, text: &str) {
        if !self.is_closing() {
            self.shelf.registry().notes().push(server, text);
        }
    }

    /// Whether another server has taken the place of this one.
    pub fn is_replaced(&self, server: &Server) -> bool {
        self.servers.load().get(&server.name).is_some_and(|now| now.generation > server.generation)
    }

    /// Whether a server is still one of the host's, and none has taken its place.
    pub fn is_current(&self, server: &Server) -> bool {
        self.servers.load().get(&server.name).is_some_and(|now| now.generation == server.generation)
    }

    /// A random part of a duration, so that not everything happens at once.
    pub fn jitter(&self, most: Duration) -> Duration {
        let mut dice = self.dice.load(Ordering::Relaxed);
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        self.dice.store(dice, Ordering::Relaxed);
        most.mul_f64(f64::from(u32::try_from(dice >> 40).unwrap_or(0)) / f64::from(1u32 << 24))
    }
}

fn shown(uri: &str) -> wharf_spec::Shown<'_> {
    wharf_spec::Shown::line(uri, 500)
}
