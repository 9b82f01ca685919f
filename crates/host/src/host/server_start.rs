//! Creates servers with their supervisors.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};
use wharf_spec::ServerName;

use super::Host;
use crate::account::LoginState;
use crate::resource_subscriptions::ResourceSubscriptions;
use crate::section_publishing::SectionSource;
use crate::server::{DesiredServer, EffectiveSettings, Server};
use crate::stats::ServerStats;
use crate::supervise::{ClosingConnections, ServerSnapshot, Supervisor, SupervisorTask, current_time, supervise};
use crate::usage::ServerUsage;

impl Host {
    /// Adds a server. The name must be free, and the set of servers must not be changed concurrently.
    pub(crate) async fn add_server(&self, name: ServerName, desired: DesiredServer) {
        let server = self.start_server(name, desired).await;
        let context = self.context();
        let mut servers = HashMap::clone(&context.servers.load());
        servers.insert(server.name.clone(), server);
        context.publish_servers(servers);
    }

    /// Creates a server and starts its supervisor.
    pub(crate) async fn start_server(&self, name: ServerName, desired: DesiredServer) -> Arc<Server> {
        let context = Arc::clone(self.context());
        let (supervisor_tx, supervisor_rx) = mpsc::unbounded_channel();
        let settings = EffectiveSettings::new(desired.settings, desired.manual_override);
        let seed = u64::from(context.jitter(Duration::from_secs(1)).subsec_nanos()) + 1;
        let supervisor = Supervisor::new(settings.supervision_policy(), seed, current_time());
        let (snapshot, published) = watch::channel(ServerSnapshot::from_supervisor(&supervisor));
        let server = Arc::new(Server {
            name,
            generation: context.generations.fetch_add(1, Ordering::Relaxed) + 1,
            endpoint: desired.endpoint,
            settings: ArcSwap::from_pointee(settings),
            supervisor_tx,
            demand: tokio::sync::Notify::new(),
            snapshot: published,
            listed: watch::Sender::default(),
            listed_all: watch::Sender::default(),
            startup_time: std::sync::OnceLock::new(),
            commands_sent: Mutex::default(),
            commands_done: watch::Sender::default(),
            section_source: SectionSource::default(),
            usage: ServerUsage::new(),
            stats: ServerStats::default(),
            results: crate::results::ToolResultCache::default(),
            watched: ResourceSubscriptions::new(),
            login_state: LoginState::default(),
        });
        context.publish_cached(&server).await;
        let mut supervisor = supervisor;
        if context.options.lists_lazy && context.publisher.own_section(&server).is_none() {
            supervisor.list_once();
        }
        let mut task = SupervisorTask {
            context,
            server: Arc::clone(&server),
            supervisor,
            messages: supervisor_rx,
            snapshot,
            closing: ClosingConnections::default(),
            check: None,
            login: None,
        };
        task.begin();
        let mut tasks = self.owner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(supervise(task));
        drop(tasks);
        self.context().prepare_inspection();
        server
    }
}
