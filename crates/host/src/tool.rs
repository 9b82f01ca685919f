//! Adapter of a server's tool to the registry.

use std::sync::{Arc, Weak};
use std::time::Duration;

use wharf_client::CallError;
use wharf_json::JsonDecodeError;
use wharf_spec::EscapedText;
use wharf_tools::{BoxFuture, Tool, ToolDescription, ToolError, ToolErrorKind, ToolInvocation, ToolOutcome};

use crate::call::CallOptions;
use crate::catalog::CatalogTool;
use crate::context::{HostContext, LARGE_TEXT_BYTES};
use crate::error::HostError;
use crate::events::Event;
use crate::results::{escape_hidden_text, truncate, truncate_blocking};

/// Maximum characters of an error's data.
const MAX_ERROR_DATA_CHARS: usize = 4_000;

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
        options.request.timeout = call.timeout;
        options.request.meta = call.meta;
        options.request.progress = Some(self.progress(&context, call.progress));
        let paused = self.paused_time(&context);
        let replied = context.call_after_gate(&self.tool, &call.arguments, &options).await;
        call.person_time.add(self.paused_time(&context).saturating_sub(paused));
        let response = replied.map_err(|failed| to_tool_error(&failed))?;
        let bytes = response.raw_result.result.as_bytes().len();
        let (limits, spill) = (context.options.results, context.spill());
        let outcome = if bytes < LARGE_TEXT_BYTES {
            match response.outcome() {
                Ok(outcome) => Ok(truncate(escape_hidden_text(outcome), limits, spill).await),
                Err(odd) => Err(odd),
            }
        } else {
            // Decoded and truncated in one step, so that only one large outcome is held in full at a time.
            let read = move || Ok(truncate_blocking(escape_hidden_text(response.outcome()?), limits, spill.as_deref()));
            context.large.run(read).await.ok_or_else(read_failed_error)?
        };
        outcome.map_err(|odd: JsonDecodeError| {
            to_tool_error(&HostError::Call { server: self.tool.id.server.clone(), error: CallError::from(odd) })
        })
    }

    /// Returns the time that the server's connection has waited for a person.
    fn paused_time(&self, context: &HostContext) -> Duration {
        let server = context.server(self.tool.id.server.as_str()).ok();
        let live = server.and_then(|server| server.live_connection());
        live.map(|live| live.connection.paused_time()).unwrap_or_default()
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
                context.event_bus.publish(Event::Progress { tool: id.clone(), progress });
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
        HostError::NotInTime { .. }
        | HostError::Unavailable { .. }
        | HostError::NotAudited { .. }
        | HostError::Closed => ToolErrorKind::Unavailable,
        HostError::Call { error, .. } => match error {
            CallError::TimedOut { .. } => ToolErrorKind::TimedOut,
            CallError::RetryableDisconnect(_) | CallError::Busy => ToolErrorKind::Unavailable,
            CallError::OutcomeUnknown(_) => ToolErrorKind::OutcomeUnknown,
            CallError::TooLarge { .. } | CallError::TooComplex(_) | CallError::Discarded(_) => ToolErrorKind::TooLarge,
            _ => ToolErrorKind::Failed,
        },
        _ => ToolErrorKind::Failed,
    };
    let told = ToolError::new(kind, with_error_data(error));
    match error.hint() {
        // The next step after a refusal is the program's or the person's, not the model's.
        Some(hint) if !matches!(error, HostError::Denied(_) | HostError::NotAudited { .. }) => {
            told.with_next_action(hint)
        }
        _ => told,
    }
}

/// Formats an error, with the data that the server returned along with it.
fn with_error_data(error: &HostError) -> String {
    match error {
        HostError::Call { error: CallError::ErrorResponse(refusal), .. } => match &refusal.data {
            Some(data) => format!("{error}; data: {}", EscapedText::single_line(data.as_str(), MAX_ERROR_DATA_CHARS)),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use wharf_spec::ServerName;

    use super::*;

    #[test]
    fn error_of_a_server_keeps_its_code_and_data() {
        let data = wharf_json::RawJson::parse(format!(r#"{{"field":"a\u202e","long":"{}"}}"#, "x".repeat(9_000))).ok();
        let refusal = wharf_wire::RpcError { code: -32602, message: "no".to_owned(), data };
        let failed =
            HostError::Call { server: ServerName::new("one").unwrap(), error: CallError::ErrorResponse(refusal) };
        let told = to_tool_error(&failed).message;
        assert!(told.contains("(code -32602); data: {\"field\""), "{told}");
        assert!(!told.contains('\u{202e}') && told.len() < 5_000, "{told}");
    }

    #[test]
    fn unsent_calls_map_to_unavailable() {
        let (server, after) = (ServerName::new("one").unwrap(), Duration::from_secs(1));
        let waited = HostError::NotInTime { server: server.clone(), what: "connecting", after, last_error: None };
        let called = HostError::Call { server, error: CallError::Busy };
        for (failed, kind) in [(waited, ToolErrorKind::Unavailable), (called, ToolErrorKind::Unavailable)] {
            assert_eq!(to_tool_error(&failed).kind, kind, "{failed}");
        }
    }
}
