//! Hosts of commands: one for a single command, or one that keeps servers running.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tokio::time::Instant;
use url::Url;
use wharf::catalog::NameStyle;
use wharf::{
    AskFilter, AskPolicy, Asker, Host, HostBuilder, HostError, ListingMode, ResultLimits, RuleSink, StartError,
};
use wharf_client::{ClientServices, ConnectOptions, Connection};
use wharf_spec::{Environment, ReconnectPolicy, ServerEntry, ServerName};
use wharf_wire::Root;

use crate::accounts::{LoginPageMode, login_visitor_factory};
use crate::config_context::unreadable_rules;
use crate::definition_review::remedy_command;
use crate::failure::Failure;
use crate::progress::{starting_text, with_startup_status};
use crate::session::CommandSession;

/// Start time of a host's servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartMode {
    #[default]
    AtOnce,
    /// On first use. The cached catalog may suffice.
    WhenNeeded,
    /// At once, except for servers that are configured as lazy.
    AsConfigured,
}

/// Options of a host for one command.
#[derive(Default)]
pub struct OneShotOptions {
    /// Services for the servers.
    pub services: ClientServices,
    pub start: StartMode,
    /// The lists that the host requests itself.
    pub lists: ListingMode,
}

impl OneShotOptions {
    /// Options for a call: the host lists the tools once.
    pub fn for_call(services: ClientServices, start: StartMode) -> Self {
        Self { services, start, lists: ListingMode::ToolsOnce }
    }
}

/// A host for one command, and its servers.
pub struct OneShotHost<'a> {
    pub host: Host,
    session: &'a CommandSession,
    entries: Vec<ServerEntry>,
}

impl<'a> OneShotHost<'a> {
    /// Starts a host with these servers.
    ///
    /// # Errors
    ///
    /// Fails if the configuration or its rules are invalid.
    pub async fn start(
        session: &'a CommandSession,
        entries: Vec<ServerEntry>,
        with: OneShotOptions,
    ) -> Result<Self, Failure> {
        let entries: Vec<ServerEntry> =
            entries.into_iter().map(|entry| one_shot_entry(entry, with.start, session)).collect();
        let host = start_host(session, || one_shot_builder(session, &entries, &with)).await?;
        Ok(Self { host, session, entries })
    }

    /// Wraps a host that outlives the command.
    pub fn from_host(session: &'a CommandSession, host: Host, entries: Vec<ServerEntry>) -> Self {
        Self { host, session, entries }
    }

    pub fn entries(&self) -> &[ServerEntry] {
        &self.entries
    }

    /// Checks that decisions can be stored.
    ///
    /// # Errors
    ///
    /// Fails if there is no state directory, or if it is not writable.
    pub fn require_state_dir(&self) -> Result<(), Failure> {
        if self.host.has_state_dir() {
            return Ok(());
        }
        let failure = Failure::other("no writable directory to store the decision in");
        Err(failure.with_hint("set HOME or XDG_STATE_HOME to a directory that you can write to"))
    }

    /// Waits until a server is ready and its tools are listed. A status line shows this on a terminal.
    ///
    /// # Errors
    ///
    /// Fails if the server does not become ready.
    pub async fn ready(&self, name: &ServerName) -> Result<Connection, Failure> {
        let status_text = || starting_text(&[name.as_str()]);
        let ready =
            with_startup_status(self.session, Instant::now(), status_text, self.host.wait_until_ready(name.as_str()))
                .await;
        ready.map_err(|error| self.failure(name, error))
    }

    /// Converts a host error to a failure.
    pub fn failure(&self, name: &ServerName, error: HostError) -> Failure {
        if let HostError::Call { error: failed, .. } = &error
            && let Ok(connection) = self.host.connection(name.as_str())
        {
            return self.session.with_login_hint(Failure::from_call_error(&connection, failed.clone()));
        }
        let spec = self.entries.iter().find(|entry| entry.name == *name).map(|entry| &entry.spec);
        Failure::from_host_error(name.as_str(), spec, &self.session.environment, &error)
    }
}

/// Starts a host with the configured rules and tool names. The session closes it. If the state directory is not
/// writable, prints a warning and starts without it.
///
/// # Errors
///
/// Fails if the configuration or its rules are invalid.
pub async fn start_host(session: &CommandSession, builder: impl Fn() -> HostBuilder) -> Result<Host, Failure> {
    let rules = session.configuration.rules()?;
    let settings = &session.configuration.config()?.settings;
    let style = settings.tool_names.as_deref().and_then(NameStyle::from_spelling).unwrap_or_default();
    let accounts = session.accounts.clone();
    let builder = || {
        let accounts = accounts.clone();
        let builder = builder().rules(rules.clone()).name_style(style).remedy_text(remedy_command);
        builder.accounts(move |name, spec| accounts.for_server(name.as_str(), spec))
    };
    let started = match &session.configuration.state {
        None => builder().start_with_events().await,
        Some(state) => match builder().state_dir(state).start_with_events().await {
            Err(StartError::Disk(why)) => {
                session.console.warn(format_args!("cannot write to {}, continuing without it: {why}", state.display()));
                builder().start_with_events().await
            }
            started => started,
        },
    };
    let (host, events) = started.map_err(|error| match error {
        StartError::Rule(_) => Failure::usage(error).with_hint("`wharf validate` shows its location"),
        error => Failure::other(error),
    })?;
    session.track_host(&host, events);
    unreadable_rules(settings).into_iter().for_each(|rule| session.console.warn(rule));
    Ok(host)
}

/// Options of a host that keeps running.
#[derive(Default)]
pub struct ManagedHostOptions {
    /// Asks the user for permission. `None` if there is no terminal.
    pub asker: Option<Arc<dyn Asker>>,
    pub when_asked: AskPolicy,
    /// Receives the rule of an "always" answer.
    pub sink: Option<RuleSink>,
    /// An agent uses the host: lazy servers whose tools are not known start once.
    pub has_agent: bool,
    /// Calls to allow without a prompt.
    pub allowed: Option<AskFilter>,
    /// The environment of the host, if it is not the session's.
    pub environment: Option<Environment>,
}

/// Starts a host that keeps its servers running and asks for permission.
///
/// # Errors
///
/// Fails if the configuration or its rules are invalid.
pub async fn start_managed(
    session: &CommandSession,
    entries: &[ServerEntry],
    with: ManagedHostOptions,
) -> Result<Host, Failure> {
    let settings = session.configuration.config()?.settings.clone();
    let visitors = login_visitor_factory(session, LoginPageMode::Agreed);
    let builder = || {
        let visitors = visitors.clone();
        let mut builder = Host::builder()
            .servers(entries.iter().cloned())
            .environment(with.environment.as_ref().unwrap_or(&session.environment).clone())
            .limits(session.managed_host_limits())
            .roots(working_directory(&session.environment.cwd))
            .browser_factory(move |_, spec| visitors(&spec.login))
            .ask_policy(with.when_asked);
        if with.has_agent {
            builder = builder.list_lazy_servers();
        }
        if let Some(text) = settings.result_limit {
            builder = builder.result_limits(ResultLimits { text, ..ResultLimits::default() });
        }
        builder = with.asker.iter().fold(builder, |builder, asker| builder.asker(Arc::clone(asker)));
        builder = with.sink.iter().fold(builder, |builder, sink| builder.on_rule(Arc::clone(sink)));
        builder =
            with.allowed.iter().fold(builder, |builder, allowed| builder.allow_without_asking(Arc::clone(allowed)));
        session.tap().into_iter().fold(builder, HostBuilder::tap)
    };
    start_host(session, builder).await
}

/// Returns a function that builds hosts with one of these servers each, for clients of a gateway. Each host starts its
/// server at once and keeps no state: the gateway's own host decides about calls and records them.
pub fn instance_builders(
    session: &CommandSession,
    entries: &[ServerEntry],
    environment: &Environment,
) -> impl Fn(&ServerName) -> Option<HostBuilder> + Send + Sync + use<> {
    let (entries, environment) = (entries.to_vec(), environment.clone());
    let (limits, accounts, tap) = (session.managed_host_limits(), session.accounts.clone(), session.tap());
    move |name| {
        let mut entry = entries.iter().find(|entry| entry.name == *name)?.clone();
        (entry.settings.lazy, entry.settings.idle_stop) = (false, None);
        let accounts = accounts.clone();
        let builder = Host::builder()
            .servers([entry])
            .environment(environment.clone())
            .limits(limits.clone())
            .listing_mode(ListingMode::ToolsOnce)
            .accounts(move |name, spec| accounts.for_server(name.as_str(), spec));
        Some(tap.iter().cloned().fold(builder, HostBuilder::tap))
    }
}

/// Returns the working directory as a root.
fn working_directory(cwd: &Path) -> Option<Root> {
    let uri = Url::from_file_path(cwd).ok()?;
    let name = cwd.file_name().map(|name| name.to_string_lossy().into_owned());
    Some(Root { uri: uri.into(), name })
}

fn one_shot_builder(session: &CommandSession, entries: &[ServerEntry], with: &OneShotOptions) -> HostBuilder {
    let options: HashMap<String, ConnectOptions> =
        entries.iter().map(|entry| (entry.name.as_str().to_owned(), session.connect_options_for(entry))).collect();
    Host::builder()
        .servers(entries.iter().cloned())
        .environment(session.environment.clone())
        .limits(session.limits().clone())
        .connect_options(move |server| options.get(server).cloned().unwrap_or_default())
        .services(with.services.clone())
        .listing_mode(with.lists)
}

/// Adapts an entry to one command: no reconnects, and `--timeout` applies.
fn one_shot_entry(mut entry: ServerEntry, begin: StartMode, session: &CommandSession) -> ServerEntry {
    let settings = &mut entry.settings;
    settings.reconnect = ReconnectPolicy::Off;
    settings.lazy = match begin {
        StartMode::AtOnce => false,
        StartMode::WhenNeeded => true,
        StartMode::AsConfigured => settings.lazy,
    };
    (settings.idle_stop, settings.health_check, settings.keep_results) = (None, None, None);
    if let Some(time) = session.timeout() {
        (settings.timeout, settings.startup_timeout) = (Some(time), Some(time));
        settings.tool_timeouts.clear();
    }
    entry
}
