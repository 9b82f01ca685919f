//! A host to be made.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;
use wharf_auth::Visitor;
use wharf_client::{
    ConnectOptions, GuardProgram, Limits, LocalServer, LowPriorityThread, ProcessLog, Services, Tap, Verdicts,
};
use wharf_policy::SourcedRule;
use wharf_spec::{HttpSpec, ServerEntry, ServerName, ServerSettings, Surroundings};
use wharf_tools::{Gate, Registry};
use wharf_wire::Root;

use crate::account::ServerAccount;
use crate::ask::Asker;
use crate::attend::Attention;
use crate::audit::Audit;
use crate::catalog::NameStyle;
use crate::context::{Context, Options};
use crate::disk::{Approved, Disk};
use crate::events::{Crier, Events};
use crate::gate::{GateParts, RuleGate, RuleSink, SharedGate, WhenAsked};
use crate::host::Host;
use crate::logs::ServerLogs;
use crate::results::ResultLimits;
use crate::roster;
use crate::server::{LocalFactory, Reach, Told};
use crate::shelf::Shelf;
use crate::tool::ServerTool;

/// Gathers what a host is made of. Every part has a safe default: no rules, nobody to ask, nothing written to disk.
#[derive(Default)]
pub struct HostBuilder {
    servers: Vec<ServerEntry>,
    local: Vec<(ServerName, ServerSettings, LocalFactory)>,
    options: Options,
    gate: Option<Arc<dyn Gate>>,
    rules: Vec<SourcedRule>,
    when_asked: WhenAsked,
    rule_sink: Option<RuleSink>,
    asker: Option<Arc<dyn Asker>>,
    state_dir: Option<PathBuf>,
    services: Option<Services>,
}

/// Why a host could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A name stands twice.
    #[error("the server `{0}` is there twice")]
    Twice(ServerName),
    /// A rule cannot be read. Nothing is started, since it may be one that denies.
    #[error("a rule cannot be read: {0}")]
    Rule(String),
    /// What is kept on disk cannot be had.
    #[error("the directory for what is kept cannot be used: {0}")]
    Disk(String),
}

impl HostBuilder {
    /// Keeps these servers.
    #[must_use]
    pub fn servers(mut self, servers: impl IntoIterator<Item = ServerEntry>) -> Self {
        self.servers.extend(servers);
        self
    }

    /// Keeps a server that lives in this process; it is made anew for every connection.
    #[must_use]
    pub fn local<S: LocalServer>(self, name: ServerName, make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        let factory: LocalFactory = Arc::new(move || Ok(Box::new(make())));
        self.local_with(name, ServerSettings::default(), factory)
    }

    /// The same with settings, and with a way to fail.
    #[must_use]
    pub fn local_with(mut self, name: ServerName, settings: ServerSettings, make: LocalFactory) -> Self {
        self.local.push((name, settings, make));
        self
    }

    /// Lets this gate decide instead of rules.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Decides by these rules.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = SourcedRule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// What is done where the rules say that a person is to be asked.
    #[must_use]
    pub fn when_asked(mut self, when_asked: WhenAsked) -> Self {
        self.when_asked = when_asked;
        self
    }

    /// Takes the rules that people's "always" becomes.
    #[must_use]
    pub fn on_rule(mut self, sink: RuleSink) -> Self {
        self.rule_sink = Some(sink);
        self
    }

    /// Puts questions to a person by this.
    #[must_use]
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Keeps catalogs, approved definitions, large results, the audit log and the logs of servers here: a private
    /// directory, which is made.
    #[must_use]
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(path.into());
        self
    }

    /// The environment and working directory servers are started from.
    #[must_use]
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.options.surroundings = surroundings;
        self
    }

    /// Bounds and delays of every connection.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Which program guards the servers' processes.
    #[must_use]
    pub fn guard(mut self, guard: GuardProgram) -> Self {
        self.options.guard = guard;
        self
    }

    /// How tools are named.
    #[must_use]
    pub fn names(mut self, style: NameStyle) -> Self {
        self.options.names = style;
        self
    }

    /// The directories servers may ask for. None are declared otherwise.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.options.roots.extend(roots);
        self
    }

    /// How much of a result an agent is given.
    #[must_use]
    pub fn result_limits(mut self, limits: ResultLimits) -> Self {
        self.options.results = limits;
        self
    }

    /// Takes what servers write to stderr, and when their processes begin and end, instead of the state directory.
    #[must_use]
    pub fn process_log(mut self, log: Arc<dyn ProcessLog>) -> Self {
        self.options.process_log = Some(log);
        self
    }

    /// Sees every message of every server.
    #[must_use]
    pub fn tap(mut self, tap: Arc<dyn Tap>) -> Self {
        self.options.tap = Some(tap);
        self
    }

    /// Does this for servers, and nothing of what the asker, the roots and the events would otherwise be for.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.services = Some(services);
        self
    }

    /// How each server is connected to, by its name, in the place of surroundings, limits, guard and tap. Services are
    /// the host's all the same.
    #[must_use]
    pub fn connecting(mut self, prepare: impl Fn(&str) -> ConnectOptions + Send + Sync + 'static) -> Self {
        self.options.prepare = Some(Arc::new(prepare));
        self
    }

    /// How much the host wants to know of its servers.
    #[must_use]
    pub fn attention(mut self, attention: Attention) -> Self {
        self.options.attention = attention;
        self
    }

    /// Logs in to servers that are dialled with these accounts. Asked once for each server that does not say by its own
    /// headers or address who asks; whoever shares an account shares its renewals.
    #[must_use]
    pub fn accounts<A: ServerAccount>(
        mut self,
        make: impl Fn(&ServerName, &HttpSpec) -> Option<A> + Send + Sync + 'static,
    ) -> Self {
        self.options.accounts = Some(Arc::new(move |name, spec| {
            make(name, spec).map(|account| Arc::new(account) as Arc<dyn ServerAccount>)
        }));
        self
    }

    /// Takes people to login pages, once they have said yes to the asker. Without it, or without an asker, servers that
    /// want a login wait for [`Host::log_in`], or for a login in another process.
    #[must_use]
    pub fn visitor(self, visitor: Arc<dyn Visitor>) -> Self {
        self.visitors(move |_, _| Arc::clone(&visitor))
    }

    /// The same with a visitor of its own for each login: what a server's settings say of its login may be where people
    /// come back to.
    #[must_use]
    pub fn visitors(
        mut self,
        make: impl Fn(&ServerName, &HttpSpec) -> Arc<dyn Visitor> + Send + Sync + 'static,
    ) -> Self {
        self.options.visitors = Some(Arc::new(make));
        self
    }

    /// Makes the host. Servers begin to connect, all at once; [`Host::settled`] waits for them.
    pub async fn start(self) -> Result<Host, StartError> {
        let (host, servers) = self.make().await?;
        add_all(&host, servers).await;
        Ok(host)
    }

    /// Makes the host, and hears everything that happens in it from the very beginning.
    pub async fn start_heard(self) -> Result<(Host, Events), StartError> {
        let (host, servers) = self.make().await?;
        let events = host.events();
        add_all(&host, servers).await;
        Ok((host, events))
    }

    async fn make(mut self) -> Result<(Host, Vec<(ServerName, Told)>), StartError> {
        let (entries, local) = (std::mem::take(&mut self.servers), std::mem::take(&mut self.local));
        let (wanted, twice) = roster::told(entries);
        if let Some((name, _)) = twice.into_iter().next() {
            return Err(StartError::Twice(name));
        }
        let mut all: Vec<(ServerName, Told)> = wanted.into_iter().collect();
        for (name, settings, make) in local {
            if all.iter().any(|(other, _)| *other == name) {
                return Err(StartError::Twice(name));
            }
            all.push((name, Told { reach: Reach::Local(make), settings, by_hand: None }));
        }
        if !all.is_empty() {
            // They are ready when the first list arrives.
            tokio::task::spawn_blocking(wharf_inspect::prepare);
        }
        Ok((Host::over(self.context().await?), all))
    }

    async fn context(mut self) -> Result<Arc<Context>, StartError> {
        let crier = Arc::new(Crier::new());
        let logs = self.state_dir.as_deref().filter(|_| self.options.process_log.is_none());
        let logs = logs.map(|state| Arc::new(ServerLogs::beneath(state)));
        if let Some(logs) = &logs {
            self.options.process_log = Some(Arc::clone(logs) as Arc<dyn ProcessLog>);
        }
        let (disk, approved, audit) = match self.state_dir {
            Some(path) => {
                let (disk, approved) = Disk::open(path).await.map_err(StartError::Disk)?;
                let audit = Audit::open(&disk.audit_path(), Arc::clone(&crier));
                (Some(disk), approved, Some(audit.map_err(|error| StartError::Disk(error.to_string()))?))
            }
            None => (None, Approved::default(), None),
        };
        let asker = self.asker;
        let parts = GateParts {
            rules: self.rules,
            when_asked: self.when_asked,
            asker: asker.clone(),
            sink: self.rule_sink,
            audits: audit.is_some(),
            pins: approved.pins,
        };
        let rules = RuleGate::new(parts);
        if let Some(problem) = rules.problems().iter().find(|problem| problem.is_fatal()) {
            return Err(StartError::Rule(problem.to_string()));
        }
        let gate = self.gate.unwrap_or_else(|| Arc::new(SharedGate(Arc::clone(&rules))));
        let registry = Arc::new(Registry::new(Arc::clone(&gate)));
        let mut seed = [0; 8];
        // A host without randomness only loses its jitter.
        let _ = getrandom::fill(&mut seed);
        let context = Arc::new_cyclic(|weak: &Weak<Context>| {
            let adapting = Weak::clone(weak);
            let adapt = Box::new(move |tool: &Arc<_>| {
                Arc::new(ServerTool::new(Arc::clone(tool), Weak::clone(&adapting))) as Arc<dyn wharf_tools::Tool>
            });
            Context {
                options: self.options,
                servers: ArcSwap::default(),
                shelf: Shelf::new(registry, adapt),
                gate,
                rules: Arc::clone(&rules),
                asker,
                crier,
                audit,
                disk,
                logs,
                released: Mutex::new(approved.released),
                background: Mutex::default(),
                polls: Default::default(),
                watches: Default::default(),
                services: OnceLock::new(),
                verdicts: Arc::new(Verdicts::default()),
                dice: AtomicU64::new(u64::from_ne_bytes(seed) | 1),
                closing: tokio::sync::watch::Sender::new(false),
                generations: AtomicU64::new(0),
                changing: Semaphore::new(1),
                large: LowPriorityThread::default(),
            }
        });
        rules.serve(&context);
        // Set once, here.
        let services = self.services.unwrap_or_else(|| crate::services::services(&context));
        let _ = context.services.set(services);
        crate::management::register(&context);
        Ok(context)
    }
}

async fn add_all(host: &Host, servers: Vec<(ServerName, Told)>) {
    for (name, told) in servers {
        host.add(name, told).await;
    }
}
