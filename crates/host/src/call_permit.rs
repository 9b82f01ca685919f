//! A permitted call that is made outside the host.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use wharf_client::{CallError, Connection};
use wharf_json::RawJson;
use wharf_spec::ToolId;
use wharf_tools::ToolCaller;
use wharf_wire::ToolResult;

use crate::audit::{AuditedCallEnd, AuditedCallOutcome};
use crate::call::{CallOptions, OutgoingCall};
use crate::catalog::CatalogTool;
use crate::context::HostContext;
use crate::error::HostError;
use crate::results::is_marked_error;
use crate::routing::CallDeadline;
use crate::server::Server;

/// Permission for one call on the server's connection, for requests that the host does not support itself, such as
/// tasks.
///
/// It counts as a call until [`CallPermit::finish`]. Dropping it before that records the call as withdrawn.
pub struct CallPermit {
    context: Arc<HostContext>,
    server: Arc<Server>,
    tool: Arc<CatalogTool>,
    arguments: RawJson,
    caller: ToolCaller,
    connection: Connection,
    timeout: Option<Duration>,
    began: Instant,
    is_over: bool,
    /// Counts towards the server's limit of concurrent calls.
    _concurrency_permit: Option<OwnedSemaphorePermit>,
}

/// A request for a permit.
#[derive(Clone, Copy)]
struct PermitRequest<'a> {
    context: &'a Arc<HostContext>,
    arguments: &'a RawJson,
    options: &'a CallOptions,
}

impl CallPermit {
    pub(crate) async fn request(
        context: &Arc<HostContext>,
        id: &ToolId,
        arguments: &RawJson,
        options: &CallOptions,
    ) -> Result<Self, HostError> {
        let request = PermitRequest { context, arguments, options };
        let operation = |tool| async move { request.obtain(&tool).await };
        context.with_permitted_tool(id, arguments, options, operation).await
    }

    /// Returns the connection for the call.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the configured timeout, if any: of this call, of the tool or of its server.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Records the end of the call.
    pub fn finish(mut self, outcome: Result<&ToolResult, &CallError>) {
        match outcome {
            Ok(result) if result.is_error => self.record(&AuditedCallOutcome::ToolFailed),
            Ok(_) => self.record(&AuditedCallOutcome::Answered),
            Err(error) => {
                let error = self.server.call_error(error.clone());
                self.record(&AuditedCallOutcome::Failed(&error));
            }
        }
    }

    /// Records the end of a call whose result is only forwarded.
    pub fn finish_raw(mut self, outcome: Result<&RawJson, &CallError>) {
        match outcome {
            Ok(result) if is_marked_error(result) => self.record(&AuditedCallOutcome::ToolFailed),
            Ok(_) => self.record(&AuditedCallOutcome::Answered),
            Err(error) => {
                let error = self.server.call_error(error.clone());
                self.record(&AuditedCallOutcome::Failed(&error));
            }
        }
    }

    fn record(&mut self, ended: &AuditedCallOutcome<'_>) {
        let took = self.began.elapsed();
        self.is_over = true;
        let end = AuditedCallEnd { outcome: ended, took };
        self.context.report_call_end(&self.tool.id, &self.arguments, &self.caller, end);
        if !matches!(ended, AuditedCallOutcome::Withdrawn) {
            self.server.stats.record(&self.tool.id.tool, took, matches!(ended, AuditedCallOutcome::Answered));
        }
    }
}

impl PermitRequest<'_> {
    async fn obtain(self, tool: &Arc<CatalogTool>) -> Result<CallPermit, HostError> {
        let began = Instant::now();
        let Self { context, arguments, options } = self;
        let operation = |server| async move { self.wait_and_permit(&server, tool, began).await };
        let server = context.server(tool.id.server.as_str())?;
        context
            .with_current_server(
                server,
                OutgoingCall { tool, arguments, options, catalog_version: None, began },
                operation,
            )
            .await
            .1
    }

    /// Waits for a permit and for the server, as a call does.
    async fn wait_and_permit(
        self,
        server: &Arc<Server>,
        tool: &Arc<CatalogTool>,
        began: Instant,
    ) -> Result<CallPermit, HostError> {
        let timeout = self.options.request.timeout.or_else(|| server.settings.load().timeout(&tool.id.tool));
        let deadline = CallDeadline::since(began, timeout.unwrap_or(self.context.options.limits.call_timeout));
        let concurrency_permit = server.acquire_concurrency_permit(deadline).await?;
        // Counts as a use during the wait, so that the server is not stopped as idle.
        let entered = server.with_connection(deadline, |live| async move {
            server.wait_for_tools(&live, deadline).await?;
            let (context, caller) = (self.context, &self.options.caller);
            context.require_audit_entry(&tool.id, self.arguments, caller, deadline).await?;
            context.check_still_enabled(server, tool, None)?;
            Ok(self.build_permit(server, tool, live.connection, timeout))
        });
        let mut permit = entered.await?;
        permit._concurrency_permit = concurrency_permit;
        Ok(permit)
    }

    fn build_permit(
        self,
        server: &Arc<Server>,
        tool: &Arc<CatalogTool>,
        connection: Connection,
        timeout: Option<Duration>,
    ) -> CallPermit {
        server.usage.begin_call();
        CallPermit {
            context: Arc::clone(self.context),
            server: Arc::clone(server),
            tool: Arc::clone(tool),
            arguments: self.arguments.clone(),
            caller: self.options.caller.clone(),
            connection,
            timeout,
            began: Instant::now(),
            is_over: false,
            _concurrency_permit: None,
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if !self.is_over {
            self.record(&AuditedCallOutcome::Withdrawn);
        }
        self.server.usage.end_call();
    }
}
