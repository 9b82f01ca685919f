//! Construction of a [`Host`](crate::Host).

mod start;

use std::path::PathBuf;
use std::sync::Arc;

use wharf_auth::LoginBrowser;
use wharf_client::{ClientServices, ConnectOptions, GuardProgram, Limits, LocalServer, ProcessLog, Tap};
use wharf_policy::SourcedRule;
use wharf_spec::{Environment, HttpSpec, ServerEntry, ServerName, ServerSettings};
use wharf_tools::Gate;
use wharf_wire::Root;

use crate::account::ServerAccount;
use crate::ask::Asker;
use crate::audit::{AuditMode, AuditOptions, AuditSink};
use crate::catalog::NameStyle;
use crate::context::HostSettings;
use crate::definition_review::Remedy;
use crate::gate::{AskFilter, AskPolicy, RuleSink};
use crate::lister::ListingMode;
use crate::results::ResultLimits;
use crate::server::LocalFactory;

/// Builder of a [`Host`](crate::Host). Every part has a safe default: no rules, no asker, nothing written to disk.
///
/// # Example
///
/// A host with a configured server that starts on first use, an in-process server, rules and prompts:
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use wharf::catalog::NameStyle;
/// use wharf::guard::GuardProgram;
/// use wharf::policy::Rule;
/// use wharf::spec::{Environment, ServerEntry, ServerName, ServerSpec, StdioSpec};
/// use wharf::{Ask, Asker, ClosureServer, Host, Limits, AskPolicy, ServerState};
///
/// /// Declines every question: a dropped reply is a refusal.
/// struct Decline;
///
/// impl Asker for Decline {
///     fn ask(&self, ask: Ask) {
///         drop(ask);
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = StdioSpec { program: "some-server".into(), ..StdioSpec::default() };
/// let mut server = ServerEntry::new(ServerName::new("some")?, ServerSpec::Stdio(spec));
/// server.settings.lazy = true;
///
/// let mut limits = Limits::default();
/// limits.call_timeout = Duration::from_secs(20);
///
/// let host = Host::builder()
///     .environment(Environment { env: Vec::new(), cwd: "/".into() })
///     .guard(GuardProgram::None)
///     .servers([server])
///     .local(ServerName::new("greeter")?, || ClosureServer::new("greeter", "1.0"))
///     .limits(limits)
///     .name_style(NameStyle::default())
///     .rules([Rule::ask("mcp__some__*"), Rule::deny("mcp__some__delete_*")])
///     .ask_policy(AskPolicy::default())
///     .allow_without_asking(Arc::new(|tool| tool.hints.read_only == Some(true)))
///     .asker(Arc::new(Decline))
///     .remedy_text(|remedy| remedy.to_string())
///     .start()
///     .await?;
/// host.wait_until_settled().await;
/// assert_eq!(host.status_of("some")?.state, ServerState::Idle);
/// host.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct HostBuilder {
    servers: Vec<ServerEntry>,
    local: Vec<(ServerName, ServerSettings, LocalFactory)>,
    options: HostSettings,
    gate: Option<Arc<dyn Gate>>,
    rules: Vec<SourcedRule>,
    ask_policy: AskPolicy,
    allowed: Option<AskFilter>,
    rule_sink: Option<RuleSink>,
    asker: Option<Arc<dyn Asker>>,
    state_dir: Option<PathBuf>,
    audit: AuditOptions,
    services: Option<ClientServices>,
}

/// Errors of starting a host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Two servers have the same name.
    #[error("duplicate server name `{0}`")]
    Twice(ServerName),
    /// A rule cannot be parsed. Nothing is started, because it may be a deny rule.
    #[error("invalid permission rule: {0}")]
    Rule(String),
    /// The state directory cannot be used.
    #[error("cannot use the state directory: {0}")]
    Disk(String),
    /// The audit log cannot be opened.
    #[error("cannot open the audit log: {0}")]
    Audit(String),
}

impl HostBuilder {
    /// Adds configured servers.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn servers(mut self, servers: impl IntoIterator<Item = ServerEntry>) -> Self {
        self.servers.extend(servers);
        self
    }

    /// Adds an in-process server. `make` is called for every connection.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn local<S: LocalServer>(self, name: ServerName, make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        let factory: LocalFactory = Arc::new(move || Ok(Box::new(make())));
        self.local_with(name, ServerSettings::default(), factory)
    }

    /// Adds an in-process server with settings and a factory that may fail.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn local_with(mut self, name: ServerName, settings: ServerSettings, make: LocalFactory) -> Self {
        self.local.push((name, settings, make));
        self
    }

    /// Sets a gate that replaces the rules.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Adds permission rules: each is a [`Rule`](wharf_policy::Rule) of your program, or a [`SourcedRule`] of a file.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = impl Into<SourcedRule>>) -> Self {
        self.rules.extend(rules.into_iter().map(Into::into));
        self
    }

    /// Sets the behaviour for calls that the rules require a prompt for.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn ask_policy(mut self, ask_policy: AskPolicy) -> Self {
        self.ask_policy = ask_policy;
        self
    }

    /// Allows calls that need a prompt and that `allowed` accepts. Deny rules and prompts about changed definitions stay.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn allow_without_asking(mut self, allowed: AskFilter) -> Self {
        self.allowed = Some(allowed);
        self
    }

    /// Sets the receiver of rules created by the answer "always".
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn on_rule(mut self, sink: RuleSink) -> Self {
        self.rule_sink = Some(sink);
        self
    }

    /// Sets the asker that presents questions to a person.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Sets the text that names a remedy in the hint of a refused call, for a person and a model to read.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn remedy_text(mut self, text: impl Fn(Remedy<'_>) -> String + Send + Sync + 'static) -> Self {
        self.options.remedies = Some(Arc::new(text));
        self
    }

    /// Sets the directory for cached catalogs, approved definitions, large results, the audit log and the servers'
    /// logs. It is private and created if missing.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(path.into());
        self
    }

    /// Sets the handling of a call whose audit entry cannot be written.
    #[must_use]
    pub fn audit_mode(mut self, mode: AuditMode) -> Self {
        self.audit.mode = mode;
        self
    }

    /// Sets a destination of audit entries besides the file in the state directory.
    #[must_use]
    pub fn audit_sink(mut self, sink: impl AuditSink + 'static) -> Self {
        self.audit.sink = Some(Arc::new(sink));
        self
    }

    /// Sets the environment and working directory in which servers are started.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn environment(mut self, surroundings: Environment) -> Self {
        self.options.surroundings = surroundings;
        self
    }

    /// Sets the limits and timeouts of every connection.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Sets the guard program of the servers' processes.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn guard(mut self, guard: GuardProgram) -> Self {
        self.options.guard = guard;
        self
    }

    /// Sets the naming style of tools.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn name_style(mut self, style: NameStyle) -> Self {
        self.options.names = style;
        self
    }

    /// Adds directories that servers may request as roots. Without any, the capability is not declared.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.options.roots.extend(roots);
        self
    }

    /// Sets the limits of results passed to an agent.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn result_limits(mut self, limits: ResultLimits) -> Self {
        self.options.results = limits;
        self
    }

    /// Sets the receiver of the servers' stderr and of process starts and exits, instead of the state directory.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn process_log(mut self, log: Arc<dyn ProcessLog>) -> Self {
        self.options.process_log = Some(log);
        self
    }

    /// Sets a tap that receives every message of every server.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn tap(mut self, tap: Arc<dyn Tap>) -> Self {
        self.options.tap = Some(tap);
        self
    }

    /// Sets the services offered to servers, instead of those derived from the asker, the roots and the events.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn services(mut self, services: ClientServices) -> Self {
        self.services = Some(services);
        self
    }

    /// Sets the connect options of each server by name, instead of `environment`, limits, guard and tap. Services remain
    /// the host's.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn connect_options(mut self, prepare: impl Fn(&str) -> ConnectOptions + Send + Sync + 'static) -> Self {
        self.options.prepare = Some(Arc::new(prepare));
        self
    }

    /// Sets which lists the host requests from its servers.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn listing_mode(mut self, attention: ListingMode) -> Self {
        self.options.attention = attention;
        self
    }

    /// Starts a lazy server at once if its tools are not known from an earlier start, so that an agent sees them. Without
    /// a state directory that is every lazy server.
    ///
    /// # Example
    ///
    /// ```
    /// let builder = wharf::Host::builder().state_dir("state").list_lazy_servers();
    /// # drop(builder);
    /// ```
    #[must_use]
    pub fn list_lazy_servers(mut self) -> Self {
        self.options.lists_lazy = true;
        self
    }

    /// Sets the login accounts of HTTP servers. `make` is called once for each server whose settings contain no
    /// `Authorization` header and no credentials in its URL. Servers that share an account share its token refreshes.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
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

    /// Sets the browser for login pages, which is opened after the asker's consent. Without a browser or without an
    /// asker, a server that requires a login waits for [`Host::log_in`](crate::Host::log_in) or for a login by another process.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn browser(self, visitor: Arc<dyn LoginBrowser>) -> Self {
        self.browser_factory(move |_, _| Arc::clone(&visitor))
    }

    /// Sets a factory of login browsers, called for each login, because a server's settings may specify the redirect
    /// address.
    ///
    /// See [`HostBuilder`](HostBuilder#example) for an example.
    #[must_use]
    pub fn browser_factory(
        mut self,
        make: impl Fn(&ServerName, &HttpSpec) -> Arc<dyn LoginBrowser> + Send + Sync + 'static,
    ) -> Self {
        self.options.visitors = Some(Arc::new(make));
        self
    }
}
