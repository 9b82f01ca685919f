//! Tool calls, from the tool's name to the response.

mod options;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_client::{CallError, InputRound, RawResult, ResultKind};
use wharf_json::{RawJson, object_members};
use wharf_spec::{ServerName, ToolId, UntrustedText};
use wharf_tools::{
    CallRefusal, GatedCall, PermissionSource, RefusalReason, ToolCaller, ToolError, ToolOutcome, closest_name,
};
use wharf_wire::{JsonDecodeError, JsonLimits, ToolResult, View as _};

use crate::audit::{AuditedCallEnd, AuditedCallOutcome};
use crate::catalog::{Catalog, CatalogTool};
use crate::context::HostContext;
use crate::definition_review::Remedy;
use crate::error::HostError;
use crate::events::Event;
use crate::results::{self, ResultCacheKey};
use crate::routing::CallDeadline;
use crate::server::Server;
use crate::tool::to_tool_error;

pub use options::CallOptions;

/// The response to a tool call. It is decoded on access only.
#[derive(Debug, Clone)]
pub struct ToolResponse {
    /// The called tool.
    pub tool: ToolId,
    /// The result as received.
    pub raw_result: RawResult,
    bounds: JsonLimits,
}

impl ToolResponse {
    /// Returns the raw result.
    pub fn json(&self) -> &RawJson {
        &self.raw_result.result
    }

    /// Returns the decoded result.
    ///
    /// # Errors
    ///
    /// Returns an error if the result is malformed or too complex.
    pub fn result(&self) -> Result<ToolResult, JsonDecodeError> {
        ToolResult::from_raw(self.raw_result.result.clone(), &self.bounds)
    }

    /// Returns the result as a generic tool outcome, with all content types.
    ///
    /// # Errors
    ///
    /// Returns an error if the result is malformed or too complex.
    pub fn outcome(&self) -> Result<ToolOutcome, JsonDecodeError> {
        Ok(results::to_outcome(&self.result()?))
    }

    /// Returns the text of the result, with one line for each part that is not text.
    ///
    /// # Errors
    ///
    /// Returns an error if the result is malformed or too complex.
    pub fn text(&self) -> Result<String, JsonDecodeError> {
        Ok(self.outcome()?.text())
    }
}

impl HostContext {
    /// Calls a tool: finds it, checks it with the gate and sends the call to its server.
    ///
    /// Dropping the future withdraws an open prompt or cancels the call.
    pub async fn call(
        &self,
        id: &ToolId,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<ToolResponse, HostError> {
        let catalog_version = Some(self.publisher.peek().version());
        let options = &options;
        let operation = |tool: Arc<CatalogTool>| async move {
            self.call_permitted(&tool, arguments, options, catalog_version).await
        };
        self.with_permitted_tool(id, arguments, options, operation).await
    }

    /// Finds a tool, checks the call with the gate and runs `operation`. If `operation` is refused because the tool's
    /// definition or its server has changed since the check, all of this is repeated once.
    pub async fn with_permitted_tool<T, F: Future<Output = Result<T, HostError>>>(
        &self,
        id: &ToolId,
        arguments: &RawJson,
        options: &CallOptions,
        operation: impl Fn(Arc<CatalogTool>) -> F,
    ) -> Result<T, HostError> {
        let tool = self.find_permitted_tool(id, arguments, options).await?;
        match operation(tool).await {
            Err(HostError::Denied(refusal)) if refusal.reason == RefusalReason::PermissionStale => {
                operation(self.find_permitted_tool(id, arguments, options).await?).await
            }
            outcome => outcome,
        }
    }

    async fn find_permitted_tool(
        &self,
        id: &ToolId,
        arguments: &RawJson,
        options: &CallOptions,
    ) -> Result<Arc<CatalogTool>, HostError> {
        let tool = self.find_tool(id, options.request.timeout).await?;
        self.check_gate(&tool, arguments, &options.caller).await?;
        Ok(tool)
    }

    /// Runs `operation` on a server. If the server was replaced during the wait, the call has not been sent:
    /// the gate checks it again, because the replacement may be trusted less, and `operation` runs on the replacement.
    ///
    /// Returns the last server with the outcome.
    pub async fn with_current_server<T, F: Future<Output = Result<T, HostError>>>(
        &self,
        mut server: Arc<Server>,
        call: OutgoingCall<'_>,
        operation: impl Fn(Arc<Server>) -> F,
    ) -> (Arc<Server>, Result<T, HostError>) {
        let mut outcome = operation(Arc::clone(&server)).await;
        while let Some(other) = self.replacement_of(&server, &outcome) {
            server = other;
            outcome = match self.check_gate_again(&server, call).await {
                Ok(()) => operation(Arc::clone(&server)).await,
                Err(error) => Err(error),
            };
        }
        (server, outcome)
    }

    /// Returns a tool that is not quarantined. Waits for its server if the tool is not in the catalog yet.
    pub async fn find_tool(&self, id: &ToolId, timeout: Option<Duration>) -> Result<Arc<CatalogTool>, HostError> {
        let known = self.publisher.peek().tool(id).map(Arc::clone);
        let tool = match known {
            Some(tool) => tool,
            None => self.wait_for_tool(id, timeout).await?,
        };
        match tool.quarantine() {
            Some(reason) => {
                let why = format!("the tool is quarantined until a person reviews and releases it: {reason}");
                let hint = self.remedy_text(Remedy::Release(id));
                Err(HostError::Denied(CallRefusal::new(RefusalReason::Other(why)).with_hint(hint)))
            }
            None => Ok(tool),
        }
    }

    /// Waits for a tool that is not in the catalog yet, because its server has not been listed or is being replaced.
    async fn wait_for_tool(&self, id: &ToolId, timeout: Option<Duration>) -> Result<Arc<CatalogTool>, HostError> {
        let mut server = self.server(id.server.as_str())?;
        loop {
            let listed = self.wait_for_tools(&server, timeout).await;
            let found = listed
                .and_then(|catalog| catalog.tool(id).map(Arc::clone).ok_or_else(|| unknown_tool_error(&catalog, id)));
            match self.replacement_of(&server, &found) {
                Some(other) => server = other,
                None => return found,
            }
        }
    }

    /// Returns the catalog once the server's tools are in it.
    async fn wait_for_tools(&self, server: &Server, timeout: Option<Duration>) -> Result<Arc<Catalog>, HostError> {
        let deadline = self.call_deadline(server, timeout);
        let tools_listed =
            server.with_connection(deadline, |live| async move { server.wait_for_tools(&live, deadline).await });
        tools_listed.await?;
        Ok(self.publisher.catalog())
    }

    /// Returns the catalog once all of the server's lists are in it.
    pub async fn wait_for_lists(&self, server: &Server, timeout: Option<Duration>) -> Result<Arc<Catalog>, HostError> {
        let deadline = self.call_deadline(server, timeout);
        let all_listed =
            server.with_connection(deadline, |live| async move { server.wait_for_all_lists(&live, deadline).await });
        all_listed.await?;
        Ok(self.publisher.catalog())
    }

    /// Returns the deadline of a call to this server.
    pub fn call_deadline(&self, server: &Server, timeout: Option<Duration>) -> CallDeadline {
        CallDeadline::after(
            timeout.or_else(|| server.settings.load().effective.timeout).unwrap_or(self.options.limits.call_timeout),
        )
    }

    /// Returns the deadline of a wait for a server that may have to be started first.
    pub fn startup_deadline(&self, server: &Server) -> CallDeadline {
        let settings = &server.settings.load().effective;
        let limits = &self.options.limits;
        let time = settings.startup_timeout.unwrap_or(limits.startup) + settings.timeout.unwrap_or(limits.call_timeout);
        CallDeadline::after(time)
    }

    async fn check_gate(&self, tool: &CatalogTool, arguments: &RawJson, caller: &ToolCaller) -> Result<(), HostError> {
        let attempt = GatedCall { caller, tool: &tool.description, arguments };
        match self.gate.check(attempt).wait().await.map_err(HostError::Denied)? {
            PermissionSource::Rules => Ok(()),
            // The definition may have changed while the person was asked.
            PermissionSource::Person => self.check_unchanged(tool),
        }
    }

    /// Makes a call that has passed the gate.
    pub async fn call_after_gate(
        &self,
        tool: &Arc<CatalogTool>,
        arguments: &RawJson,
        options: &CallOptions,
    ) -> Result<ToolResponse, HostError> {
        self.call_permitted(tool, arguments, options, None).await
    }

    /// Makes a call that has passed the gate, or returns its cached result. `catalog_version` was current before the
    /// tool was looked up: while it is current, the tool is unchanged. Otherwise, and with `None`, the definition is
    /// compared before the call is sent.
    async fn call_permitted(
        &self,
        tool: &CatalogTool,
        arguments: &RawJson,
        options: &CallOptions,
        catalog_version: Option<u64>,
    ) -> Result<ToolResponse, HostError> {
        let server = self.server(tool.id.server.as_str())?;
        let cache_key = ResultCacheKey::from_call(&server, tool, arguments, options);
        let began = Instant::now();
        let mut record = CallRecord { context: self, tool, arguments, caller: &options.caller, began: Some(began) };
        if let Some(result) = cache_key.as_ref().and_then(|cache_key| server.results.get(cache_key)) {
            record.finish(&AuditedCallOutcome::Answered);
            return Ok(self.reply(tool, RawResult { result, kind: ResultKind::Complete }));
        }
        let call = OutgoingCall { tool, arguments, options, catalog_version, began };
        let send = |server: Arc<Server>| async move { self.send_with_retry(&server, call).await };
        let (server, outcome) = self.with_current_server(server, call, send).await;
        let ended = match &outcome {
            Ok(answer) if results::is_marked_error(&answer.result) => AuditedCallOutcome::ToolFailed,
            Ok(_) => AuditedCallOutcome::Answered,
            Err(error) => AuditedCallOutcome::Failed(error),
        };
        let took = record.finish(&ended);
        let success = matches!(ended, AuditedCallOutcome::Answered);
        server.stats.record(&tool.id.tool, took, success);
        let answer = outcome?;
        if let (true, Some(cache_key)) = (success, cache_key) {
            cache_key.cache_result(&server, &answer);
        }
        Ok(self.reply(tool, answer))
    }

    /// Checks a call with the gate again, for a server that replaced the original one.
    async fn check_gate_again(&self, server: &Server, call: OutgoingCall<'_>) -> Result<(), HostError> {
        self.wait_for_tools(server, call.options.request.timeout).await?;
        self.check_unchanged(call.tool)?;
        self.check_gate(call.tool, call.arguments, &call.options.caller).await
    }

    async fn send_with_retry(&self, server: &Server, call: OutgoingCall<'_>) -> Result<RawResult, HostError> {
        let OutgoingCall { tool, arguments, options, catalog_version, began } = call;
        let timeout = options.request.timeout.or_else(|| server.settings.load().timeout(&tool.id.tool));
        let deadline = CallDeadline::since(began, timeout.unwrap_or(self.options.limits.call_timeout));
        let called = server.call_with_retry(deadline, |live| {
            let client_options = options.with_timeout(timeout);
            async move {
                server.wait_for_tools(&live, deadline).await?;
                self.require_audit_entry(&tool.id, arguments, &options.caller, deadline).await?;
                // Last: the definition may have changed during the waits.
                self.check_still_enabled(server, tool, catalog_version)?;
                let called = live.connection.call_tool_raw(&tool.id.tool, arguments, client_options).await;
                called.map_err(|error| server.call_error(error))
            }
        });
        called.await
    }

    /// Writes the audit entry of a call that is about to be sent, if the audit log is required.
    pub async fn require_audit_entry(
        &self,
        tool: &ToolId,
        arguments: &RawJson,
        caller: &ToolCaller,
        deadline: CallDeadline,
    ) -> Result<(), HostError> {
        let Some(audit) = self.audit.as_ref().filter(|audit| audit.is_required()) else { return Ok(()) };
        let mut closing = self.closing.subscribe();
        tokio::select! {
            written = audit.write_begin(tool, arguments, caller) => written,
            () = tokio::time::sleep_until(deadline.at) => {
                let reason = "timed out".to_owned();
                Err(HostError::NotAudited { server: tool.server.clone(), reason })
            }
            _ = closing.wait_for(|closing| *closing) => Err(HostError::Closed),
        }
    }

    /// Checks that a tool is unchanged and still enabled. While the call waited for the server or for a permit, the
    /// server may have changed its definition and the settings may have excluded it. A tool seen in the current catalog
    /// version is unchanged.
    pub fn check_still_enabled(
        &self,
        server: &Server,
        tool: &CatalogTool,
        catalog_version: Option<u64>,
    ) -> Result<(), HostError> {
        if Some(self.publisher.peek().version()) != catalog_version {
            self.check_unchanged(tool)?;
        }
        if !server.settings.load().filter.admits(&tool.id.tool) {
            return Err(unknown_tool_error(&self.publisher.catalog(), &tool.id));
        }
        Ok(())
    }

    /// Returns the replacement of a server that could not be called, if there is one.
    fn replacement_of<T>(&self, server: &Arc<Server>, outcome: &Result<T, HostError>) -> Option<Arc<Server>> {
        use HostError::{Closed, Unavailable, UnknownTool};
        if !matches!(outcome, Err(Unavailable { .. } | UnknownTool { .. } | Closed)) {
            return None;
        }
        self.server(server.name.as_str()).ok().filter(|now| now.generation > server.generation)
    }

    /// Sends a request of any method. `tools/call` takes the same path as [`HostContext::call`].
    pub async fn request(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawJson>,
        options: CallOptions,
    ) -> Result<RawResult, HostError> {
        if method == "tools/call" {
            return self.request_call(server, params, options).await;
        }
        let mut server = self.server(server.as_str())?;
        loop {
            self.permit_request(&server, method, params, &options).await?;
            let client_options =
                options.with_timeout(options.request.timeout.or_else(|| server.settings.load().effective.timeout));
            let calling =
                server.request_with_retry(self.call_deadline(&server, options.request.timeout), |connection| {
                    let options = client_options.clone();
                    async move { connection.request(method, params, options).await }
                });
            let outcome = calling.await;
            match self.replacement_of(&server, &outcome) {
                Some(other) => server = other,
                None => return outcome,
            }
        }
    }

    async fn request_call(
        &self,
        server: &ServerName,
        params: Option<&RawJson>,
        mut options: CallOptions,
    ) -> Result<RawResult, HostError> {
        let bounds = &self.options.limits.bounds;
        let invalid = |why: String| HostError::Call { server: server.clone(), error: CallError::Invalid(why) };
        let params = params.ok_or_else(|| invalid("`tools/call` requires the tool's `name`".to_owned()))?;
        let members = object_members(params, bounds).map_err(|error| invalid(error.to_string()))?;
        let member = |wanted: &str| members.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.clone());
        let name: Option<String> = member("name").and_then(|name| name.decode(bounds).ok());
        let name = name.ok_or_else(|| invalid("`tools/call` requires the tool's `name`".to_owned()))?;
        let known = ["name", "arguments", "_meta", "inputResponses", "requestState"];
        if let Some((odd, _)) = members.iter().find(|(key, _)| !known.contains(&&**key)) {
            return Err(invalid(format!(
                "`tools/call` does not accept the parameter `{}`",
                UntrustedText::new(&**odd).truncate(60)
            )));
        }
        options.request.meta = options.request.meta.or_else(|| member("_meta"));
        let round = InputRound { responses: member("inputResponses"), state: member("requestState") };
        if round != InputRound::default() {
            options.request.input_round = Some(round);
        }
        let arguments = member("arguments").unwrap_or_else(RawJson::empty_object);
        Ok(self.call(&ToolId::new(server, name), &arguments, options).await?.raw_result)
    }

    /// Checks that the catalog still has this definition of the tool. A changed definition makes the permission stale;
    /// a removed tool is unknown.
    pub fn check_unchanged(&self, tool: &CatalogTool) -> Result<(), HostError> {
        let catalog = self.publisher.peek();
        match catalog.tool(&tool.id) {
            Some(now) if now.fingerprint == tool.fingerprint => Ok(()),
            Some(_) => Err(HostError::Denied(CallRefusal::new(RefusalReason::PermissionStale))),
            None => Err(unknown_tool_error(&catalog, &tool.id)),
        }
    }

    /// Publishes the end of a call, if there are receivers, and audits it, if there is a log.
    pub fn report_call_end(&self, tool: &ToolId, arguments: &RawJson, caller: &ToolCaller, end: AuditedCallEnd<'_>) {
        if self.event_bus.has_receivers() {
            let success = matches!(end.outcome, AuditedCallOutcome::Answered);
            self.event_bus.publish(Event::Called { tool: tool.clone(), duration: end.took, success });
        }
        if let Some(audit) = &self.audit {
            audit.record_call(tool, arguments, caller, end);
        }
    }

    fn reply(&self, tool: &CatalogTool, raw_result: RawResult) -> ToolResponse {
        ToolResponse { tool: tool.id.clone(), raw_result, bounds: self.options.limits.bounds }
    }
}

/// Parameters of one call that is being sent to a server.
#[derive(Clone, Copy)]
pub struct OutgoingCall<'a> {
    pub tool: &'a CatalogTool,
    pub arguments: &'a RawJson,
    pub options: &'a CallOptions,
    /// Catalog version that was current before the tool was looked up, if known.
    pub catalog_version: Option<u64>,
    pub began: Instant,
}

/// A call in progress. Its end is published and audited even if the caller drops the future.
struct CallRecord<'a> {
    context: &'a HostContext,
    tool: &'a CatalogTool,
    arguments: &'a RawJson,
    caller: &'a ToolCaller,
    /// Start of the call; `None` once it has ended.
    began: Option<Instant>,
}

impl CallRecord<'_> {
    fn finish(&mut self, ended: &AuditedCallOutcome<'_>) -> Duration {
        let Some(began) = self.began.take() else { return Duration::ZERO };
        let took = began.elapsed();
        self.context.report_call_end(
            &self.tool.id,
            self.arguments,
            self.caller,
            AuditedCallEnd { outcome: ended, took },
        );
        took
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        self.finish(&AuditedCallOutcome::Withdrawn);
    }
}

impl HostContext {
    /// Returns the failure of the server that a tool's name belongs to, if the server is not connected. Names are
    /// compared with those of the servers, in the styles that begin with the server; the longest match wins.
    pub fn explain_missing_tool(&self, name: &str) -> Option<ToolError> {
        let belongs = |server: &str| {
            let rest = name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(server)?.strip_prefix("__"));
            rest.or_else(|| name.strip_prefix("mcp_")?.strip_prefix(server)?.strip_prefix('_')).is_some()
        };
        let servers = self.servers.load();
        let named = servers.iter().filter(|(server, _)| belongs(server.as_str()));
        let (_, server) = named.max_by_key(|(server, _)| server.as_str().len())?;
        if server.live_connection().is_some() {
            return None;
        }
        let error = server.unavailable_error(&server.snapshot.borrow());
        Some(to_tool_error(&error))
    }
}

fn unknown_tool_error(catalog: &Catalog, id: &ToolId) -> HostError {
    let section = catalog.section(id.server.as_str());
    let names = section.iter().flat_map(|section| section.tools.iter().map(|tool| &*tool.id.tool));
    let meant = closest_name(&id.tool, names).map(str::to_owned);
    let because = section.and_then(|section| section.explain_missing(&id.tool));
    HostError::UnknownTool { server: id.server.clone(), tool: id.tool.to_string(), nearest: meant, because }
}
