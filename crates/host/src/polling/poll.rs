//! A single poll: its target, the permission check and the outcome.

use std::time::Duration;

use wharf_client::{CallError, ResultKind};
use wharf_json::RawJson;
use wharf_spec::{Fingerprint, ServerName, ToolId, UntrustedText};
use wharf_tools::{EmbeddedContents, GateDecision, GatedCall, OutcomeBlock, PermissionSource, ToolCaller, ToolOutcome};
use wharf_wire::{ReadResult, ToolResult, View as _};

use crate::access::PermittedAccess;
use crate::call::CallOptions;
use crate::context::HostContext;
use crate::error::HostError;
use crate::management::{nearest_uri, parse_base64};
use crate::results::{self, ResultLimits, escape_hidden_text, truncate};

/// Maximum bytes of a result in a note.
const MAX_NOTE_BYTES: usize = 3000;

/// Target and interval of a subscription.
pub(crate) struct PollRequest {
    pub server: ServerName,
    pub target: PollTarget,
    pub interval: Duration,
}

/// Target of a poll.
pub(crate) enum PollTarget {
    /// A tool to call.
    Tool {
        id: ToolId,
        arguments: RawJson,
        /// Fingerprint of the permitted definition.
        permitted: Fingerprint,
        /// Origin of the permission.
        by: PermissionSource,
        /// The caller that requested the polling.
        caller: ToolCaller,
    },
    /// A resource to read.
    Resource {
        uri: String,
        /// Arguments with which the polling was requested.
        arguments: RawJson,
        permitted: PermittedAccess,
        caller: ToolCaller,
    },
}

/// Error of a poll.
pub(super) enum PollError {
    /// The next poll may succeed. Escaped.
    Once(String),
    /// Permanent: no later poll can succeed. Escaped.
    ForGood(String),
}

impl PollTarget {
    /// Returns the target's name, by which subscriptions are selected. Untrusted.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { id, .. } => &id.tool,
            Self::Resource { uri, .. } => uri,
        }
    }

    /// Returns a description of the target, escaped.
    pub fn describe(&self) -> String {
        match self {
            Self::Tool { id, .. } => format!("the tool {}", UntrustedText::new(&*id.tool).truncate(200)),
            Self::Resource { uri, .. } => format!("the resource {}", UntrustedText::new(uri.as_str()).truncate(500)),
        }
    }

    /// Returns the text of a result, truncated to the size of a note. Untrusted.
    pub async fn text(&self, result: &RawJson, context: &HostContext) -> String {
        let bounds = &context.options.limits.bounds;
        let outcome = match self {
            Self::Tool { .. } => {
                ToolResult::from_raw(result.clone(), bounds).map(|result| results::to_outcome(&result))
            }
            Self::Resource { .. } => ReadResult::from_raw(result.clone(), bounds).map(|read| to_outcome(&read)),
        };
        // Notes contain no images, so images are not spilled to files.
        let limits = ResultLimits { text: context.options.results.text.min(MAX_NOTE_BYTES), attachment: usize::MAX };
        match outcome {
            Ok(outcome) => truncate(escape_hidden_text(outcome), limits, context.spill()).await.text(),
            Err(error) => format!("[the result cannot be decoded: {error}]"),
        }
    }
}

/// Polls once. Dropping the future cancels the call.
pub(super) async fn poll(context: &HostContext, subject: &PollRequest) -> Result<RawJson, PollError> {
    match &subject.target {
        PollTarget::Tool { id, arguments, permitted, by, caller } => {
            let permission = PollPermission { definition: permitted, by: *by, caller };
            poll_tool(context, id, arguments, permission).await
        }
        PollTarget::Resource { uri, arguments, permitted, caller } => {
            check_permission(context, GatedCall { caller, tool: &permitted.tool, arguments }, permitted.by)?;
            poll_resource(context, &subject.server, uri).await
        }
    }
}

/// The permission under which a tool is polled.
struct PollPermission<'a> {
    definition: &'a Fingerprint,
    by: PermissionSource,
    caller: &'a ToolCaller,
}

async fn poll_tool(
    context: &HostContext,
    id: &ToolId,
    arguments: &RawJson,
    PollPermission { definition, by, caller }: PollPermission<'_>,
) -> Result<RawJson, PollError> {
    let mut options = CallOptions::default().caller(caller.clone());
    options.request.fresh = true;
    let tool = context.find_tool(id, options.request.timeout).await.map_err(PollError::from)?;
    if tool.fingerprint != *definition {
        return Err(PollError::ForGood("the tool's definition has changed since the polling was permitted".to_owned()));
    }
    check_permission(context, GatedCall { caller, tool: &tool.description, arguments }, by)?;
    let response = context.call_after_gate(&tool, arguments, &options).await.map_err(PollError::from)?;
    match response.raw_result.kind {
        ResultKind::Complete => Ok(response.raw_result.result),
        _ => Err(PollError::Once("the tool asked for input instead of returning a result".to_owned())),
    }
}

/// Checks one poll with the gate, because rules may have changed since the polling was permitted.
fn check_permission(context: &HostContext, attempt: GatedCall<'_>, by: PermissionSource) -> Result<(), PollError> {
    match (context.gate.check(attempt), by) {
        // The person's answer covers the polling as a whole.
        (GateDecision::Pass, _) | (GateDecision::Ask(_), PermissionSource::Person) => Ok(()),
        (GateDecision::Ask(_), PermissionSource::Rules) => {
            Err(PollError::ForGood("permission has to be granted again".to_owned()))
        }
        (GateDecision::Refuse(refusal), _) => Err(PollError::ForGood(refusal.to_string())),
    }
}

async fn poll_resource(context: &HostContext, server: &ServerName, uri: &str) -> Result<RawJson, PollError> {
    let server = context.server(server.as_str()).map_err(PollError::from)?;
    let mut options = wharf_client::RequestOptions::default();
    options.fresh = true;
    let read = server.request_with_retry(context.call_deadline(&server, None), |connection| {
        let options = options.clone();
        async move { connection.read_resource(uri, options).await }
    });
    let read = read.await.map_err(|error| match (&error, nearest_uri(context, &server, uri)) {
        (HostError::Call { error: CallError::ErrorResponse(_), .. }, Some(meant)) => {
            PollError::Once(format!("{error}; did you mean {meant}?"))
        }
        _ => PollError::from(error),
    })?;
    Ok(read.raw)
}

impl From<HostError> for PollError {
    fn from(error: HostError) -> Self {
        let text = error.to_string();
        match error {
            // The tool list could not be read; the tool may still exist.
            HostError::UnknownTool { because: Some(_), .. } => Self::Once(text),
            HostError::UnknownServer { .. }
            | HostError::UnknownTool { .. }
            | HostError::Denied(_)
            | HostError::Closed
            | HostError::Call { error: CallError::Unsupported(_), .. } => Self::ForGood(text),
            _ => Self::Once(text),
        }
    }
}

/// Converts a read result to a generic tool outcome.
fn to_outcome(read: &ReadResult) -> ToolOutcome {
    let block = |contents: &wharf_wire::ResourceContents| {
        let inside = match (&contents.text, &contents.blob) {
            (Some(text), _) => EmbeddedContents::Text(text.clone()),
            (None, Some(blob)) => parse_base64(blob).map_or(EmbeddedContents::Nothing, EmbeddedContents::Bytes),
            (None, None) => EmbeddedContents::Nothing,
        };
        OutcomeBlock::Resource {
            uri: contents.uri.clone(),
            mime: contents.mime_type.clone(),
            contents: inside,
            raw: None,
        }
    };
    ToolOutcome::new(read.contents.iter().map(block).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tool_ends_polling_only_if_tools_were_listed() {
        for (because, ends) in [(None, true), (Some("the tools could not be listed".to_owned()), false)] {
            let server = ServerName::new("one").unwrap();
            let missed = HostError::UnknownTool { server, tool: "t".to_owned(), nearest: None, because };
            assert_eq!(matches!(PollError::from(missed), PollError::ForGood(_)), ends);
        }
    }
}
