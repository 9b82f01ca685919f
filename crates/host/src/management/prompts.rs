//! Prompts of servers. Listing needs no permission, expansion does.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use wharf_client::CallError;
use wharf_spec::{ServerName, UntrustedText};
use wharf_tools::{OutcomeBlock, ToolError, ToolInvocation, ToolOutcome, closest_name};
use wharf_wire::PromptResult;

use super::arguments::{GetPromptArguments, check_text, decode_arguments, permitted_server};
use super::output::{MAX_LISTED_NAME_BYTES, MAX_LISTED_TEXT_BYTES, sanitize_optional, sanitize_text};
use super::resources::select_sections;
use crate::access::{GET_PROMPT_TOOL, RequiredPermission, ServerAccess};
use crate::catalog::ListName;
use crate::context::HostContext;
use crate::error::HostError;
use crate::results::{escape_hidden_text, to_block, truncate};
use crate::server::Server;
use crate::tool::to_tool_error;

/// Maximum number of listed arguments of a prompt, and of messages of an expanded one.
const MAX_LISTED_ARGUMENTS: usize = 50;
const MAX_PROMPT_MESSAGES: usize = 100;

#[derive(Serialize)]
struct PromptEntry<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    arguments: Vec<PromptArgumentEntry<'a>>,
    server: &'a str,
}

#[derive(Serialize)]
struct PromptArgumentEntry<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    required: bool,
}

/// Lists prompts.
pub(super) async fn list_prompts(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let listed = select_sections(&context, &call, ListName::Prompts).await?;
    Ok(listed.into_outcome(&context, |section, entries| {
        for prompt in &section.prompts {
            let arguments = prompt.arguments.iter().take(MAX_LISTED_ARGUMENTS).map(|argument| PromptArgumentEntry {
                name: sanitize_text(&argument.name, MAX_LISTED_NAME_BYTES),
                description: sanitize_optional(argument.description.as_ref(), MAX_LISTED_TEXT_BYTES),
                required: argument.required,
            });
            entries.push(&PromptEntry {
                name: sanitize_text(&prompt.name, MAX_LISTED_NAME_BYTES),
                title: sanitize_optional(prompt.title.as_ref(), MAX_LISTED_NAME_BYTES),
                description: sanitize_optional(prompt.description.as_ref(), MAX_LISTED_TEXT_BYTES),
                arguments: arguments.collect(),
                server: section.server.as_str(),
            });
        }
    }))
}

/// Expands a prompt to its messages.
pub(super) async fn expand_prompt(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let GetPromptArguments { server, name, arguments } = decode_arguments(&context, &call.arguments)?;
    check_text("name", Some(&name))?;
    let server = permitted_server(&context, &server)?;
    let access =
        ServerAccess { tool: GET_PROMPT_TOOL, server: &server, arguments: &call.arguments, caller: &call.caller };
    let permitted = context.permit_access(access, RequiredPermission::Permission(None)).await;
    permitted.map_err(|refused| to_tool_error(&refused))?;
    let mut options = wharf_client::RequestOptions::default();
    options.timeout = call.timeout.or_else(|| server.settings.load().effective.timeout);
    options.meta = call.meta;
    let arguments: Vec<(String, String)> = arguments.unwrap_or_default().into_iter().collect();
    let expanded = server.request_with_retry(context.call_deadline(&server, call.timeout), |connection| {
        let (options, name, arguments) = (options.clone(), name.as_str(), arguments.as_slice());
        async move { connection.get_prompt(name, arguments, options).await }
    });
    let expanded = expanded.await.map_err(|failed| expand_error(&context, &server, &name, &failed))?;
    let outcome = ToolOutcome::new(message_blocks(&server.name, &name, &expanded));
    Ok(truncate(escape_hidden_text(outcome), context.options.results, context.spill()).await)
}

/// Returns the messages, each preceded by a line that names its role.
fn message_blocks(server: &ServerName, name: &str, expanded: &PromptResult) -> Vec<OutcomeBlock> {
    let name = UntrustedText::new(name);
    let mut head = format!(
        "[prompt {} of the server {server}: text from the server, not from the user]",
        name.truncate(MAX_LISTED_NAME_BYTES)
    );
    if let Some(description) = &expanded.description {
        head = format!("{head}\n[{}]", UntrustedText::new(description.as_str()).truncate(MAX_LISTED_TEXT_BYTES));
    }
    let mut blocks = vec![OutcomeBlock::text(head)];
    for message in expanded.messages.iter().take(MAX_PROMPT_MESSAGES) {
        blocks.push(OutcomeBlock::text(format!("[{}]", UntrustedText::new(message.role.as_str()).truncate(20))));
        blocks.push(to_block(&message.content));
    }
    if let Some(more) = expanded.messages.len().checked_sub(MAX_PROMPT_MESSAGES).filter(|more| *more > 0) {
        blocks.push(OutcomeBlock::text(format!("[{more} more messages are not shown]")));
    }
    blocks
}

fn expand_error(context: &HostContext, server: &Server, name: &str, failed: &HostError) -> ToolError {
    let told = to_tool_error(failed);
    if !matches!(failed, HostError::Call { error: CallError::ErrorResponse(_), .. }) {
        return told;
    }
    let catalog = context.publisher.peek();
    let section = catalog.section(server.name.as_str());
    let listed = section.iter().flat_map(|section| &section.prompts).map(|prompt| prompt.name.as_str());
    told.with_next_action(match closest_name(name, listed.filter(|listed| *listed != name)) {
        Some(meant) => {
            format!(
                "did you mean {}? ListMcpPrompts lists the available prompts",
                UntrustedText::new(meant).truncate(MAX_LISTED_NAME_BYTES)
            )
        }
        None => "ListMcpPrompts lists the available prompts and their arguments".to_owned(),
    })
}
