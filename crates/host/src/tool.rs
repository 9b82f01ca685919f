//! Adapter of a server's tool to the registry.

use std::sync::{Arc, Weak};

use wharf_client::CallError;
use wharf_json::JsonDecodeError;
use wharf_tools::{BoxFuture, Tool, ToolDescription, ToolError, ToolErrorKind, ToolInvocation, ToolOutcome};

use crate::call::CallOptions;
use crate::catalog::CatalogTool;
use crate::context::{HostContext, LARGE_TEXT_BYTES};
use crate::error::HostError;
use crate::events::Event;
use crate::results::{escape_hidden_text, truncate, truncate_blocking};

/// A tool of a server. It holds only a weak reference to its host.
pub(crate) struct ServerTool {
    tool: Arc<CatalogTool>,
    context: Weak<HostContext>,
}

impl ServerTool {
    pub fn new(tool: Arc<CatalogTool>, context: Weak<HostContext>) -> Self {
        Self { tool, context }
    }

    async fn run_call(&self, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
        let context = self.context.upgrade().ok_or_else(|| to_tool_error(&HostError::Closed))?;
        let mut options = CallOptions::default().caller(call.caller);
        options.call.timeout = call.timeout;
        options.call.meta = call.meta;
        options.call.progress = Some(self.progress(&context, call.progress));
        let reply = context
            .call_permitted(&self.tool, &call.arguments, &options)
            .await
            .map_err(|failed| to_tool_error(&failed))?;
        let bytes = reply.answer.result.as_bytes().len();
        let (limits, spill) = (context.options.results, context.spill());
        let outcome = if bytes < LARGE_TEXT_BYTES {
            match reply.outcome() {
                Ok(outcome) => Ok(truncate(escape_hidden_text(outcome), limits, spill).await),
                Err(odd) => Err(odd),
            }
        } else {
            // Decoded and truncated in one step, so that only one large outcome is held in full at a time.
            let read = move || Ok(truncate_blocking(escape_hidden_text(reply.outcome()?), limits, spill.as_deref()));
            context.large.run(read).await.ok_or_else(read_failed_error)?
        };
        outcome.map_err(|odd: JsonDecodeError| {
            to_tool_error(&HostError::Call { server: self.tool.id.server.clone(), error: CallError::from(odd) })
        })
    }

    /// Returns a progress sink that publishes events and forwards progress to the caller's sink, if there is one.
    fn progress(
        &self,
        context: &Arc<HostContext>,
        sink: Option<wharf_tools::ProgressSink>,
    ) -> wharf_client::ProgressSink {
        let (context, id) = (Arc::downgrade(context), self.tool.id.clone());
        Arc::new(move |progress| {
            if let Some(sink) = &sink {
                let (done, total, message) = (progress.progress, progress.total, progress.message.clone());
                sink(wharf_tools::CallProgress { done, total, message });
            }
            if let Some(context) = context.upgrade() {
                context.crier.publish(Event::Progress { tool: id.clone(), progress });
            }
        })
    }
}

fn read_failed_error() -> ToolError {
    ToolError::new(ToolErrorKind::Failed, "reading the result failed")
}

impl Tool for ServerTool {
    fn description(&self) -> &Arc<ToolDescription> {
        &self.tool.description
    }

    fn call(&self, call: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        Box::pin(self.run_call(call))
    }
}

/// Converts a host error to a tool error, for callers that do not know about servers.
pub(crate) fn to_tool_error(error: &HostError) -> ToolError {
    let kind = match error {
        // Nothing has been sent if the deadline passed before.
        HostError::NotInTime { .. } | HostError::Unavailable { .. } | HostError::Closed => ToolErrorKind::Unavailable,
        HostError::Call { error, .. } => match error {
            CallError::TimedOut { .. } => ToolErrorKind::TimedOut,
            CallError::ServerGone(_) | CallError::Busy => ToolErrorKind::Unavailable,
            CallError::OutcomeUnknown(_) => ToolErrorKind::OutcomeUnknown,
            CallError::TooLarge { .. } | CallError::TooComplex(_) | CallError::Discarded(_) => ToolErrorKind::TooLarge,
            _ => ToolErrorKind::Failed,
        },
        _ => ToolErrorKind::Failed,
    };
    let told = ToolError::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => told.with_next_action(hint),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wharf_spec::ServerName;

    use super::*;

    #[test]
    fn what_has_not_left_may_be_called_again() {
        let (server, after) = (ServerName::new("one").unwrap(), Duration::from_secs(1));
        let waited = HostError::NotInTime { server: server.clone(), what: "connecting", after, trouble: None };
        let called = HostError::Call { server, error: CallError::Busy };
        for (failed, kind) in [(waited, ToolErrorKind::Unavailable), (called, ToolErrorKind::Unavailable)] {
            assert_eq!(to_tool_error(&failed).kind, kind, "{failed}");
        }
    }
}
