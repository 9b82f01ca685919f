//! The handle on which calls are made.

use std::sync::Arc;
use std::time::Duration;

use wharf_spec::Redactor;
use wharf_wire::{
    Completion, Era, Implementation, LogLevel, PromptDefinition, PromptResult, RawJson, ReadResult, Reference,
    Resource, ResourceTemplate, Revision, ServerCapabilities, ToolDefinition, ToolResult, View, mcp_name_param,
    object_members,
};

use crate::budget::ServerBudget;
use crate::cache::{AuthorizationId, CacheQuery};
use crate::counters::ConnectionCounters;
use crate::engine::{CallEffect, RawResult, ResultKind};
use crate::era::ProtocolState;
use crate::error::{CallError, DisconnectCause, DisconnectReport};
use crate::flow::header_params::{self, HeaderParamTable};
use crate::flow::{ListKind, Listing, ReadRetryBudget, TaskHandling, call_tool, list_all, run_call};
use crate::limits::Limits;
use crate::options::RequestOptions;
use crate::request::{OutgoingRequest, members_without_meta, needs_no_escaping};
use crate::trace::ConnectTrace;
use crate::trace_context::TraceContext;
use crate::transport::memory::WorkersHealth;
use crate::transport::{ServerProcess, StartedServer, Transport};

/// A connection to a server that is ready. Cheap to clone. Dropping the last clone ends the server without waiting;
/// [`Connection::close`] shuts it down gracefully.
///
/// Any number of calls can run concurrently. Each call ends in exactly one outcome within its timeout.
///
/// # Example
///
/// ```
/// use serde_json::json;
/// use wharf_client::{CallError, RequestOptions, ClosureServer, ConnectOptions, Started, TaskOptions, ToolReply, connect_local};
/// use wharf_wire::{Interest, RawJson, Reference};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ClosureServer::new("greeter", "1.0")
///     .tool("greet", "Greets.", json!({ "type": "object" }), |_| async { Ok(ToolReply::text("Hello!")) })
///     .resource("note://welcome", "welcome", "text/plain", || async { Ok("Welcome.".to_owned()) })
///     .prompt("introduce", "Introduces the server.", &[], |_| async { Ok("Who are you?".to_owned()) });
/// let connection = connect_local(server, ConnectOptions::default()).await?;
/// assert!(connection.facts().capabilities.tools);
/// connection.ping(RequestOptions::default()).await?;
///
/// assert_eq!(connection.list_tools().await?.items[0].name, "greet");
/// assert_eq!(connection.list_resources().await?.items[0].uri, "note://welcome");
/// assert_eq!(connection.list_prompts().await?.items[0].name, "introduce");
/// connection.list_templates().await?;
/// connection.clear_cache(); // The next list is requested again.
///
/// let no_arguments = RawJson::empty_object();
/// let result = connection.call_tool("greet", &no_arguments, RequestOptions::default()).await?;
/// assert!(!result.is_error);
/// connection.read_resource("note://welcome", RequestOptions::default()).await?;
/// connection.get_prompt("introduce", &[], RequestOptions::default()).await?;
/// let raw = connection.request("tools/list", None, RequestOptions::default()).await?;
/// assert!(raw.result.as_str().contains("greet"));
///
/// // This server supports no tasks, so the call finishes at once.
/// let started = connection.start_task("greet", &no_arguments, TaskOptions::default()).await?;
/// assert!(matches!(started, Started::Finished(_)));
///
/// // Capabilities that the server has not declared are refused without a request.
/// let completed = connection.complete_argument(Reference::Prompt("introduce"), "name", "A", &[]).await;
/// assert!(matches!(completed, Err(CallError::Unsupported(_))));
/// assert!(connection.subscribe(Interest { tools: true, ..Interest::default() }).await.is_err());
/// assert!(connection.list_skills().await.is_err());
///
/// // Diagnostics.
/// assert!(connection.workers_health().is_some_and(|health| health.panics == 0));
/// assert!(connection.stderr_tail(20).is_empty());
/// assert!(connection.trace().failed_step().is_none());
/// assert_eq!(connection.counters().turned_away, 0);
/// assert!(connection.redactor().is_empty());
///
/// connection.close().await;
/// connection.wait_until_gone().await;
/// assert!(connection.is_gone());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Connection {
    inner: Arc<ConnectionInner>,
}

pub(crate) struct ConnectionInner {
    pub server: StartedServer,
    pub facts: ServerFacts,
    pub protocol: Arc<ProtocolState>,
    /// Start of the params of every request, up to the last fixed member of `_meta`. Empty in the handshake era.
    pub meta: String,
    pub trace: ConnectTrace,
    pub limits: Limits,
    /// Memory budget for the lists of this server.
    pub lists: ServerBudget,
    pub authorization: AuthorizationId,
    /// Tool arguments that are repeated as headers, on a link that supports headers.
    pub header_params: Option<HeaderParamTable>,
    pub read_retries: ReadRetryBudget,
    /// The trace that the calls of this connection belong to.
    pub trace_context: Option<TraceContext>,
}

/// Properties of a server that is ready.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerFacts {
    /// Configured name of the server.
    pub name: String,
    /// Negotiated revision.
    pub revision: Revision,
    /// Declared capabilities. The client uses no others.
    pub capabilities: ServerCapabilities,
    /// The server's name and version for itself. Untrusted.
    pub server_info: Option<Implementation>,
    /// Instructions for the model. Untrusted.
    pub instructions: Option<String>,
    /// Transport of the connection.
    pub transport: Transport,
    /// The server's process, if it has its own.
    pub process: Option<ServerProcess>,
}

/// The name and the arguments in the params of a request that HTTP repeats in headers.
#[derive(Default)]
struct ParamHeaders {
    name: Option<String>,
    header_params: Vec<(String, String)>,
}

const TOOLS: ListKind = ListKind { method: "tools/list", key: "tools", what: "tools" };
const RESOURCES: ListKind = ListKind { method: "resources/list", key: "resources", what: "resources" };
const TEMPLATES: ListKind =
    ListKind { method: "resources/templates/list", key: "resourceTemplates", what: "resource templates" };
const PROMPTS: ListKind = ListKind { method: "prompts/list", key: "prompts", what: "prompts" };

/// Methods without side effects, which may be retried. All others may write.
const READ_ONLY_METHODS: [&str; 12] = [
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "skills/list",
    "skills/get",
    "tasks/get",
];

/// Identifiers of the extensions.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
pub(crate) const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

impl Connection {
    pub(crate) fn new(inner: ConnectionInner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// Returns the properties of the server. See [`Connection`](Connection#example) for an example.
    pub fn facts(&self) -> &ServerFacts {
        &self.inner.facts
    }

    /// Returns the trace of the connection attempt: each step with its outcome and time.
    /// See [`Connection`](Connection#example) for an example.
    pub fn trace(&self) -> &ConnectTrace {
        &self.inner.trace
    }

    /// Returns the counters of anomalies so far. See [`Connection`](Connection#example) for an example.
    pub fn counters(&self) -> ConnectionCounters {
        let (mut counters, request_handler) =
            (self.inner.server.engine.counters.snapshot(), self.inner.protocol.request_handler.counters());
        counters.turned_away += request_handler.turned_away;
        counters.oversized += request_handler.oversized;
        counters
    }

    /// Returns the health of the worker threads of an in-process server. `None` for any other server. See
    /// [`Connection`](Connection#example) for an example.
    pub fn workers_health(&self) -> Option<WorkersHealth> {
        self.inner.server.workers()
    }

    /// Returns the redactor for this server's secrets. See [`Connection`](Connection#example) for an example.
    pub fn redactor(&self) -> &Redactor {
        &self.inner.server.engine.observer().redactor
    }

    /// Returns excerpts of the first lines from the server that are not messages: escaped, redacted and cut.
    /// [`Connection::counters`] has their number. See [`Connection`](Connection#example) for an example.
    pub fn unreadable_lines(&self) -> Vec<String> {
        self.inner.server.engine.unreadable.excerpts()
    }

    /// Returns the total time that deadlines were paused because the server's requests waited for a person. A wait that
    /// is not over is not included. See [`Connection`](Connection#example) for an example.
    pub fn paused_time(&self) -> Duration {
        self.inner.server.engine.paused_time()
    }

    /// Returns the last lines the server wrote to stderr: untrusted text, with the server's secrets removed. See
    /// [`Connection`](Connection#example) for an example.
    pub fn stderr_tail(&self, lines: usize) -> Vec<String> {
        self.inner.server.stderr_tail(lines)
    }

    /// Waits until the server is gone and returns how it was lost.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn wait_until_gone(&self) -> Arc<DisconnectReport> {
        match self.inner.server.engine.wait_until_gone().await {
            CallError::RetryableDisconnect(gone) | CallError::OutcomeUnknown(gone) => gone,
            _ => Arc::new(DisconnectReport::from_cause(DisconnectCause::Stopped)),
        }
    }

    /// Reports whether the server is gone. See [`Connection`](Connection#example) for an example.
    pub fn is_gone(&self) -> bool {
        self.inner.server.engine.is_closed()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn inner(&self) -> &ConnectionInner {
        &self.inner
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.inner.facts.revision.era() == Era::Stateless
    }

    /// Calls a tool. A tool that reports failure is not an error here: see [`ToolResult::is_error`].
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    /// After [`CallError::OutcomeUnknown`], [`CallError::TimedOut`] and any error about the response itself the call
    /// may have executed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation to the server and discards the response. The call may have executed. If
    /// the server has turned the call into a task, the task is cancelled.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<ToolResult, CallError> {
        self.view(self.call_tool_raw(name, arguments, options).await?)
    }

    /// Calls a tool and returns its result undecoded, for forwarding.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Connection::call_tool`], except that the result is not checked.
    ///
    /// # Cancel safety
    ///
    /// As for [`Connection::call_tool`]: the call may have executed.
    ///
    /// # Example
    ///
    /// [`Connection::call_tool`] is called in the same way. See [`Connection`](Connection#example) for an example.
    pub async fn call_tool_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<RawResult, CallError> {
        self.check_capability("tools/call")?;
        Ok(call_tool(self, name, arguments, options, TaskHandling::Follow).await?.raw_result)
    }

    /// Sends any method with raw params and returns the raw result. Fails without sending if the server has not
    /// declared the capability.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    /// Returns [`CallError::Invalid`] for a method name that is not plain ASCII, and for params that are not an object.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation to the server and discards the response. The request may have executed.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn request(
        &self,
        method: &str,
        params: Option<&RawJson>,
        mut options: RequestOptions,
    ) -> Result<RawResult, CallError> {
        if !needs_no_escaping(method) || method.is_empty() {
            return Err(CallError::Invalid("a method name must be plain ASCII".to_owned()));
        }
        self.check_capability(method)?;
        let effect = if READ_ONLY_METHODS.contains(&method) { CallEffect::Reads } else { CallEffect::MayWrite };
        let body = match params {
            Some(params) => members_without_meta(params, &self.inner.limits.bounds, &mut options)?,
            None => String::new(),
        };
        let body: &[&[u8]] = if body.is_empty() { &[] } else { &[body.as_bytes()] };
        let ParamHeaders { name, header_params } = self.param_headers(method, params).await?;
        let outgoing = OutgoingRequest::new(method, body, effect);
        let outgoing = OutgoingRequest { name: name.as_deref(), header_params: &header_params, ..outgoing };
        Ok(run_call(self, outgoing, options).await?.raw_result)
    }

    /// Returns what HTTP repeats of the params in headers. Empty on other links.
    async fn param_headers(&self, method: &str, params: Option<&RawJson>) -> Result<ParamHeaders, CallError> {
        let key = mcp_name_param(method).filter(|_| self.inner.header_params.is_some());
        let (Some(key), Some(params)) = (key, params) else { return Ok(ParamHeaders::default()) };
        let bounds = &self.inner.limits.bounds;
        let members = object_members(params, bounds)?;
        let value = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        let name = value(key).and_then(|name| name.decode::<String>(bounds).ok());
        let header_params = match (&name, value("arguments")) {
            (Some(tool), Some(arguments)) if method == "tools/call" => {
                header_params::headers_for_call(self, tool, arguments).await?
            }
            _ => Vec::new(),
        };
        Ok(ParamHeaders { name, header_params })
    }

    /// Returns a fresh cached result or sends the request. `target` is the relevant parameter, as key and value.
    pub(crate) async fn request_cached(
        &self,
        method: &'static str,
        target: Option<(&str, &str)>,
        options: RequestOptions,
    ) -> Result<RawJson, CallError> {
        self.check_capability(method)?;
        let cache = self.inner.protocol.notifications.cache();
        let place = CacheQuery { method, target: target.map(|(_, value)| value), who: &self.inner.authorization };
        // The result of a forwarded request may depend on the input or on the client.
        let is_forwarded = options.input_round.is_some() || options.client.is_some();
        let kept = if options.fresh || is_forwarded { None } else { cache.find(place) };
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let changes = cache.invalidations();
        let body = target.map(|(key, value)| format!(r#""{key}":{}"#, serde_json::Value::from(value)));
        let body = body.iter().map(|body| body.as_bytes()).collect::<Vec<_>>();
        let name = target.and_then(|(key, value)| (mcp_name_param(method) == Some(key)).then_some(value));
        let outgoing = OutgoingRequest { name, ..OutgoingRequest::new(method, &body, CallEffect::Reads) };
        let completed = run_call(self, outgoing, options).await?;
        // Results that depend on user input are not cacheable (2026-07-28, server/utilities/caching).
        let is_cacheable = self.is_stateless() && completed.rounds == 0 && !is_forwarded;
        if is_cacheable && completed.raw_result.kind == ResultKind::Complete {
            cache.store(place, changes, &completed.raw_result.result);
        }
        self.expect_complete(completed.raw_result)
    }

    /// Clears the cache, so that the next list is requested from the server. See [`Connection`](Connection#example) for
    /// an example.
    pub fn clear_cache(&self) {
        self.inner.protocol.notifications.cache().clear();
    }

    /// Lists the tools. A malformed entry is withheld; the others are still listed.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    /// Also fails if the list exceeds a limit or its cursors form a loop. No partial list is returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn list_tools(&self) -> Result<Listing<ToolDefinition>, CallError> {
        let changes = self.inner.protocol.notifications.tools_changes();
        let mut listing = list_all(self, TOOLS).await?;
        if let Some(table) = &self.inner.header_params {
            table.record_listing(&mut listing, changes, &self.inner.limits.bounds);
        }
        Ok(listing)
    }

    /// Lists the resources. A malformed entry is withheld; the others are still listed.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    /// Also fails if the list exceeds a limit or its cursors form a loop. No partial list is returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn list_resources(&self) -> Result<Listing<Resource>, CallError> {
        list_all(self, RESOURCES).await
    }

    /// Lists the resource templates. A malformed entry is withheld; the others are still listed.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    /// Also fails if the list exceeds a limit or its cursors form a loop. No partial list is returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn list_templates(&self) -> Result<Listing<ResourceTemplate>, CallError> {
        list_all(self, TEMPLATES).await
    }

    /// Lists the prompts. A malformed entry is withheld; the others are still listed.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    /// Also fails if the list exceeds a limit or its cursors form a loop. No partial list is returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn list_prompts(&self) -> Result<Listing<PromptDefinition>, CallError> {
        list_all(self, PROMPTS).await
    }

    /// Reads a resource. A stateless-era server can allow caching; [`RequestOptions::fresh`] bypasses the cache.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn read_resource(&self, uri: &str, options: RequestOptions) -> Result<ReadResult, CallError> {
        let result = self.request_cached("resources/read", Some(("uri", uri)), options).await?;
        Ok(ReadResult::from_raw(result, &self.inner.limits.bounds)?)
    }

    /// Gets a prompt with its arguments filled in. Arguments are strings.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &[(String, String)],
        options: RequestOptions,
    ) -> Result<PromptResult, CallError> {
        let arguments: serde_json::Map<_, _> =
            arguments.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
        let params = serde_json::json!({ "name": name, "arguments": arguments });
        let params = RawJson::from_value(&params).map_err(|error| CallError::Invalid(error.to_string()))?;
        let answer = self.request("prompts/get", Some(&params), options).await?;
        self.view(answer)
    }

    /// Suggests values for a partially typed argument. `known` are the arguments already entered.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn complete_argument(
        &self,
        reference: Reference<'_>,
        argument: &str,
        value: &str,
        known: &[(String, String)],
    ) -> Result<Completion, CallError> {
        let reference = match reference {
            Reference::Prompt(name) => serde_json::json!({ "type": "ref/prompt", "name": name }),
            Reference::Template(uri) => serde_json::json!({ "type": "ref/resource", "uri": uri }),
        };
        let mut params = serde_json::json!({ "ref": reference, "argument": { "name": argument, "value": value } });
        // Part of the protocol since 2025-06-18; older servers ignore it.
        if !known.is_empty() {
            let known: serde_json::Map<_, _> =
                known.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
            params["context"] = serde_json::json!({ "arguments": known });
        }
        let params = RawJson::from_value(&params).map_err(|error| CallError::Invalid(error.to_string()))?;
        let answer = self.request("completion/complete", Some(&params), RequestOptions::default()).await?;
        self.view(answer)
    }

    /// Sets the minimum level of log messages on a handshake-era server. In the stateless era every request carries the
    /// level set when connecting.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe. A
    /// stateless-era server gives [`CallError::Unsupported`].
    ///
    /// # Cancel safety
    ///
    /// The connection uses the new level from the first poll on. Dropping the future cancels the request, but the
    /// server may have applied it.
    ///
    /// # Example
    ///
    /// [`Connection::ping`] is called in the same way. See [`Connection`](Connection#example) for an example.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), CallError> {
        let params = RawJson::from_value(&serde_json::json!({ "level": level.as_str() }));
        let params = params.map_err(|error| CallError::Invalid(error.to_string()))?;
        self.check_capability("logging/setLevel")?;
        self.inner.protocol.request_handler.set_log_level(level);
        self.request("logging/setLevel", Some(&params), RequestOptions::default()).await.map(drop)
    }

    /// Requests logs from a handshake-era server at the level set when connecting. Does not wait for the response.
    pub(crate) fn request_logs(&self) {
        if self.check_capability("logging/setLevel").is_ok() {
            crate::era::request_logs(&self.inner.server.engine, &self.inner.protocol.request_handler);
        }
    }

    /// Notifies a handshake-era server that its roots have changed. Stateless-era servers request the roots when they
    /// need them. Does not wait. See [`Connection`](Connection#example) for an example.
    pub fn notify_roots_changed(&self) {
        if !self.is_stateless() && self.inner.protocol.request_handler.services().roots.is_some() {
            self.inner.server.engine.send_message(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
        }
    }

    /// Checks that the server responds: with `ping`, or in the stateless era with another `server/discover`.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn ping(&self, options: RequestOptions) -> Result<(), CallError> {
        let method = match self.inner.facts.revision.era() {
            Era::Handshake => "ping",
            Era::Stateless => "server/discover",
        };
        self.request(method, None, options).await.map(|_| ())
    }

    /// Shuts the server down gracefully: cancels calls in flight, then ends the session or the process (closes stdin,
    /// waits, sends SIGTERM, waits, sends SIGKILL). Returns once the server has ended.
    ///
    /// # Cancel safety
    ///
    /// The shutdown begins at the first poll and continues if the future is dropped, as long as a clone of the
    /// connection exists. Dropping the last clone ends the server without waiting.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn close(&self) {
        self.inner.server.close().await;
    }

    pub(crate) fn view<T: View>(&self, answer: RawResult) -> Result<T, CallError> {
        Ok(T::from_raw(self.expect_complete(answer)?, &self.inner.limits.bounds)?)
    }

    /// Returns the result if the answer is complete.
    pub(crate) fn expect_complete(&self, answer: RawResult) -> Result<RawJson, CallError> {
        match answer.kind {
            ResultKind::Complete => Ok(answer.result),
            ResultKind::InputRequired => {
                Err(CallError::Protocol("input requested for a method that does not allow it".to_owned()))
            }
            ResultKind::Task => Err(CallError::Protocol("task created for a method that does not allow it".to_owned())),
        }
    }

    /// Fails if the server has not declared the capability that the method needs.
    pub(crate) fn check_capability(&self, method: &str) -> Result<(), CallError> {
        let facts = &self.inner.facts;
        let (offered, stateless) = (&facts.capabilities, self.is_stateless());
        let (ok, what) = match method.split('/').next().unwrap_or_default() {
            "tools" => (offered.tools, "tools"),
            "resources" if method.ends_with("subscribe") => {
                (offered.resources_subscribe && !stateless, "resource subscriptions")
            }
            "resources" => (offered.resources, "resources"),
            "prompts" => (offered.prompts, "prompts"),
            // The first revision supports completion but cannot declare it.
            "completion" => (offered.completions || facts.revision == Revision::V2024_11_05, "completion"),
            "logging" => (offered.logging && !stateless, "logging"),
            "ping" => (!stateless, "ping"),
            "tasks" if stateless => (offered.has_extension(TASKS_EXTENSION), "tasks"),
            "tasks" => (offered.tasks, "tasks"),
            "skills" => (offered.has_extension(SKILLS_EXTENSION), "skills"),
            "subscriptions" => (stateless, "subscriptions"),
            "initialize" | "notifications" => (false, "this method (it is reserved for the connection itself)"),
            _ => (true, ""),
        };
        if ok { Ok(()) } else { Err(CallError::Unsupported(what)) }
    }
}
