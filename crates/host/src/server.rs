//! One server, shared by the components of the host and the supervisor task.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use wharf_client::{CallError, ConnectOptions, Connection, LocalServer, connect_local, connect_to};
use wharf_spec::{ActivationState, Glob, HttpSpec, ServerName, ServerOrigin, ServerSettings, ServerSpec};

use crate::account::LoginState;
use crate::catalog::ToolFilter;
use crate::context::HostContext;
use crate::error::HostError;
use crate::resource_subscriptions::ResourceSubscriptions;
use crate::results::ToolResultCache;
use crate::section_publishing::SectionSource;
use crate::server_error::ServerError;
use crate::stats::ServerStats;
use crate::supervise::{ServerSnapshot, ServerState, SupervisionPolicy, SupervisorCommand};
use crate::usage::ServerUsage;

/// Creates an in-process server, once for every connection.
pub type LocalFactory = Arc<dyn Fn() -> Result<Box<dyn LocalServer>, String> + Send + Sync>;

/// The way to connect to a server.
#[derive(Clone)]
pub(crate) enum ServerEndpoint {
    /// Start or dial it.
    Spec(Box<ServerSpec>),
    /// Create it in this process.
    Local(LocalFactory),
}

/// Desired configuration of one server, from the builder or from [`Host::set_servers`](crate::host::Host::set_servers).
#[derive(Clone)]
pub(crate) struct DesiredServer {
    pub endpoint: ServerEndpoint,
    pub settings: ServerSettings,
    /// Manual override inherited from the server that this one replaces.
    pub manual_override: Option<ActivationState>,
}

/// A server of the host. It can be commanded, awaited and called.
pub(crate) struct Server {
    pub name: ServerName,
    /// Distinguishes a server from its replacement of the same name.
    pub generation: u64,
    pub endpoint: ServerEndpoint,
    pub settings: ArcSwap<EffectiveSettings>,
    /// Messages to the supervisor. Unbounded, but limited by the rate of commands.
    pub supervisor_tx: mpsc::UnboundedSender<SupervisorMessage>,
    /// Numbers of commands sent and completed.
    pub commands_sent: Mutex<u64>,
    pub commands_done: watch::Sender<u64>,
    pub section_source: SectionSource,
    /// Signals that a call needs the server.
    pub demand: Notify,
    pub snapshot: watch::Receiver<ServerSnapshot>,
    /// Epoch whose tools are published. Calls wait for it.
    pub listed: watch::Sender<u64>,
    /// Epoch whose lists are all published.
    pub listed_all: watch::Sender<u64>,
    /// Time from the start of the first successful connection attempt until its lists were published.
    pub startup_time: OnceLock<Duration>,
    pub usage: ServerUsage,
    pub stats: ServerStats,
    pub watched: ResourceSubscriptions,
    pub results: ToolResultCache,
    pub login_state: LoginState,
}

/// A message to the supervisor.
#[derive(Debug, Clone)]
pub(crate) enum SupervisorMessage {
    Do(SupervisorCommand),
    /// A call on the connection of this epoch was rejected for lack of a login.
    LoginRequired {
        epoch: u64,
        error: CallError,
    },
    /// A call was rejected for lack of a scope that a person can grant.
    ScopeRequired(CallError),
    /// Disconnect the server and end the supervision.
    Leave,
}

/// Effective settings of a server, in the form that calls need.
pub(crate) struct EffectiveSettings {
    /// Settings as configured.
    configured: ServerSettings,
    /// Manual override, valid until the configured setting changes.
    manual_override: Option<ActivationState>,
    /// Settings in effect.
    pub effective: ServerSettings,
    pub filter: ToolFilter,
    pub tool_timeouts: Vec<(Glob, Duration)>,
    pub concurrency: Option<Arc<Semaphore>>,
}

impl EffectiveSettings {
    pub fn new(configured: ServerSettings, manual_override: Option<ActivationState>) -> Self {
        let mut effective = configured.clone();
        if let (Some(admission), true) = (manual_override, configured.admission != ActivationState::Unapproved) {
            effective.admission = admission;
        }
        let filter = ToolFilter::from_settings(&effective);
        let tool_timeouts = effective.tool_timeouts.iter().map(|(glob, time)| (Glob::new(glob), *time)).collect();
        let concurrency = effective.max_concurrent.map(|most| Arc::new(Semaphore::new(most.max(1))));
        Self { configured, manual_override, effective, filter, tool_timeouts, concurrency }
    }

    /// Reports whether these are the configured settings already.
    pub fn is_configured_as(&self, desired: &ServerSettings) -> bool {
        self.configured == *desired
    }

    /// Returns the manual override for a server with these settings, or `None` if their admission differs from the
    /// current one.
    pub fn override_for(&self, desired: &ServerSettings) -> Option<ActivationState> {
        self.manual_override.filter(|_| desired.admission == self.configured.admission)
    }

    /// Returns the configured timeout of a tool, if any.
    pub fn timeout(&self, tool: &str) -> Option<Duration> {
        let own = self.tool_timeouts.iter().find(|(glob, _)| glob.matches(tool)).map(|(_, time)| *time);
        own.or(self.effective.timeout)
    }

    pub fn supervision_policy(&self) -> SupervisionPolicy {
        let ServerSettings { admission, lazy, reconnect, health_check, idle_stop, .. } = self.effective;
        SupervisionPolicy { admission, lazy, reconnect, health_check, idle_stop }
    }
}

impl ServerEndpoint {
    /// Reports whether both connect to the same server. In-process factories are the same if they share their memory.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Spec(one), Self::Spec(other)) => one == other,
            (Self::Local(one), Self::Local(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Returns the HTTP spec of a remote server.
    pub fn http(&self) -> Option<&HttpSpec> {
        let Self::Spec(spec) = self else { return None };
        match &**spec {
            ServerSpec::Http(spec) => Some(spec),
            ServerSpec::Stdio(_) => None,
        }
    }

    /// Returns the name of the transport.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Local(_) => "in-process",
            Self::Spec(spec) => match &**spec {
                ServerSpec::Stdio(_) => "stdio",
                ServerSpec::Http(http) if http.form == wharf_spec::HttpTransport::Sse => "sse",
                ServerSpec::Http(_) => "http",
            },
        }
    }
}

impl Server {
    /// Returns the place of the server's definition.
    pub fn origin(&self) -> ServerOrigin {
        self.settings.load().effective.origin.clone()
    }

    /// Removes the server's secrets from a text of its own. While it is not connected, only lists without secrets are
    /// known.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.live_connection() {
            Some(live) => Cow::Owned(live.connection.redactor().redact(text).into_owned()),
            None => Cow::Borrowed(text),
        }
    }

    /// Starts, dials or creates the server and negotiates a protocol revision.
    ///
    /// Dropping the future stops everything it has started.
    pub async fn connect(&self, context: &HostContext) -> Result<Connection, ServerError> {
        self.record_login(context).await;
        let options = self.connect_options(context);
        let connected = match &self.endpoint {
            ServerEndpoint::Spec(spec) => connect_to(spec, options).await,
            ServerEndpoint::Local(make) => connect_local(make().map_err(ServerError::NotMade)?, options).await,
        };
        connected.map_err(|error| ServerError::NotConnected(Arc::new(error)))
    }

    fn connect_options(&self, context: &HostContext) -> ConnectOptions {
        let mut options = context.connect_options(self);
        let settings = &self.settings.load().effective;
        if let Some(time) = settings.startup_timeout {
            options.limits.startup = time;
        }
        if let Some(time) = settings.timeout {
            options.limits.call_timeout = time;
            options.limits.call_total_timeout = options.limits.call_total_timeout.max(time);
        }
        if let Some(bytes) = settings.max_message {
            options.limits.set_message(bytes);
        }
        options
    }

    /// Sends a command to the supervisor. Returns its number for [`Server::wait_for_command`].
    pub fn send_command(&self, command: SupervisorCommand) -> u64 {
        // Locked during the send, so that commands are processed in the order of their numbers.
        let mut sent = self.commands_sent.lock().unwrap_or_else(PoisonError::into_inner);
        *sent += 1;
        // Fails only if the server is being removed, and then the command is irrelevant.
        let _ = self.supervisor_tx.send(SupervisorMessage::Do(command));
        *sent
    }

    /// Tells the supervisor that a call was rejected for lack of a login or of a scope.
    pub fn report_rejected(&self, epoch: u64, error: &CallError) {
        if error.needs_login() {
            let _ = self.supervisor_tx.send(SupervisorMessage::LoginRequired { epoch, error: error.clone() });
        } else if error.needs_scope().is_some() {
            let _ = self.supervisor_tx.send(SupervisorMessage::ScopeRequired(error.clone()));
        }
    }

    /// Tells the supervisor to end permanently.
    pub fn leave(&self) {
        let _ = self.supervisor_tx.send(SupervisorMessage::Leave);
    }

    /// Applies new settings.
    pub fn apply_settings(&self, desired: ServerSettings) -> u64 {
        let manual_override = self.settings.load().override_for(&desired);
        self.set_settings(desired, manual_override)
    }

    /// Enables or disables the server until its configured setting changes.
    pub fn override_admission(&self, admission: ActivationState) -> u64 {
        self.set_settings(self.settings.load().configured.clone(), Some(admission))
    }

    fn set_settings(&self, desired: ServerSettings, manual_override: Option<ActivationState>) -> u64 {
        let before = self.settings.load();
        let mut settings = EffectiveSettings::new(desired, manual_override);
        if settings.effective.max_concurrent == before.effective.max_concurrent {
            // Share the semaphore, so that calls in progress count towards the limit.
            settings.concurrency = before.concurrency.clone();
        }
        let keeping = settings.supervision_policy();
        self.settings.store(Arc::new(settings));
        self.send_command(SupervisorCommand::Keep(keeping))
    }

    /// Waits until the supervisor has processed the command of this number.
    pub async fn wait_for_command(&self, number: u64) {
        let mut commands_done = self.commands_done.subscribe();
        let mut snapshot = self.snapshot.clone();
        loop {
            if *commands_done.borrow_and_update() >= number {
                return;
            }
            tokio::select! {
                _ = commands_done.changed() => {}
                // The supervisor has ended.
                changed = snapshot.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Waits for the current connection attempt, if there is one. Returns an error unless the server is ready.
    pub async fn wait_for_attempt(&self) -> Result<(), HostError> {
        let mut snapshot = self.snapshot.clone();
        let found = snapshot.wait_for(|snapshot| snapshot.state != ServerState::Connecting).await;
        let snapshot = found.map_err(|_| HostError::Closed)?.clone();
        if snapshot.state == ServerState::Ready { Ok(()) } else { Err(self.unavailable_error(&snapshot)) }
    }

    /// Waits until the server's first connection attempt has ended and, if it is ready, its lists have been read.
    pub async fn wait_until_settled(&self) {
        let mut snapshot = self.snapshot.clone();
        let mut listed = self.listed_all.subscribe();
        loop {
            let (settled, listed_now) = {
                let snapshot = snapshot.borrow_and_update();
                let listed_now = *listed.borrow_and_update() >= snapshot.epoch;
                (snapshot.is_settled(), listed_now || snapshot.state != ServerState::Ready)
            };
            if settled && listed_now {
                return;
            }
            tokio::select! {
                changed = snapshot.changed() => if changed.is_err() { return },
                _ = listed.changed() => {}
            }
        }
    }
}
