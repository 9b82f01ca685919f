//! The host: the handle that an embedder holds.

mod close;
mod server_control;
mod server_start;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;
use wharf_client::{Connection, LogSink, RawResult};
use wharf_json::RawJson;
use wharf_spec::{ServerName, ToolId};
use wharf_tools::{CallRefusal, Registry, ToolCaller};

use crate::access::{self, ServerAccess};
use crate::builder::HostBuilder;
use crate::call::{CallOptions, ToolResponse};
use crate::call_permit::CallPermit;
use crate::catalog::{Catalog, ServerLists};
use crate::context::HostContext;
use crate::error::HostError;
use crate::events::EventReceiver;
use crate::resource_watch::ResourceWatch;
use crate::stats::ToolStats;
use crate::status::{ServerStatus, server_status};

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

    /// Returns how the clients of a gateway share a server, as configured.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown.
    pub fn instance_settings_of(&self, server: &str) -> Result<wharf_spec::InstanceSettings, HostError> {
        Ok(self.context().server(server)?.settings.load().effective.instances)
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

    /// Sets rules that apply to callers with this [`ToolCaller::rule_set`](wharf_tools::ToolCaller), besides the others.
    /// A deny of either always decides; otherwise the most precise rule does.
    ///
    /// # Errors
    ///
    /// Returns a problem that makes the rules unreadable. All calls of these callers are denied then.
    pub fn set_rule_set(
        &self,
        name: &str,
        rules: Vec<wharf_policy::SourcedRule>,
    ) -> Result<(), wharf_policy::RuleProblem> {
        self.context().rules.set_rule_set(name, rules)
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
}
