//! The host: the handle that an embedder holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wharf_client::{Connection, LogSink, RawResult};
use wharf_json::RawJson;
use wharf_spec::{ServerEntry, ServerName, ToolId};
use wharf_tools::{CallRefusal, Registry, ToolCaller};

use crate::access::{self, ServerAccess};
use crate::account::{LoginState, ServerAccount};
use crate::builder::HostBuilder;
use crate::call::{CallOptions, ToolResponse};
use crate::call_permit::CallPermit;
use crate::catalog::{Catalog, ServerLists};
use crate::context::HostContext;
use crate::error::HostError;
use crate::events::EventReceiver;
use crate::lister::ListingMode;
use crate::resource_subscriptions::ResourceSubscriptions;
use crate::resource_watch::ResourceWatch;
use crate::section_publishing::SectionSource;
use crate::server::{DesiredServer, EffectiveSettings, Server};
use crate::server_set::{self, LocalEntry, LocalServers, ServerSetChanges};
use crate::stats::{ServerStats, ToolStats};
use crate::status::{ServerStatus, server_status};
use crate::supervise::{
    ClosingConnections, ServerSnapshot, Supervisor, SupervisorCommand, SupervisorTask, current_time, supervise,
};
use crate::usage::ServerUsage;

/// Time to close in addition to the servers' grace periods.
const CLOSE_MARGIN: Duration = Duration::from_secs(1);

/// Time that accounts have to finish operations that must not be interrupted. They limit these to less themselves.
const ACCOUNT_FINISH_TIMEOUT: Duration = Duration::from_secs(15);

/// The handle to a set of supervised servers and their tools. Cheap to clone.
///
/// Dropping the last clone stops all servers without waiting. [`Host::close`] stops them gracefully.
///
/// # Calls
///
/// [`Host::call`] calls a tool. [`Host::request`] sends any other method. [`Host::permit`] is for a call that the host
/// does not support itself: the embedder makes it on the server's [`Connection`] and reports its end.
///
/// ```
/// use wharf::{CallOptions, Host, RequestOptions};
/// # use serde_json::json;
/// # use wharf::policy::Rule;
/// # use wharf::spec::ServerName;
/// # use wharf::{ClosureServer, RawJson, ToolReply};
/// # fn greeter() -> ClosureServer {
/// #     ClosureServer::new("greeter", "1.0")
/// #         .tool("greet", "Greets.", json!({ "type": "object" }), |_| async { Ok(ToolReply::text("Hello!")) })
/// #         .resource("note://welcome", "welcome", "text/plain", || async { Ok("Welcome.".to_owned()) })
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let host = Host::builder()
/// #     .local(ServerName::new("greeter")?, greeter)
/// #     .rules([Rule::allow("mcp__greeter__greet")])
/// #     .start()
/// #     .await?;
/// host.wait_until_ready("greeter").await?;
/// let greet = host.resolve("mcp__greeter__greet")?;
/// let arguments = RawJson::empty_object();
///
/// let response = host.call(&greet, &arguments, CallOptions::default()).await?;
/// assert_eq!(response.text()?, "Hello!");
///
/// let listed = host.request(&greet.server, "tools/list", None, CallOptions::default()).await?;
/// assert!(listed.result.as_str().contains("greet"));
///
/// let permit = host.permit(&greet, &arguments, CallOptions::default()).await?;
/// let outcome = permit.connection().call_tool("greet", &arguments, RequestOptions::default()).await;
/// permit.finish(outcome.as_ref());
/// assert_eq!(host.stats_of("greeter")?[0].calls, 2);
/// # host.close().await;
/// # Ok(())
/// # }
/// ```
///
/// # Servers
///
/// ```
/// use wharf::{Event, EventDelivery, Host, HostError, RequestOptions, ServerState};
/// # use serde_json::json;
/// # use wharf::spec::ServerName;
/// # use wharf::{ClosureServer, RawJson, ToolReply};
/// # fn greeter() -> ClosureServer {
/// #     ClosureServer::new("greeter", "1.0")
/// #         .tool("greet", "Greets.", json!({ "type": "object" }), |_| async { Ok(ToolReply::text("Hello!")) })
/// #         .resource("note://welcome", "welcome", "text/plain", || async { Ok("Welcome.".to_owned()) })
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (host, mut events) =
///     Host::builder().local(ServerName::new("greeter")?, greeter).start_with_events().await?;
/// host.wait_until_settled().await;
/// assert_eq!(host.status_of("greeter")?.state, ServerState::Ready);
/// assert_eq!(host.catalog().tools().count(), 1);
///
/// host.disconnect("greeter").await?;
/// assert!(host.connection("greeter").is_err());
/// host.connect("greeter").await?;
/// host.reconnect("greeter").await?;
/// host.connection("greeter")?.ping(RequestOptions::default()).await?;
///
/// host.disable("greeter").await?;
/// assert_eq!(host.status()[0].state, ServerState::Disabled);
/// host.enable("greeter").await?;
///
/// // Replaces the configured servers. In-process servers stay.
/// let changes = host.set_servers(Vec::new()).await;
/// assert!(changes.removed.is_empty());
///
/// // Only HTTP servers have accounts.
/// assert!(matches!(host.account_status("greeter").await, Err(HostError::NoAccount { .. })));
///
/// // Replaces the in-process servers, too.
/// let changes = host.set_all_servers(Vec::new(), Vec::new()).await;
/// assert_eq!(changes.removed.len(), 1);
///
/// host.close().await;
/// let mut ready = 0;
/// while let Some(delivery) = events.next().await {
///     if let EventDelivery::Event(told) = delivery
///         && let Event::State { state: ServerState::Ready, .. } = told.event
///     {
///         ready += 1;
///     }
/// }
/// assert!(ready >= 3);
/// # Ok(())
/// # }
/// ```
///
/// # Permissions
///
/// ```
/// use wharf::tools::{ToolCaller, ToolInvocation};
/// use wharf::{CallOptions, Host, HostError};
/// # use serde_json::json;
/// # use wharf::policy::Rule;
/// # use wharf::spec::ServerName;
/// # use wharf::{ClosureServer, RawJson, ToolReply};
/// # fn greeter() -> ClosureServer {
/// #     ClosureServer::new("greeter", "1.0")
/// #         .tool("greet", "Greets.", json!({ "type": "object" }), |_| async { Ok(ToolReply::text("Hello!")) })
/// #         .resource("note://welcome", "welcome", "text/plain", || async { Ok("Welcome.".to_owned()) })
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let host = Host::builder().local(ServerName::new("greeter")?, greeter).start().await?;
/// host.wait_until_settled().await;
/// let greet = host.resolve("mcp__greeter__greet")?;
/// let arguments = RawJson::empty_object();
///
/// // Without a rule the call needs a person's consent, and this host has no asker.
/// let refused = host.call(&greet, &arguments, CallOptions::default()).await;
/// let Err(refused @ HostError::Denied(_)) = refused else { panic!("not refused") };
/// assert!(refused.hint().is_some_and(|hint| hint.contains("mcp__greeter__greet")));
///
/// host.set_rules(vec![Rule::allow("mcp__greeter__greet").into()])?;
/// assert!(host.rule_problems().is_empty());
/// assert!(host.denial_of("greeter").is_none());
/// host.call(&greet, &arguments, CallOptions::default()).await?;
///
/// // The registry offers the same tool to an agent, behind the same gate.
/// let call = ToolInvocation::new(arguments, ToolCaller::agent());
/// assert_eq!(host.registry().call("mcp__greeter__greet", call).await?.text(), "Hello!");
///
/// // Listed resources may be read; others need permission.
/// host.permit_read(&greet.server, "note://welcome", &ToolCaller::agent()).await?;
/// assert!(host.permit_read(&greet.server, "note://other", &ToolCaller::agent()).await.is_err());
///
/// // Releases a quarantined tool for the definition that a person has reviewed.
/// let seen = host.catalog().tool(&greet).ok_or("no tool")?.fingerprint;
/// host.release(&greet, seen).await?;
///
/// // Approves a changed definition that a person has compared with the approved one.
/// if let Some(change) = host.changed_definition(&greet) {
///     host.approve_definition(&greet, change.tool.fingerprint).await?;
/// }
/// # host.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Host {
    owner: Arc<TaskOwner>,
}

/// Owner of all supervisor tasks. Dropping it stops the tasks, and each of them stops its server.
struct TaskOwner {
    context: Arc<HostContext>,
    tasks: Mutex<JoinSet<()>>,
}

impl Drop for TaskOwner {
    fn drop(&mut self) {
        self.context.closing.send_replace(true);
        // A call in progress keeps the context alive, which must not keep the servers alive.
        self.context.servers.store(Arc::default());
        // A poll in progress keeps the context alive, and with it the task set that contains the poll.
        self.context.background.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl Host {
    /// Returns a builder without servers, rules or asker. See [`HostBuilder`] for an example.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    pub(crate) fn from_context(context: Arc<HostContext>) -> Self {
        Self { owner: Arc::new(TaskOwner { context, tasks: Mutex::default() }) }
    }

    pub(crate) fn context(&self) -> &Arc<HostContext> {
        &self.owner.context
    }

    /// Calls a tool, if the gate permits it. Starts the server or waits for it if necessary.
    ///
    /// A tool that reports failure has answered: the result is `Ok`, and `is_error` in [`ToolResponse::result`] is set.
    /// A call that was provably not delivered is retried on the next connection; any other call is made at most once.
    ///
    /// # Errors
    ///
    /// Returns an error if the server or the tool is unknown, the gate refuses the call, the server does not become
    /// ready in time, or the call fails on the connection. [`HostError::is_retryable`] reports whether a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the call is sent withdraws an open prompt, and nothing reaches the server. Dropping
    /// it later sends a cancellation to the server and discards the response: the call may have executed. Either way a
    /// server that was started for the call keeps running.
    ///
    /// # Example
    ///
    /// See [calls](Host#calls) for an example.
    pub async fn call(
        &self,
        tool: &ToolId,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<ToolResponse, HostError> {
        self.context().call(tool, arguments, options).await
    }

    /// Sends a request of any method to a server, with raw parameters and a raw result. `tools/call` and requests for
    /// resources and prompts pass the gate.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown, the gate refuses the request, the server does not become ready in
    /// time, or the request fails on the connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the request is sent withdraws an open prompt, and nothing reaches the server.
    /// Dropping it later sends a cancellation to the server and discards the response: the request may have executed.
    ///
    /// # Example
    ///
    /// See [calls](Host#calls) for an example.
    pub async fn request(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawJson>,
        options: CallOptions,
    ) -> Result<RawResult, HostError> {
        self.context().request(server, method, params, options).await
    }

    /// Requests permission for a call that the embedder makes on the server's connection itself. Waits for the server
    /// if necessary. The permit counts towards the server's limit of concurrent calls.
    ///
    /// # Errors
    ///
    /// Returns an error if the server or the tool is unknown, the gate refuses the call, or the server does not become
    /// ready in time.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe: dropping the future withdraws an open prompt and takes no permit. No call has been made.
    ///
    /// # Example
    ///
    /// See [calls](Host#calls) for an example.
    pub async fn permit(
        &self,
        tool: &ToolId,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallPermit, HostError> {
        CallPermit::request(self.context(), tool, arguments, &options).await
    }

    /// Checks the reading of a resource with the gate, for an embedder that reads it on the server's connection itself.
    /// A model needs permission for a URI that the server lists neither directly nor by a template.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown, the gate refuses the access, or the server's lists are needed and not
    /// available.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe: dropping the future withdraws an open prompt.
    ///
    /// # Example
    ///
    /// See [permissions](Host#permissions) for an example.
    pub async fn permit_read(&self, server: &ServerName, uri: &str, caller: &ToolCaller) -> Result<(), HostError> {
        let context = self.context();
        let server = context.server(server.as_str())?;
        let arguments = access::rule_arguments(&server, uri);
        let access = ServerAccess { tool: access::READ_RESOURCE_TOOL, server: &server, arguments: &arguments, caller };
        context.permit_uri(access, uri, None).await.map(|_| ())
    }

    /// Subscribes to a resource, if the gate permits it. All subscribers to a resource share one subscription at its
    /// server, which outlives the connection. Changes are published as
    /// [`Event::ResourceUpdated`](crate::Event::ResourceUpdated).
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not ready in time, the gate refuses the access, or the server does
    /// not report changes of the resource.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe: dropping the future ends the subscription.
    pub async fn watch_resource(
        &self,
        server: &ServerName,
        uri: &str,
        caller: &ToolCaller,
    ) -> Result<ResourceWatch, HostError> {
        self.context().watch_resource(server, uri, caller).await
    }

    /// Returns the refusal if a rule denies everything a server offers: its tools, resources and prompts. See
    /// [permissions](Host#permissions) for an example.
    pub fn denial_of(&self, server: &str) -> Option<CallRefusal> {
        let context = self.context();
        context.server(server).ok().and_then(|server| context.denial_of(&server))
    }

    /// Returns the tool that a name denotes, in any of the supported spellings. See [calls](Host#calls) for an example.
    ///
    /// # Errors
    ///
    /// Returns [`HostError::Unresolved`] if the name matches no tool or more than one.
    pub fn resolve(&self, name: &str) -> Result<ToolId, HostError> {
        let catalog = self.context().publisher.peek();
        match catalog.resolve(name) {
            Ok(tool) => Ok(tool.id.clone()),
            Err(unresolved) => Err(HostError::Unresolved(unresolved.to_string())),
        }
    }

    /// Caches lists that the embedder has read on a server's connection itself, for the time when the server is not
    /// running. Does nothing without a state directory, for in-process servers and for incomplete lists.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown.
    ///
    /// # Example
    ///
    /// ```
    /// # use wharf::{Host, HostError, catalog::ServerLists};
    /// # fn remember(host: &Host, lists: &ServerLists) -> Result<(), HostError> {
    /// host.cache_lists("files", lists)
    /// # }
    /// ```
    pub fn cache_lists(&self, server: &str, lists: &ServerLists) -> Result<(), HostError> {
        let context = self.context();
        context.cache_server_lists(&*context.server(server)?, lists);
        Ok(())
    }

    /// Returns the current catalog, an immutable snapshot. See [servers](Host#servers) for an example.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.context().publisher.catalog()
    }

    /// Returns a receiver of the catalog's version, which changes with every change of the catalog.
    ///
    /// # Example
    ///
    /// ```
    /// # use wharf::{ClosureServer, Host, spec::ServerName};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let host = Host::builder()
    /// #     .local(ServerName::new("greeter")?, || ClosureServer::new("greeter", "1.0"))
    /// #     .start()
    /// #     .await?;
    /// let mut changes = host.catalog_changes();
    /// host.wait_until_settled().await;
    /// host.disable("greeter").await?;
    /// changes.changed().await?;
    /// assert_eq!(host.catalog().visible_tools().count(), 0);
    /// # host.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn catalog_changes(&self) -> watch::Receiver<u64> {
        self.context().publisher.changes()
    }

    /// Returns the registry of all tools that an agent may call: those of the servers and other registered ones. Its
    /// calls pass the same gate. See [permissions](Host#permissions) for an example.
    pub fn registry(&self) -> &Arc<Registry> {
        self.context().publisher.registry()
    }

    /// Returns the status of all servers, sorted by name. See [servers](Host#servers) for an example.
    pub fn status(&self) -> Vec<ServerStatus> {
        let servers = self.context().servers.load();
        let mut all: Vec<ServerStatus> = servers.values().map(|server| server_status(self.context(), server)).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Returns the status of one server. See [servers](Host#servers) for an example.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown.
    pub fn status_of(&self, server: &str) -> Result<ServerStatus, HostError> {
        Ok(server_status(self.context(), &*self.context().server(server)?))
    }

    /// Returns the call statistics of a server's tools. See [calls](Host#calls) for an example.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown.
    pub fn stats_of(&self, server: &str) -> Result<Vec<ToolStats>, HostError> {
        Ok(self.context().server(server)?.stats.snapshot())
    }

    /// Returns the problems of the rules: rules that can never match, and rules that match more than one server. See
    /// [permissions](Host#permissions) for an example.
    pub fn rule_problems(&self) -> Vec<wharf_policy::RuleProblem> {
        self.context().rules.problems()
    }

    /// Sets the rules. Earlier answers stay valid unless a rule denies the call. See [permissions](Host#permissions)
    /// for an example.
    ///
    /// # Errors
    ///
    /// Returns the problem of a user's rule that is unreadable. The old rules stay in effect then.
    pub fn set_rules(&self, rules: Vec<wharf_policy::SourcedRule>) -> Result<(), wharf_policy::RuleProblem> {
        self.context().rules.set_rules(rules)
    }

    /// Forgets the answers to permission prompts of a principal, for example when its session ends.
    /// [`ToolCaller::on_behalf_of`](wharf_tools::ToolCaller::on_behalf_of) sets the principal of a call.
    pub fn forget_principal(&self, principal: &wharf_tools::Principal) {
        self.context().rules.forget_principal(principal);
    }

    /// Sets a receiver of the servers' log messages besides the events, which are delivered later. Called on the
    /// connections' own tasks: it must return at once. The first receiver stays.
    pub fn set_log_sink(&self, sink: Arc<dyn LogSink>) {
        let _ = self.context().log_sink.set(sink);
    }

    /// Returns the events from now on. [`HostBuilder::start_with_events`] returns those of the start as well. See
    /// [servers](Host#servers) for an example.
    pub fn events(&self) -> EventReceiver {
        self.context().event_bus.subscribe()
    }

    /// Returns the connection of a ready server, for requests that the host does not support itself. Does not wait.
    /// Calls on the connection bypass the gate: ask [`Host::permit`] first. See [servers](Host#servers) for an example.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not ready.
    pub fn connection(&self, server: &str) -> Result<Connection, HostError> {
        let server = self.context().server(server)?;
        let live = server.live_connection();
        live.map(|live| live.connection).ok_or_else(|| server.unavailable_error(&server.snapshot.borrow()))
    }

    /// Waits until the first connection attempt of every server has ended and the lists of the ready ones have been
    /// read. Does not wait for retries. [`Host::wait_for_startup`] does not wait for slow servers either.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn wait_until_settled(&self) {
        let servers = self.context().servers.load_full();
        for server in servers.values() {
            server.wait_until_settled().await;
        }
    }

    /// Waits for the servers that are starting, except for slow ones: once a server is ready, the others have an eighth
    /// more time than it needed, and at least a second if their tools are not known. Does not wait for a server whose
    /// attempt has ended before. Before any server is ready the wait is unlimited for a server whose tools are not known,
    /// and one second for the others.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    ///
    /// # Example
    ///
    /// ```
    /// # use wharf::Host;
    /// # async fn first_request(host: &Host) {
    /// let limit = std::time::Duration::from_secs(10);
    /// let _ = tokio::time::timeout(limit, host.wait_for_startup()).await;
    /// # }
    /// ```
    pub async fn wait_for_startup(&self) {
        crate::startup::wait_for_startup(self.context()).await;
    }

    /// Waits until a server is ready and its tools are in the catalog. Starts an idle server. The timeout is the
    /// server's startup timeout plus its call timeout. A host that lists nothing waits for the end of the connection
    /// attempt instead.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown, unavailable or not ready in time.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe. A server that was started continues to start.
    ///
    /// # Example
    ///
    /// See [calls](Host#calls) for an example.
    pub async fn wait_until_ready(&self, server: &str) -> Result<Connection, HostError> {
        let context = self.context();
        let server = context.server(server)?;
        if context.options.attention == ListingMode::Nothing && !server.settings.load().effective.lazy {
            // The attempt has a timeout of its own, and its error says more than a deadline.
            server.wait_for_attempt().await?;
            return self.connection(server.name.as_str());
        }
        let deadline = context.startup_deadline(&server);
        let learned = server.with_connection(deadline, |live| {
            let server = Arc::clone(&server);
            async move { server.wait_for_tools(&live, deadline).await.map(|()| live.connection) }
        });
        learned.await
    }

    /// Connects a server, regardless of its state, and waits for the first attempt to end.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not ready after the attempt.
    ///
    /// # Cancel safety
    ///
    /// The attempt begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn connect(&self, server: &str) -> Result<(), HostError> {
        self.connect_with(server, SupervisorCommand::Connect).await
    }

    /// Disconnects a server and connects it again.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not ready after the attempt.
    ///
    /// # Cancel safety
    ///
    /// The attempt begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn reconnect(&self, server: &str) -> Result<(), HostError> {
        self.connect_with(server, SupervisorCommand::Reconnect).await
    }

    async fn connect_with(&self, server: &str, command: SupervisorCommand) -> Result<(), HostError> {
        let server = self.context().server(server)?;
        server.login_state.allow_prompts();
        let number = server.send_command(command);
        server.wait_for_command(number).await;
        server.wait_for_attempt().await
    }

    /// Disconnects a server until it is connected explicitly. Calls to it fail from now on.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown.
    ///
    /// # Cancel safety
    ///
    /// The server is disconnected even if the future is dropped after the first poll.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn disconnect(&self, server: &str) -> Result<(), HostError> {
        let server = self.context().server(server)?;
        let number = server.send_command(SupervisorCommand::Disconnect);
        server.wait_for_command(number).await;
        Ok(())
    }

    /// Enables a server until the host stops or [`Host::set_servers`] changes its setting.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not approved.
    ///
    /// # Cancel safety
    ///
    /// While another change of the servers is in progress, dropping the future changes nothing. Afterwards the setting
    /// applies, but the catalog can show the server's earlier tools until its next change.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn enable(&self, server: &str) -> Result<(), HostError> {
        self.set_admission(server, wharf_spec::ActivationState::Enabled).await
    }

    /// Disables a server until the host stops or [`Host::set_servers`] changes its setting.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not approved.
    ///
    /// # Cancel safety
    ///
    /// While another change of the servers is in progress, dropping the future changes nothing. Afterwards the setting
    /// applies, but the catalog can show the server's earlier tools until its next change.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn disable(&self, server: &str) -> Result<(), HostError> {
        self.set_admission(server, wharf_spec::ActivationState::Disabled).await
    }

    async fn set_admission(&self, server: &str, admission: wharf_spec::ActivationState) -> Result<(), HostError> {
        let context = self.context();
        let changing = context.changing.acquire().await;
        let server = context.server(server)?;
        if server.settings.load().effective.admission == wharf_spec::ActivationState::Unapproved {
            return Err(server.unavailable_error(&server.snapshot.borrow()));
        }
        let number = server.override_admission(admission);
        drop(changing);
        server.wait_for_command(number).await;
        context.republish(&server).await;
        Ok(())
    }

    /// Replaces the set of configured servers: adds new ones, removes missing ones and replaces those whose spec has
    /// changed. In-process servers stay; [`Host::set_all_servers`] replaces them, too. Calls in progress on removed
    /// servers have a short time to finish. Invalid entries are reported in [`ServerSetChanges::errors`] and do not
    /// affect the others.
    ///
    /// # Cancel safety
    ///
    /// The change begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn set_servers(&self, servers: Vec<ServerEntry>) -> ServerSetChanges {
        let (wanted, errors) = server_set::configs_by_name(servers);
        self.change_servers(wanted, errors, LocalServers::Keep).await
    }

    /// Replaces all servers, including in-process ones: those that are not given are removed. Otherwise like
    /// [`Host::set_servers`].
    ///
    /// # Cancel safety
    ///
    /// The change begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn set_all_servers(&self, servers: Vec<ServerEntry>, local: Vec<LocalEntry>) -> ServerSetChanges {
        let (mut wanted, mut errors) = server_set::configs_by_name(servers);
        server_set::add_local(&mut wanted, &mut errors, local);
        self.change_servers(wanted, errors, LocalServers::Replace).await
    }

    async fn change_servers(
        &self,
        wanted: BTreeMap<ServerName, DesiredServer>,
        errors: Vec<(ServerName, String)>,
        local: LocalServers,
    ) -> ServerSetChanges {
        let host = self.clone();
        // A separate task, so that the change cannot be dropped halfway: a server that has been started must be in the
        // set.
        let changed = tokio::spawn(async move { server_set::change_servers(&host, wanted, local).await }).await;
        let mut changes = changed.unwrap_or_else(|broken| {
            tracing::error!("internal error: changing the set of servers failed: {broken}");
            ServerSetChanges::default()
        });
        changes.errors.extend(errors);
        changes
    }

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

    /// Closes the host: rejects new calls, cancels calls in progress and stops every server, within one deadline. Then
    /// flushes the audit log, the state directory and the servers' logs.
    ///
    /// # Cancel safety
    ///
    /// The host is closed from the first poll on. Dropping the future before its end stops the remaining servers
    /// without their grace period, and the last log entries can be lost.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn close(&self) {
        let context = self.context();
        let limits = &context.options.limits;
        let deadline = Instant::now() + limits.stop_grace + limits.term_grace + CLOSE_MARGIN;
        context.closing.send_replace(true);
        let mut accounts = self.leave_all();
        let mut background = std::mem::take(&mut *context.background.lock().unwrap_or_else(PoisonError::into_inner));
        background.abort_all();
        // Servers that are being added are stopped as well; none can be added afterwards.
        let _none_added = tokio::time::timeout_at(deadline, context.changing.acquire()).await;
        accounts.extend(self.leave_all());
        let mut tasks = std::mem::take(&mut *self.owner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while let Ok(Some(_)) = tokio::time::timeout_at(deadline, tasks.join_next()).await {}
        tasks.abort_all();
        while let Ok(Some(_)) = tokio::time::timeout_at(deadline, background.join_next()).await {}
        finish_accounts(accounts).await;
        let written = async {
            if let Some(audit) = &context.audit {
                audit.flush().await;
            }
            if let Some(disk) = &context.disk {
                disk.flush().await;
            }
            if let Some(logs) = &context.logs {
                logs.flush().await;
            }
        };
        if tokio::time::timeout_at(deadline.max(Instant::now() + CLOSE_MARGIN), written).await.is_err() {
            tracing::error!("saving state timed out on close");
        }
        context.event_bus.close();
    }

    /// Tells every server to leave. Returns their accounts.
    fn leave_all(&self) -> Vec<Arc<dyn ServerAccount>> {
        let servers = self.context().servers.swap(Arc::default());
        servers.values().for_each(|server| server.leave());
        servers.values().filter_map(|server| server.known_account().map(Arc::clone)).collect()
    }
}

/// Waits for uninterruptible operations of all accounts concurrently.
async fn finish_accounts(accounts: Vec<Arc<dyn ServerAccount>>) {
    let mut all: JoinSet<()> = accounts.iter().map(|account| account.finish()).collect();
    let finished = async { while all.join_next().await.is_some() {} };
    if tokio::time::timeout(ACCOUNT_FINISH_TIMEOUT, finished).await.is_err() {
        tracing::warn!("a token refresh was interrupted on close");
    }
}
