//! The gateway: a host, and how its clients see it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use wharf::spec::ServerName;
use wharf::tools::Principal;
use wharf::wire::LogMessage;
use wharf::{Host, HostBuilder, LogSink, RequestSource};
use wharf_serve::{ClientConnection, HeaderMap, Service};

use crate::bridge::MAX_PARKED_TIME;
use crate::catalog_view::NameScheme;
use crate::client_view::{ClientView, ViewOptions};
use crate::connection::GatewayConnection;
use crate::conversation::ParkedCalls;
use crate::instances::{InstanceFactory, InstanceKey, InstanceLimits, Instances};
use crate::principal_load::PrincipalLoads;
use crate::questions::{GatewayAsker, PendingQuestions};
use crate::resource_updates::ResourceUpdates;
use crate::route::RouteTable;
use crate::sealed::SealingKey;
use crate::tasks::GatewayTasks;

/// Options of a gateway.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// Name to report to clients.
    pub name: String,
    /// Version to report to clients.
    pub version: String,
    /// Names of tools and prompts.
    pub names: NameScheme,
    /// Maximum time that a client has to answer a question, and to return to a call that waits for its answers.
    pub question_timeout: Duration,
    /// Maximum number of instances per server, unless its configuration says otherwise.
    pub max_instances: usize,
    /// Time after which an unused instance is closed.
    pub instance_idle_timeout: Duration,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            name: "wharf".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            names: NameScheme::Server,
            question_timeout: MAX_PARKED_TIME,
            max_instances: 4,
            instance_idle_timeout: Duration::from_secs(60),
        }
    }
}

/// Serves a host to any number of clients. Cloning it shares the host.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<GatewayShared>,
    view: Arc<ClientView>,
}

/// What all connections share.
pub(crate) struct GatewayShared {
    pub host: Host,
    pub options: GatewayOptions,
    pub runtime: Handle,
    pub sealing_key: SealingKey,
    pub routes: RouteTable,
    pub parked: ParkedCalls,
    pub instances: Arc<Instances>,
    pub updates: ResourceUpdates,
    pub tasks: GatewayTasks,
    questions: PendingQuestions,
    loads: PrincipalLoads,
}

/// A gateway that does not keep its view. See [`Gateway::downgrade`].
#[derive(Clone)]
pub struct WeakGateway {
    shared: Weak<GatewayShared>,
    view: Weak<ClientView>,
}

impl WeakGateway {
    /// Returns the gateway, if it or a session of it still exists.
    pub fn upgrade(&self) -> Option<Gateway> {
        Some(Gateway { shared: self.shared.upgrade()?, view: self.view.upgrade()? })
    }
}

/// Builder of a [`Gateway`].
pub struct GatewayBuilder {
    host: Host,
    options: GatewayOptions,
    factory: Option<InstanceFactory>,
    asker: Option<GatewayAsker>,
}

impl GatewayBuilder {
    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: GatewayOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the factory of instances. Without it, servers of the handshake revisions cannot ask clients anything.
    #[must_use]
    pub fn instances(mut self, factory: impl Fn(&InstanceKey) -> Option<HostBuilder> + Send + Sync + 'static) -> Self {
        self.factory = Some(Arc::new(factory));
        self
    }

    /// Sets the asker that the host was built with, so that clients are asked for permission.
    #[must_use]
    pub fn asker(mut self, asker: GatewayAsker) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Creates the gateway. Must be called within the runtime that serves the clients.
    pub fn build(self) -> Gateway {
        let Self { host, options, factory, asker } = self;
        let (runtime, questions) = (Handle::current(), PendingQuestions::default());
        let limits =
            InstanceLimits { max_instances: options.max_instances, idle_timeout: options.instance_idle_timeout };
        let shared = Arc::new(GatewayShared {
            sealing_key: SealingKey::random(),
            routes: RouteTable::new(questions.clone(), options.question_timeout),
            parked: ParkedCalls::new(options.question_timeout),
            instances: Arc::new(Instances::new(factory, limits, runtime.clone())),
            updates: ResourceUpdates::default(),
            tasks: GatewayTasks::default(),
            host,
            options,
            runtime,
            questions,
            loads: PrincipalLoads::default(),
        });
        shared.host.set_log_sink(Arc::new(RoutedLogs(Arc::downgrade(&shared))));
        if let Some(asker) = asker {
            asker.set_gateway(&shared);
        }
        let view = ViewOptions { names: shared.options.names, ..ViewOptions::default() };
        let view = Arc::new(ClientView::new(shared.host.clone(), view, None));
        Gateway { shared, view }
    }
}

/// Relays log messages that belong to a call to its client.
struct RoutedLogs(Weak<GatewayShared>);

impl LogSink for RoutedLogs {
    fn log(&self, source: RequestSource<'_>, message: LogMessage) {
        let route = source.call.and_then(|tag| self.0.upgrade()?.routes.find(tag.0));
        if let Some(route) = route {
            route.log(&message);
        }
    }
}

/// Numbers the sessions. No two sessions may be the same principal, whatever their views.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

impl Gateway {
    /// Creates a gateway whose clients share all servers. Must be called within the runtime that serves the clients.
    pub fn new(host: Host, options: GatewayOptions) -> Self {
        Self::builder(host).options(options).build()
    }

    /// Returns a builder.
    pub fn builder(host: Host) -> GatewayBuilder {
        GatewayBuilder { host, options: GatewayOptions::default(), factory: None, asker: None }
    }

    /// Returns the same gateway for clients that see it in another way.
    #[must_use]
    pub fn with_view(&self, options: ViewOptions) -> Self {
        let load = options.principal.as_ref().map(|principal| self.shared.loads.find(principal));
        let view = Arc::new(ClientView::new(self.shared.host.clone(), options, load));
        Self { shared: Arc::clone(&self.shared), view }
    }

    /// Returns a handle that keeps neither the gateway nor its view.
    pub fn downgrade(&self) -> WeakGateway {
        WeakGateway { shared: Arc::downgrade(&self.shared), view: Arc::downgrade(&self.view) }
    }

    pub(crate) fn parts(&self) -> (Arc<GatewayShared>, Arc<ClientView>) {
        (Arc::clone(&self.shared), Arc::clone(&self.view))
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.shared.host
    }

    /// Returns the questions that wait for a client's answer.
    pub fn questions(&self) -> PendingQuestions {
        self.shared.questions.clone()
    }

    /// Returns the number of calls that wait for a stateless client to return.
    pub fn parked_calls(&self) -> usize {
        self.shared.parked.len()
    }

    /// Returns the number of running instances.
    pub fn instances(&self) -> usize {
        self.instance_counts().iter().map(|(_, count)| count).sum()
    }

    /// Returns the number of running instances of each server that has some, by name.
    pub fn instance_counts(&self) -> Vec<(ServerName, usize)> {
        self.shared.instances.counts()
    }

    /// Cancels the calls that wait for answers, and all tasks, and closes all instances. The host stays open.
    pub async fn close(&self) {
        self.shared.parked.close();
        self.shared.tasks.close();
        self.shared.instances.close().await;
    }
}

impl Service for Gateway {
    fn has_sessions(&self) -> bool {
        true
    }

    fn open_session(&self) -> Option<Arc<dyn ClientConnection>> {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let principal = match &self.view.options.principal {
            Some(name) => Principal::client(format!("{name}/session-{number}")),
            None => Principal::client(format!("session-{number}")),
        };
        Some(Arc::new(GatewayConnection::session(self, principal, number)))
    }

    fn open_request(&self, _: &HeaderMap) -> Option<Arc<dyn ClientConnection>> {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let principal = Principal::client(self.view.options.principal.as_deref().unwrap_or("stateless"));
        Some(Arc::new(GatewayConnection::stateless(self, principal, number)))
    }
}
