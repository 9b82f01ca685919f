//! One poll: what is asked, whether that may still be asked, and what came of it.

use std::time::Duration;

use wharf_client::{CallError, ResultKind};
use wharf_json::Raw;
use wharf_spec::{Fingerprint, ServerName, ToolId, Untrusted};
use wharf_tools::{Attempt, Block, Caller, Check, Contents, Outcome};
use wharf_wire::{ReadResult, ToolResult, View as _};

use crate::access::Permitted;
use crate::call::CallOptions;
use crate::context::Context;
use crate::error::HostError;
use crate::management::{base64, nearest_uri};
use crate::results::{self, ResultLimits, limited, visible};

/// The most bytes of a result in a note, which has room for little more.
const LONGEST_NOTE: usize = 3000;

/// What a subscription is about.
pub(crate) struct Subject {
    pub server: ServerName,
    pub target: Target,
    pub interval: Duration,
}

/// What is asked.
pub(crate) enum Target {
    /// A tool is called.
    Tool {
        id: ToolId,
        arguments: Raw,
        /// The definition that was permitted.
        permitted: Fingerprint,
        /// Who permitted it.
        by: PermittedBy,
        /// On whose behalf it was.
        caller: Caller,
    },
    /// A resource is read.
    Resource {
        uri: String,
        /// What the polling was asked for with.
        arguments: Raw,
        permitted: Permitted,
        caller: Caller,
    },
}

/// Who permitted that a tool is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermittedBy {
    /// Rules, trust or an earlier answer; as long as they do.
    Rules,
    /// A person who was asked about the whole of the polling.
    Person,
}

/// Why a poll came to nothing.
pub(super) enum Missed {
    /// There is hope for the next one. Escaped.
    Once(String),
    /// There is none. Escaped.
    ForGood(String),
}

impl Target {
    /// What it is called where subscriptions are told apart: untrusted.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { id, .. } => &id.tool,
            Self::Resource { uri, .. } => uri,
        }
    }

    /// The same in words, escaped.
    pub fn told(&self) -> String {
        match self {
            Self::Tool { id, .. } => format!("the tool {}", Untrusted::new(&*id.tool).shortened(200)),
            Self::Resource { uri, .. } => format!("the resource {}", Untrusted::new(uri.as_str()).shortened(500)),
        }
    }

    /// What a result says, as text, no more of it than a note has room for: untrusted.
    pub async fn text(&self, result: &Raw, context: &Context) -> String {
        let bounds = &context.options.limits.bounds;
        let outcome = match self {
            Self::Tool { .. } => ToolResult::view(result.clone(), bounds).map(|result| results::outcome(&result)),
            Self::Resource { .. } => ReadResult::view(result.clone(), bounds).map(|read| outcome_of(&read)),
        };
        // Pictures are not in a note at all, and so not put aside.
        let limits = ResultLimits { text: context.options.results.text.min(LONGEST_NOTE), attachment: usize::MAX };
        match outcome {
            Ok(outcome) => limited(visible(outcome), limits, context.spill()).await.text(),
            Err(error) => format!("[it makes no sense: {error}]"),
        }
    }
}

/// Asks once. Dropped while it waits, the call is withdrawn.
pub(super) async fn poll(context: &Context, subject: &Subject) -> Result<Raw, Missed> {
    match &subject.target {
        Target::Tool { id, arguments, permitted, by, caller } => {
            poll_tool(context, id, arguments, (permitted, *by, caller)).await
        }
        Target::Resource { uri, arguments, permitted, caller } => {
            still_permitted(context, Attempt { caller, tool: &permitted.tool, arguments }, permitted.by)?;
            poll_resource(context, &subject.server, uri).await
        }
    }
}

async fn poll_tool(
    context: &Context,
    id: &ToolId,
    arguments: &Raw,
    (permitted, by, caller): (&Fingerprint, PermittedBy, &Caller),
) -> Result<Raw, Missed> {
    let mut options = CallOptions::default().caller(caller.clone());
    options.call.fresh = true;
    let tool = context.find_tool(id, options.call.timeout).await.map_err(Missed::from)?;
    if tool.fingerprint != *permitted {
        return Err(Missed::ForGood("the tool is not what it was when this was permitted".to_owned()));
    }
    still_permitted(context, Attempt { caller, tool: &tool.description, arguments }, by)?;
    let reply = context.call_passed(&tool, arguments, &options).await.map_err(Missed::from)?;
    match reply.answer.kind {
        ResultKind::Complete => Ok(reply.answer.result),
        _ => Err(Missed::Once("it asks for more instead of answering".to_owned())),
    }
}

/// Puts one poll before the gate: rules may have changed since the polling was permitted.
fn still_permitted(context: &Context, attempt: Attempt<'_>, by: PermittedBy) -> Result<(), Missed> {
    match (context.gate.check(attempt), by) {
        // The person's answer was given for the whole of the polling.
        (Check::Pass, _) | (Check::Ask(_), PermittedBy::Person) => Ok(()),
        (Check::Ask(_), PermittedBy::Rules) => Err(Missed::ForGood("it needs a person's permission now".to_owned())),
        (Check::Refuse(refusal), _) => Err(Missed::ForGood(refusal.to_string())),
    }
}

async fn poll_resource(context: &Context, server: &ServerName, uri: &str) -> Result<Raw, Missed> {
    let server = context.server(server.as_str()).map_err(Missed::from)?;
    let mut options = wharf_client::CallOptions::default();
    options.fresh = true;
    let read = server.ask(context.patience(&server, None), |connection| {
        let options = options.clone();
        async move { connection.read_resource(uri, options).await }
    });
    let read = read.await.map_err(|error| match (&error, nearest_uri(context, &server, uri)) {
        (HostError::Call { error: CallError::Refused(_), .. }, Some(meant)) => {
            Missed::Once(format!("{error}; did you mean {meant}?"))
        }
        _ => Missed::from(error),
    })?;
    Ok(read.raw)
}

impl From<HostError> for Missed {
    fn from(error: HostError) -> Self {
        let text = error.to_string();
        match error {
            // Its list could not be had; the tool may be there all the same.
            HostError::UnknownTool { because: Some(_), .. } => Self::Once(text),
            HostError::UnknownServer { .. }
            | HostError::UnknownTool { .. }
            | HostError::Refused(_)
            | HostError::Closed
            | HostError::Call { error: CallError::Unsupported(_), .. } => Self::ForGood(text),
            _ => Self::Once(text),
        }
    }
}

/// What was read, as the outcome of any tool.
fn outcome_of(read: &ReadResult) -> Outcome {
    let block = |contents: &wharf_wire::ResourceContents| {
        let inside = match (&contents.text, &contents.blob) {
            (Some(text), _) => Contents::Text(text.clone()),
            (None, Some(blob)) => base64(blob).map_or(Contents::Nothing, Contents::Bytes),
            (None, None) => Contents::Nothing,
        };
        Block::Resource { uri: contents.uri.clone(), mime: contents.mime_type.clone(), contents: inside, raw: None }
    };
    Outcome::new(read.contents.iter().map(block).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_given_up_only_where_its_list_is_known() {
        for (because, ends) in [(None, true), (Some("the tools could not be listed".to_owned()), false)] {
            let server = ServerName::new("one").unwrap();
            let missed = HostError::UnknownTool { server, tool: "t".to_owned(), nearest: None, because };
            assert_eq!(matches!(Missed::from(missed), Missed::ForGood(_)), ends);
        }
    }
}
