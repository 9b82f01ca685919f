//! The servers of each project, shared by the clients of that project.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio::time::sleep;
use wharf::{AskPolicy, Host, rules_from_config};
use wharf_config::{Config, ConfigPaths, ConfigWatcher};
use wharf_gateway::{Gateway, GatewayAsker, InstanceKey};
use wharf_spec::{ServerEntry, UntrustedText};
use wharf_terminal::failure::Failure;
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost, ReloadTrigger, watch_config_files};
use wharf_terminal::one_shot_host::{ManagedHostOptions, instance_builders, start_managed};
use wharf_terminal::session::CommandSession;

use super::environment_of_servers;
use super::referenced_variables::ReferencedVariables;
use super::status::ProjectStatus;
use super::view::ServedView;
use super::view_cache::ViewCache;

/// Maximum number of projects.
const MAX_PROJECTS: usize = 256;

/// Maximum number of commands that wait for a project.
const MAX_QUEUED_COMMANDS: usize = 8;

/// Everything that decides which servers a client gets. Clients with the same key share them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ProjectKey {
    project: PathBuf,
    user: PathBuf,
    flags: Vec<PathBuf>,
    only_flags: bool,
    variable: Option<String>,
    approvals: PathBuf,
    variables: ReferencedVariables,
}

impl ProjectKey {
    /// Returns the key of a session's project. Blocks.
    fn new(session: &CommandSession) -> Self {
        let places: &ConfigPaths = &session.configuration.places;
        // Without a configuration no server starts.
        let config = session.configuration.config().ok();
        let variables = config.map(|config| ReferencedVariables::new(config, &session.environment));
        Self {
            variables: variables.unwrap_or_default(),
            project: places.project.clone(),
            user: places.user.clone(),
            flags: places.flags.clone(),
            only_flags: places.only_flags,
            variable: places.variable.clone(),
            approvals: places.approvals.clone(),
        }
    }
}

/// The projects that have clients.
#[derive(Default)]
pub struct ProjectTable {
    open: Mutex<HashMap<ProjectKey, Arc<ProjectSlot>>>,
}

/// The place of a project that is starting or running.
#[derive(Default)]
struct ProjectSlot {
    project: OnceCell<ServedProject>,
    clients: Mutex<usize>,
}

/// A client's share in a project. Must be released.
pub struct ProjectLease {
    table: Arc<ProjectTable>,
    key: ProjectKey,
    slot: Arc<ProjectSlot>,
}

impl ProjectTable {
    fn open_projects(&self) -> MutexGuard<'_, HashMap<ProjectKey, Arc<ProjectSlot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the project of a session, and starts its servers for the first client.
    ///
    /// # Errors
    ///
    /// Fails if the configuration of the project is invalid, or there are too many projects.
    pub async fn join(
        self: &Arc<Self>,
        session: CommandSession,
        view: &ServedView,
    ) -> Result<(ProjectLease, Gateway, Vec<String>), Failure> {
        let keyed = wharf_threads::run_blocking(move || (ProjectKey::new(&session), session)).await;
        let (key, session) = keyed.map_err(Failure::other)?;
        let lease = self.lease(key)?;
        let joined = lease.enter(session, view).await;
        match joined {
            Ok((gateway, warnings)) => Ok((lease, gateway, warnings)),
            Err(failure) => {
                lease.release(Duration::ZERO).await;
                Err(failure)
            }
        }
    }

    fn lease(self: &Arc<Self>, key: ProjectKey) -> Result<ProjectLease, Failure> {
        let mut open = self.open_projects();
        if open.len() >= MAX_PROJECTS && !open.contains_key(&key) {
            return Err(Failure::other(format_args!(
                "the gateway serves {MAX_PROJECTS} projects already; end the clients of one (`wharf serve --status` lists \
                 them) to have this one served too"
            )));
        }
        let slot = Arc::clone(open.entry(key.clone()).or_default());
        *slot.clients() += 1;
        Ok(ProjectLease { table: Arc::clone(self), key, slot })
    }

    /// Returns the projects by directory.
    pub fn status(&self) -> Vec<ProjectStatus> {
        let mut projects: Vec<_> = self.open_projects().iter().map(|(key, slot)| slot.status(key)).collect();
        projects.sort_by(|one, other| one.directory.cmp(&other.directory));
        projects
    }

    /// Returns the running gateways, with the directory of their project.
    pub fn gateways(&self) -> Vec<(String, Gateway)> {
        let running = |(key, slot): (&ProjectKey, &Arc<ProjectSlot>)| {
            Some((key.project.display().to_string(), slot.project.get()?.gateway.clone()))
        };
        self.open_projects().iter().filter_map(running).collect()
    }

    /// Stops the servers of all projects.
    pub async fn close(&self) {
        let open = std::mem::take(&mut *self.open_projects());
        let closing = open.into_values().map(|slot| tokio::spawn(async move { slot.close().await }));
        for closed in closing.collect::<Vec<_>>() {
            let _ = closed.await;
        }
    }
}

impl ProjectSlot {
    fn clients(&self) -> MutexGuard<'_, usize> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self, key: &ProjectKey) -> ProjectStatus {
        let gateway = self.project.get().map(|project| &project.gateway);
        let servers = gateway.map(|gateway| gateway.host().status()).unwrap_or_default();
        let instances = gateway.map(Gateway::instance_counts).unwrap_or_default();
        ProjectStatus {
            instances: instances.into_iter().map(|(server, count)| (server.to_string(), count)).collect(),
            directory: key.project.display().to_string(),
            clients: *self.clients(),
            servers: servers.into_iter().map(|server| server.name.to_string()).collect(),
        }
    }

    async fn close(&self) {
        if let Some(project) = self.project.get() {
            project.gateway.close().await;
            project.session.close().await;
        }
    }
}

impl ProjectLease {
    async fn enter(&self, session: CommandSession, view: &ServedView) -> Result<(Gateway, Vec<String>), Failure> {
        let project = self.slot.project.get_or_try_init(|| ServedProject::start(session, view)).await?;
        let gateway = project.open_view(view).await?;
        Ok((gateway, project.warnings(&view.request.servers)))
    }

    /// Opens another view on the project.
    ///
    /// # Errors
    ///
    /// Fails if its profile does not exist or is invalid.
    pub async fn open_view(&self, view: &ServedView) -> Result<Gateway, Failure> {
        let project = self.slot.project.get().ok_or_else(|| Failure::other("the project has not started"))?;
        project.open_view(view).await
    }

    /// Leaves the project. Its servers stop `linger` after the last client.
    pub async fn release(self, linger: Duration) {
        let is_last = {
            let mut clients = self.slot.clients();
            *clients -= 1;
            *clients == 0
        };
        if is_last {
            sleep(linger).await;
            if self.remove_unused() {
                self.slot.close().await;
            }
        }
    }

    /// Removes the project from the table, if it still has no client.
    fn remove_unused(&self) -> bool {
        let mut open = self.table.open_projects();
        // A client joins under the lock of the table.
        let is_unused = *self.slot.clients() == 0;
        let is_open = open.get(&self.key).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot));
        is_unused && is_open && open.remove(&self.key).is_some()
    }
}

/// The running servers of a project.
struct ServedProject {
    session: Arc<CommandSession>,
    gateway: Gateway,
    keeper: mpsc::Sender<WidenSelection>,
    /// The gateway as the clients of each view see it.
    views: ViewCache,
    loaded: Arc<Mutex<LoadedState>>,
}

/// The configuration that a project runs.
struct LoadedState {
    config: Arc<Config>,
    entries: Vec<ServerEntry>,
    failures: ServerFailures,
}

impl LoadedState {
    fn new(known: &LoadedConfig) -> Self {
        let (config, entries) = (Arc::clone(&known.config), known.entries.clone());
        Self { config, entries, failures: describe_failures(known) }
    }
}

/// Servers that could not be resolved, with the reason.
type ServerFailures = Vec<(String, String)>;

/// Adds servers to those that a project runs.
struct WidenSelection {
    servers: Vec<String>,
    done: oneshot::Sender<()>,
}

impl ServedProject {
    /// Starts the selected servers of a project.
    async fn start(session: CommandSession, view: &ServedView) -> Result<Self, Failure> {
        let session = Arc::new(session);
        let (reader, reading) = (session.configuration.reader.clone(), Arc::clone(&session));
        let loaded = wharf_threads::run_blocking(move || {
            // The watcher starts first, so that no change is missed.
            let watcher = ConfigWatcher::new(reader);
            reading.configuration.config().map(|config| (watcher, Arc::clone(config)))
        });
        let (watcher, config) = loaded.await.map_err(Failure::other)??;
        let servers = view.needed_servers(&config)?;
        let known = LoadedConfig::resolve(&session, config, &servers).await;
        let (asker, environment) = (GatewayAsker::new(), environment_of_servers(&session.environment)?);
        let options = ManagedHostOptions {
            asker: Some(Arc::new(asker.clone())),
            when_asked: AskPolicy::Ask,
            sink: None,
            has_agent: true,
            allowed: None,
            environment: Some(environment.clone()),
        };
        let host = start_managed(&session, &known.entries, options).await?;
        apply_profile_rules(&session, &host, &known.config);
        let loaded = Arc::new(Mutex::new(LoadedState::new(&known)));
        let (keeper, commands) = mpsc::channel(MAX_QUEUED_COMMANDS);
        let keeping =
            ProjectKeeper { session: Arc::clone(&session), host: host.clone(), servers, loaded: Arc::clone(&loaded) };
        tokio::spawn(keeping.run(known, watcher, commands));
        let (building, current) = (Arc::clone(&session), Arc::clone(&loaded));
        let instances = move |key: &InstanceKey| {
            // The configuration may have changed since the last instance.
            let entries = current.lock().unwrap_or_else(PoisonError::into_inner).entries.clone();
            instance_builders(&building, &entries, &environment)(&key.server)
        };
        let gateway = Gateway::builder(host).asker(asker).instances(instances).build();
        Ok(Self { session, gateway, keeper, views: ViewCache::default(), loaded })
    }

    /// Returns the gateway for a view. Starts the servers that it needs and that do not run yet.
    async fn open_view(&self, view: &ServedView) -> Result<Gateway, Failure> {
        let config = Arc::clone(&self.loaded().config);
        let (servers, options) = (view.needed_servers(&config)?, view.options(&config)?);
        let (done, widened) = oneshot::channel();
        // The keeper runs as long as this exists.
        let _ = self.keeper.send(WidenSelection { servers, done }).await;
        let _ = widened.await;
        Ok(self.views.open(view, &config, || self.gateway.with_view(options)))
    }

    fn loaded(&self) -> MutexGuard<'_, LoadedState> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the selected servers that cannot be served.
    fn warnings(&self, servers: &[String]) -> Vec<String> {
        let loaded = self.loaded();
        let is_selected = |id: &String| servers.is_empty() || servers.contains(id);
        let selected = loaded.failures.iter().filter(|(id, _)| is_selected(id));
        selected.map(|(id, reason)| format!("{id}: {reason}")).collect()
    }
}

fn describe_failures(known: &LoadedConfig) -> ServerFailures {
    let reason = |failure: &Failure| UntrustedText::new(failure.error.message.as_str()).to_string();
    known.failures.iter().map(|(id, failure)| (id.clone(), reason(failure))).collect()
}

/// Sets the rules of all profiles. A profile whose rules cannot be read denies everything.
fn apply_profile_rules(session: &CommandSession, host: &Host, config: &Config) {
    for (name, profile) in &config.settings.profiles {
        let Ok(profile) = profile else { continue };
        if let Err(problem) = host.set_rule_set(name, rules_from_config(&profile.rules)) {
            let (name, problem) = (UntrustedText::new(name), UntrustedText::new(problem.to_string()));
            session.console.warn(format_args!("the profile {name} allows nothing: {problem}"));
        }
    }
}

/// Applies changes of the configuration and of the selection to a project's host.
struct ProjectKeeper {
    session: Arc<CommandSession>,
    host: Host,
    /// The selected servers. Empty selects all.
    servers: Vec<String>,
    loaded: Arc<Mutex<LoadedState>>,
}

impl ProjectKeeper {
    async fn run(mut self, known: LoadedConfig, watcher: ConfigWatcher, mut commands: mpsc::Receiver<WidenSelection>) {
        let session = Arc::clone(&self.session);
        let mut changes = watch_config_files(watcher);
        let mut managed = ManagedHost::new(&session, self.host.clone(), known, &self.servers);
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => {
                        if self.select(&command.servers) {
                            managed = self.selected_host(&session, &managed).await;
                        }
                        // The client may be gone.
                        let _ = command.done.send(());
                    }
                    None => return,
                },
                Some(()) = changes.recv() => self.reload(&managed).await,
            }
        }
    }

    /// Adds servers to the selection. Reports whether it has changed.
    fn select(&mut self, servers: &[String]) -> bool {
        let is_all = |selection: &[String]| selection.is_empty();
        if is_all(&self.servers) || (!is_all(servers) && servers.iter().all(|id| self.servers.contains(id))) {
            return false;
        }
        if is_all(servers) {
            self.servers.clear();
        } else {
            self.servers.extend(servers.iter().cloned());
            self.servers.sort();
            self.servers.dedup();
        }
        true
    }

    /// Returns the host with the selected servers running.
    async fn selected_host<'a>(&self, session: &'a CommandSession, before: &ManagedHost<'a>) -> ManagedHost<'a> {
        let config = Arc::clone(&before.loaded_config().config);
        let known = LoadedConfig::resolve(session, config, &self.servers).await;
        let managed = ManagedHost::new(session, self.host.clone(), known, &self.servers);
        managed.reapply_config().await;
        self.note_loaded(&managed);
        managed
    }

    async fn reload(&self, managed: &ManagedHost<'_>) {
        match managed.reload(ReloadTrigger::Noticed).await {
            Ok(report) => report.new_problems.iter().for_each(|problem| self.warn(problem)),
            Err(failure) => self.warn(&failure.error.message),
        }
        self.note_loaded(managed);
    }

    fn warn(&self, text: &str) {
        self.session.console.warn(UntrustedText::new(text));
    }

    fn note_loaded(&self, managed: &ManagedHost<'_>) {
        let loaded = LoadedState::new(&managed.loaded_config());
        apply_profile_rules(&self.session, &self.host, &loaded.config);
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = loaded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_beyond_the_limit_is_told_what_to_do() {
        let table = Arc::<ProjectTable>::default();
        let key = |number: usize| ProjectKey {
            project: format!("/p{number}").into(),
            user: PathBuf::new(),
            flags: Vec::new(),
            only_flags: false,
            variable: None,
            approvals: PathBuf::new(),
            variables: ReferencedVariables::default(),
        };
        for number in 0..MAX_PROJECTS {
            assert!(table.lease(key(number)).is_ok());
        }
        assert!(table.lease(key(0)).is_ok(), "a further client of a project");
        let refused = table.lease(key(MAX_PROJECTS)).map(drop).unwrap_err();
        assert!(refused.error.message.contains("`wharf serve --status`"), "{}", refused.error.message);
    }
}
