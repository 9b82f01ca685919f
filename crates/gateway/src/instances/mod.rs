//! Instances of servers of the handshake revisions, for clients that can be asked, and of servers that a principal or a
//! session has for itself.
//!
//! Such a server asks on its connection, and over stdio its question names no call. So an instance serves one
//! connection of a client at a time, and a question of the instance is a question to that client.

mod pool;
mod services;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use wharf::spec::ServerName;
use wharf::tools::AllowAllGate;
use wharf::wire::{Era, RpcError};
use wharf::{CallTag, Host, HostBuilder, RawJson};

use crate::client_class::{ClientClass, QuestionMethod};
use crate::errors::rpc_error;
use crate::questions::ClientQuestion;
use crate::route::{CallRoute, ClientFacts};
pub(crate) use pool::InstanceOwner;
use pool::{InstancePool, LeaseDecision, LeaseRequest, RootsDigest, UnknownRoots};
use services::InstanceClients;

/// Upper bound of `max_instances` in the configuration.
const MAX_INSTANCES: usize = 256;

/// Maximum time that a call waits for an instance that another client uses.
const LEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// The instance that a host is built for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstanceKey {
    /// The server.
    pub server: ServerName,
    /// What the clients of the instance can be asked.
    pub class: ClientClass,
}

/// Builds the host of an instance: with one server, without rules, asker and services, which the gateway supplies.
/// `None` if the server has no instances of its own.
pub type InstanceFactory = Arc<dyn Fn(&InstanceKey) -> Option<HostBuilder> + Send + Sync>;

/// Limits of the instances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstanceLimits {
    /// Maximum number of instances per server.
    pub max_instances: usize,
    /// Time after which an unused instance is closed.
    pub idle_timeout: Duration,
}

/// The instances of all servers.
pub(crate) struct Instances {
    factory: Option<InstanceFactory>,
    limits: InstanceLimits,
    runtime: tokio::runtime::Handle,
    servers: Mutex<HashMap<ServerName, ServerInstances>>,
    released: Notify,
}

struct ServerInstances {
    pool: InstancePool,
    running: HashMap<u64, Arc<Instance>>,
}

impl ServerInstances {
    /// Returns the instance that a call uses.
    fn instance_of(&self, tag: CallTag) -> Option<u64> {
        self.running.values().find(|instance| instance.clients.has(tag)).map(|instance| instance.id)
    }
}

/// A running instance.
pub(crate) struct Instance {
    pub id: u64,
    pub server: ServerName,
    pub clients: Arc<InstanceClients>,
    /// Started by its first call. Other calls wait for it.
    host: tokio::sync::OnceCell<Host>,
}

/// The use of an instance by one call. Dropping it releases the instance.
pub(crate) struct InstanceLease {
    pub instance: Arc<Instance>,
    instances: Arc<Instances>,
    tag: CallTag,
    /// The server has responded to the call.
    is_answered: AtomicBool,
}

/// The instance that a call needs.
pub(crate) struct InstancePlan {
    pub builder: HostBuilder,
    pub owner: InstanceOwner,
    /// Maximum number of instances of the server, if it is configured.
    pub max_instances: Option<usize>,
}

/// Reason for which a call gets no instance.
#[derive(Debug)]
pub(crate) struct LeaseError(pub RpcError);

impl Instances {
    pub fn new(factory: Option<InstanceFactory>, limits: InstanceLimits, runtime: tokio::runtime::Handle) -> Self {
        Self { factory, limits, runtime, servers: Mutex::default(), released: Notify::new() }
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<ServerName, ServerInstances>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_factory(&self) -> bool {
        self.factory.is_some()
    }

    /// Returns the builder of an instance. `None` if the server has no instances.
    pub fn builder(&self, server: &ServerName, class: ClientClass) -> Option<HostBuilder> {
        self.factory.as_ref().and_then(|factory| factory(&InstanceKey { server: server.clone(), class }))
    }

    /// Returns an instance that no client of another owner uses, and that can ask no other client. Starts one if
    /// necessary, and waits a short time for one if there are too many.
    pub async fn lease(
        self: &Arc<Self>,
        server: &ServerName,
        route: &Arc<CallRoute>,
        plan: InstancePlan,
    ) -> Result<InstanceLease, LeaseError> {
        let InstancePlan { builder, owner, max_instances } = plan;
        let max_instances = max_instances.unwrap_or(self.limits.max_instances).clamp(1, MAX_INSTANCES);
        // A client that cannot be asked does without the instance, unless it is its own.
        let is_needed = !route.client.class.is_none() || owner != InstanceOwner::Anyone;
        let deadline = Instant::now() + if is_needed { LEASE_TIMEOUT } else { Duration::ZERO };
        let mut roots = None;
        loop {
            let released = self.released.notified();
            let ClientFacts { connection: holder, class, era, .. } = route.client;
            let unknown_roots = if era == Era::Handshake { UnknownRoots::Ask } else { UnknownRoots::Start };
            let request = LeaseRequest { owner: owner.clone(), holder, class, roots, unknown_roots };
            let request = PoolRequest { max_instances, request };
            match self.decide(server, request, route) {
                Decided::Leased { lease, evicted } => {
                    self.close_later(evicted);
                    lease.start(builder).await.map_err(LeaseError)?;
                    return Ok(lease);
                }
                Decided::AskRoots => {
                    let answer = route.ask(ClientQuestion::from_server(QuestionMethod::Roots, None)).await;
                    roots = Some(RootsDigest::from_answer(&answer.map_err(LeaseError)?));
                }
                Decided::Full if timeout_at(deadline, released).await.is_err() => {
                    let message = format!(
                        "all {max_instances} instances of the server {server} are in use by other clients; try again \
                         later, or raise `maxInstances` of the server in the configuration"
                    );
                    return Err(LeaseError(rpc_error(wharf::wire::code::INTERNAL, message)));
                }
                Decided::Full => {}
            }
        }
    }

    fn decide(self: &Arc<Self>, server: &ServerName, request: PoolRequest, route: &Arc<CallRoute>) -> Decided {
        let PoolRequest { max_instances, request } = request;
        let mut servers = self.servers();
        let entry = servers
            .entry(server.clone())
            .or_insert_with(|| ServerInstances { pool: InstancePool::new(max_instances), running: HashMap::new() });
        entry.pool.set_max(max_instances);
        let (id, evicted) = match entry.pool.lease(request) {
            LeaseDecision::Use(id) => (id, None),
            LeaseDecision::Start { id, evicted } => (id, evicted.and_then(|evicted| entry.running.remove(&evicted))),
            LeaseDecision::AskRoots => return Decided::AskRoots,
            LeaseDecision::Full => return Decided::Full,
        };
        let instances = Arc::clone(self);
        let instance = entry.running.entry(id).or_insert_with(|| {
            let clients = Arc::new(InstanceClients::new(Arc::downgrade(&instances), server.clone(), id));
            Arc::new(Instance { id, server: server.clone(), clients, host: tokio::sync::OnceCell::new() })
        });
        instance.clients.add(route);
        let is_answered = AtomicBool::new(false);
        let lease = InstanceLease { instance: Arc::clone(instance), instances, tag: route.tag, is_answered };
        Decided::Leased { lease, evicted }
    }

    /// Records the roots that an instance was told. It serves clients with the same roots only from now on.
    fn bind_roots(&self, server: &ServerName, id: u64, answer: &RawJson) {
        if let Some(entry) = self.servers().get_mut(server) {
            entry.pool.bind_roots(id, RootsDigest::from_answer(answer));
        }
    }

    /// Notes that a call waits for its client to return.
    pub fn park(&self, server: &ServerName, tag: CallTag) {
        if let Some(entry) = self.servers().get_mut(server)
            && let Some(id) = entry.instance_of(tag)
        {
            entry.pool.park(id, tag.0, Instant::now());
        }
    }

    /// Notes that the client of a parked call has returned.
    pub fn resume(&self, server: &ServerName, tag: CallTag) {
        if let Some(entry) = self.servers().get_mut(server)
            && let Some(id) = entry.instance_of(tag)
        {
            entry.pool.resume(id, tag.0);
        }
    }

    fn release(self: &Arc<Self>, lease: &InstanceLease) {
        let InstanceLease { instance, tag, .. } = lease;
        instance.clients.remove(*tag);
        let idle = self.servers().get_mut(&instance.server).and_then(|entry| {
            if !lease.is_answered.load(Ordering::Relaxed) {
                entry.pool.reserve(instance.id);
            }
            entry.pool.resume(instance.id, tag.0);
            let is_idle = entry.pool.release(instance.id, Instant::now());
            is_idle.then(|| entry.pool.idle_timeout(instance.id, self.limits.idle_timeout)).flatten()
        });
        self.released.notify_waiters();
        if let Some(idle) = idle {
            let instances = Arc::downgrade(self);
            drop(self.runtime.spawn(async move {
                tokio::time::sleep(idle).await;
                if let Some(instances) = instances.upgrade() {
                    instances.close_idle(Instant::now());
                }
            }));
        }
    }

    /// Closes the instances that were not used for a while.
    fn close_idle(&self, now: Instant) {
        let mut closed = Vec::new();
        for entry in self.servers().values_mut() {
            let expired = entry.pool.take_expired(now, self.limits.idle_timeout);
            closed.extend(expired.iter().filter_map(|id| entry.running.remove(id)));
        }
        self.close_later(closed);
    }

    /// Closes the instances of a session that has ended.
    pub fn end_session(&self, session: u64) {
        let mut closed = Vec::new();
        for entry in self.servers().values_mut() {
            closed.extend(entry.pool.take_of_session(session).iter().filter_map(|id| entry.running.remove(id)));
        }
        if !closed.is_empty() {
            self.close_later(closed);
            self.released.notify_waiters();
        }
    }

    fn close_later(&self, instances: impl IntoIterator<Item = Arc<Instance>>) {
        for instance in instances {
            if let Some(host) = instance.host.get().cloned() {
                drop(self.runtime.spawn(async move { host.close().await }));
            }
        }
    }

    /// Tells the instances that a client uses that its roots have changed.
    pub fn notify_roots_changed(&self, connection: u64) {
        let servers = self.servers();
        let held = servers.values().flat_map(|entry| {
            entry.pool.held_by(connection).into_iter().filter_map(|id| entry.running.get(&id).map(Arc::clone))
        });
        let held: Vec<Arc<Instance>> = held.collect();
        drop(servers);
        for instance in held {
            if let Some(connection) = instance.connection() {
                connection.notify_roots_changed();
            }
        }
    }

    /// Returns the number of running instances of each server that has some.
    pub fn counts(&self) -> Vec<(ServerName, usize)> {
        let servers = self.servers();
        let mut counts: Vec<_> = servers.iter().map(|(name, entry)| (name.clone(), entry.running.len())).collect();
        counts.retain(|(_, count)| *count > 0);
        counts.sort();
        counts
    }

    /// Closes all instances.
    pub async fn close(&self) {
        let all: Vec<Arc<Instance>> =
            self.servers().drain().flat_map(|(_, entry)| entry.running.into_values()).collect();
        for instance in all {
            if let Some(host) = instance.host.get() {
                host.close().await;
            }
        }
    }
}

/// A request to the pool of one server.
struct PoolRequest {
    max_instances: usize,
    request: LeaseRequest,
}

enum Decided {
    Leased { lease: InstanceLease, evicted: Option<Arc<Instance>> },
    AskRoots,
    Full,
}

impl Instance {
    fn connection(&self) -> Option<wharf::Connection> {
        self.host.get()?.connection(self.server.as_str()).ok()
    }
}

impl InstanceLease {
    /// Starts the host of the instance, unless another call has.
    async fn start(&self, builder: HostBuilder) -> Result<(), RpcError> {
        let Instance { host, clients, .. } = &*self.instance;
        let start = || {
            let builder = builder.gate(Arc::new(AllowAllGate)).services(clients.services());
            Box::pin(builder.start())
        };
        let started = host.get_or_try_init(start).await;
        started.map(drop).map_err(|error| {
            rpc_error(wharf::wire::code::INTERNAL, format!("cannot start an instance of the server: {error}"))
        })
    }

    /// Notes that the server has responded. An instance whose call has no response is kept from other clients.
    pub fn set_answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Returns the host of the instance.
    pub fn host(&self) -> Option<&Host> {
        self.instance.host.get()
    }
}

impl Drop for InstanceLease {
    fn drop(&mut self) {
        self.instances.release(self);
    }
}
