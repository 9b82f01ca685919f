//! A call that has passed the gate and that somebody else makes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use wharf_client::{CallError, Connection};
use wharf_json::Raw;
use wharf_spec::ToolId;
use wharf_tools::{Caller, RefusalReason};
use wharf_wire::ToolResult;

use crate::audit::Ended;
use crate::call::CallOptions;
use crate::catalog::CatalogTool;
use crate::context::Context;
use crate::error::HostError;
use crate::lane::Patience;
use crate::server::Server;

/// One call that may be made on the connection of its server: for what the host has no words for, such as tasks.
///
/// It counts as a call until it is told how it ended. Dropped before that, it is written down as withdrawn.
pub struct Permit {
    context: Arc<Context>,
    server: Arc<Server>,
    tool: Arc<CatalogTool>,
    arguments: Raw,
    caller: Caller,
    connection: Connection,
    timeout: Option<Duration>,
    began: Instant,
    is_over: bool,
    /// The server is given only so many calls at once.
    _turn: Option<OwnedSemaphorePermit>,
}

impl Permit {
    pub(crate) async fn ask(
        context: &Arc<Context>,
        id: &ToolId,
        arguments: &Raw,
        options: &CallOptions,
    ) -> Result<Self, HostError> {
        match Self::ask_once(context, id, arguments, options).await {
            // Its server was started anew and describes it differently. What it is now may be permitted as well.
            Err(HostError::Refused(refusal)) if refusal.reason == RefusalReason::ApprovalStale => {
                Self::ask_once(context, id, arguments, options).await
            }
            outcome => outcome,
        }
    }

    async fn ask_once(
        context: &Arc<Context>,
        id: &ToolId,
        arguments: &Raw,
        options: &CallOptions,
    ) -> Result<Self, HostError> {
        let tool = context.permitted(id, arguments, options).await?;
        let server = context.server(id.server.as_str())?;
        let timeout = options.call.timeout.or_else(|| server.kept.load().timeout(&id.tool));
        let patience = Patience::of(timeout.unwrap_or(context.options.limits.call));
        let turn = server.turn(patience).await?;
        let passage = server.open(None, patience).await?;
        server.learned(&passage, patience).await?;
        context.still_the_same(&tool)?;
        server.usage.enter();
        Ok(Self {
            context: Arc::clone(context),
            server,
            tool,
            arguments: arguments.clone(),
            caller: options.caller.clone(),
            connection: passage.connection,
            timeout,
            began: Instant::now(),
            is_over: false,
            _turn: turn,
        })
    }

    /// The connection to call it on.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How long it may take, where that is said: for this call, for the tool or for its server.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Says how the call ended.
    pub fn ended(mut self, outcome: Result<&ToolResult, &CallError>) {
        match outcome {
            Ok(result) if result.is_error => self.note(&Ended::ToolFailed),
            Ok(_) => self.note(&Ended::Answered),
            Err(error) => {
                let error = self.server.failed(error.clone());
                self.note(&Ended::Failed(&error));
            }
        }
    }

    fn note(&mut self, ended: &Ended<'_>) {
        let took = self.began.elapsed();
        self.is_over = true;
        self.context.tell_called(&self.tool.id, &self.arguments, &self.caller, (ended, took));
        if !matches!(ended, Ended::Withdrawn) {
            self.server.stats.record(&self.tool.id.tool, took, matches!(ended, Ended::Answered));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_over {
            self.note(&Ended::Withdrawn);
        }
        self.server.usage.leave();
    }
}
