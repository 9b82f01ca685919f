//! Starts a host from its builder.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;
use wharf_client::{ClientServices, LowPriorityThread, ProcessLog, TransportCache};
use wharf_spec::ServerName;
use wharf_tools::Registry;

use super::{HostBuilder, StartError};
use crate::audit::{AuditLog, AuditOptions};
use crate::catalog_publisher::CatalogPublisher;
use crate::context::HostContext;
use crate::events::{EventBus, EventReceiver};
use crate::gate::{GateConfig, RuleGate, SharedGate};
use crate::host::Host;
use crate::logs::ServerLogs;
use crate::server::{DesiredServer, ServerEndpoint};
use crate::server_set;
use crate::state_directory::{ApprovedDefinitions, StateDirectory};
use crate::tool::ServerTool;

impl HostBuilder {
    /// Starts the host. All servers begin to connect concurrently; [`Host::wait_until_settled`] waits for them.
    ///
    /// # Errors
    ///
    /// Returns an error if two servers have the same name, a user's rule is unreadable, or the state directory cannot
    /// be used.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the servers that have already been started, without waiting.
    ///
    /// # Example
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    pub async fn start(self) -> Result<Host, StartError> {
        let (host, servers) = self.build().await?;
        add_all(&host, servers).await;
        Ok(host)
    }

    /// Starts the host and returns its events from the very beginning.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`HostBuilder::start`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the servers that have already been started, without waiting.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn start_with_events(self) -> Result<(Host, EventReceiver), StartError> {
        let (host, servers) = self.build().await?;
        let events = host.events();
        add_all(&host, servers).await;
        Ok((host, events))
    }

    async fn build(mut self) -> Result<(Host, Vec<(ServerName, DesiredServer)>), StartError> {
        let (entries, local) = (std::mem::take(&mut self.servers), std::mem::take(&mut self.local));
        let (wanted, twice) = server_set::configs_by_name(entries);
        if let Some((name, _)) = twice.into_iter().next() {
            return Err(StartError::Twice(name));
        }
        let mut all: Vec<(ServerName, DesiredServer)> = wanted.into_iter().collect();
        for (name, settings, make) in local {
            if all.iter().any(|(other, _)| *other == name) {
                return Err(StartError::Twice(name));
            }
            all.push((name, DesiredServer { endpoint: ServerEndpoint::Local(make), settings, manual_override: None }));
        }
        if !all.is_empty() {
            // Builds the inspector's tables before the first list arrives.
            // Without a thread, the first list builds them.
            let _ = wharf_threads::start_thread("wharf-inspect", wharf_inspect::prepare);
        }
        Ok((Host::from_context(self.build_context().await?), all))
    }

    async fn build_context(mut self) -> Result<Arc<HostContext>, StartError> {
        let event_bus = Arc::new(EventBus::new());
        let logs = self.state_dir.as_deref().filter(|_| self.options.process_log.is_none());
        let logs = logs.map(|state| Arc::new(ServerLogs::in_state_dir(state)));
        if let Some(logs) = &logs {
            self.options.process_log = Some(Arc::clone(logs) as Arc<dyn ProcessLog>);
        }
        let (disk, approved) = open_state(self.state_dir).await?;
        let audit = open_audit(disk.as_ref(), self.audit, &event_bus)?;
        let asker = self.asker;
        let parts = GateConfig {
            rules: self.rules,
            ask_policy: self.ask_policy,
            allowed: self.allowed,
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
        let context = Arc::new_cyclic(|weak: &Weak<HostContext>| {
            let adapting = Weak::clone(weak);
            let adapt = Box::new(move |tool: &Arc<_>| {
                Arc::new(ServerTool::new(Arc::clone(tool), Weak::clone(&adapting))) as Arc<dyn wharf_tools::Tool>
            });
            HostContext {
                options: self.options,
                servers: ArcSwap::default(),
                publisher: CatalogPublisher::new(registry, adapt),
                gate,
                rules: Arc::clone(&rules),
                asker,
                event_bus,
                audit,
                disk,
                logs,
                log_sink: OnceLock::new(),
                released: Mutex::new(approved.released),
                background: Mutex::default(),
                polls: Default::default(),
                watches: Default::default(),
                services: OnceLock::new(),
                transport_cache: Arc::new(TransportCache::default()),
                dice: AtomicU64::new(random_seed()),
                closing: tokio::sync::watch::Sender::new(false),
                generations: AtomicU64::new(0),
                changing: Semaphore::new(1),
                large: LowPriorityThread::default(),
            }
        });
        rules.set_context(&context);
        complete_context(&context, self.services);
        Ok(context)
    }
}

async fn add_all(host: &Host, servers: Vec<(ServerName, DesiredServer)>) {
    for (name, desired) in servers {
        host.add_server(name, desired).await;
    }
}

/// Returns a seed for jitter. It is fixed if the system has no randomness.
fn random_seed() -> u64 {
    let mut seed = [0; 8];
    let _ = getrandom::fill(&mut seed);
    u64::from_ne_bytes(seed) | 1
}

/// Opens the state directory, if there is one.
async fn open_state(path: Option<PathBuf>) -> Result<(Option<StateDirectory>, ApprovedDefinitions), StartError> {
    match path {
        Some(path) => {
            let (disk, approved) = StateDirectory::open(path).await.map_err(StartError::Disk)?;
            Ok((Some(disk), approved))
        }
        None => Ok((None, ApprovedDefinitions::default())),
    }
}

fn open_audit(
    disk: Option<&StateDirectory>,
    options: AuditOptions,
    event_bus: &Arc<EventBus>,
) -> Result<Option<AuditLog>, StartError> {
    let path = disk.map(StateDirectory::audit_path);
    AuditLog::open(path.as_deref(), options, Arc::clone(event_bus)).map_err(|error| match disk {
        Some(_) => StartError::Disk(error.to_string()),
        None => StartError::Audit(error.to_string()),
    })
}

/// Adds the parts that refer to the context itself.
fn complete_context(context: &Arc<HostContext>, services: Option<ClientServices>) {
    let explaining = Arc::downgrade(context);
    let explain = move |name: &str| explaining.upgrade()?.explain_missing_tool(name);
    context.publisher.registry().set_absence_explainer(Arc::new(explain));
    // Set exactly once, here.
    let services = services.unwrap_or_else(|| crate::services::build_services(context));
    let _ = context.services.set(services);
    crate::management::register(context);
}
