//! Requests of Anthropic's Messages API.

use std::borrow::Cow;

use serde::Serialize;
use wharf_json::RawJson;

use super::thinking::{OutputConfig, ThinkingParams, output_config, thinking_params};
use crate::conversation::{ConversationTurn, ResultBlock, TurnBlock, TurnRole};
use crate::provider::definitions::tool_alias;
use crate::provider::{CompletionRequest, EncodedTool, ModelProvider, ToolChoice};

#[derive(Serialize)]
struct MessagesRequest<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Vec<RequestMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<AnthropicToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingParams>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: TurnRole,
    content: Vec<AnthropicContent<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicContent<'a> {
    Known(KnownContent<'a>),
    Carried(&'a RawJson),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownContent<'a> {
    Text { text: &'a str },
    Image { source: ImageSource<'a> },
    ToolUse { id: &'a str, name: Cow<'a, str>, input: &'a RawJson },
    ToolResult { tool_use_id: &'a str, content: Vec<KnownContent<'a>>, is_error: bool },
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawJson,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicToolChoice<'a> {
    Auto,
    None,
    Any,
    Tool { name: Cow<'a, str> },
}

/// Serializes a request.
pub(in crate::provider) fn encode_request(
    provider: &ModelProvider,
    request: &CompletionRequest<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let (source, tools) = (provider.source_id(), &request.tools.offered);
    let turns = &request.conversation.turns;
    let messages = turns.iter().map(|turn| encode_turn(turn, &source)).filter(|message| !message.content.is_empty());
    serde_json::to_vec(&MessagesRequest {
        model: &provider.model,
        max_tokens: provider.max_tokens,
        stream: true,
        system: request.conversation.system.as_deref().filter(|text| !text.is_empty()),
        messages: messages.collect(),
        tools: tools.iter().map(encode_tool).collect(),
        tool_choice: (!tools.is_empty()).then(|| encode_tool_choice(request.tool_choice)),
        thinking: thinking_params(provider, request),
        output_config: output_config(provider, request),
    })
}

/// Converts a turn to a message. Results come first, because the API requires them directly after their calls.
fn encode_turn<'a>(turn: &'a ConversationTurn, source: &str) -> RequestMessage<'a> {
    let mut blocks: Vec<&TurnBlock> = turn.blocks.iter().collect();
    blocks.sort_by_key(|block| !matches!(block, TurnBlock::ToolResult { .. }));
    RequestMessage {
        role: turn.role,
        content: blocks.into_iter().filter_map(|block| encode_block(block, source)).collect(),
    }
}

fn encode_block<'a>(block: &'a TurnBlock, source: &str) -> Option<AnthropicContent<'a>> {
    Some(AnthropicContent::Known(match block {
        // The API rejects empty text.
        TurnBlock::Text(text) | TurnBlock::Relayed(text) if text.trim().is_empty() => return None,
        TurnBlock::Text(text) | TurnBlock::Relayed(text) => KnownContent::Text { text },
        TurnBlock::Image { media_type, data } => encode_image(media_type, data),
        TurnBlock::ToolCall { id, name, arguments, .. } => {
            KnownContent::ToolUse { id, name: tool_alias(name), input: arguments }
        }
        TurnBlock::ToolResult { id, content, is_error } => KnownContent::ToolResult {
            tool_use_id: id,
            content: content.iter().filter_map(encode_result).collect(),
            is_error: *is_error,
        },
        TurnBlock::Thinking { provider, raw } | TurnBlock::Unknown { provider, raw } => {
            return (provider == source).then_some(AnthropicContent::Carried(raw));
        }
    }))
}

fn encode_result(block: &ResultBlock) -> Option<KnownContent<'_>> {
    match block {
        ResultBlock::Text(text) if text.trim().is_empty() => None,
        ResultBlock::Text(text) => Some(KnownContent::Text { text }),
        ResultBlock::Image { media_type, data } => Some(encode_image(media_type, data)),
    }
}

fn encode_image<'a>(media_type: &'a str, data: &'a str) -> KnownContent<'a> {
    KnownContent::Image { source: ImageSource { r#type: "base64", media_type, data } }
}

fn encode_tool(offered: &EncodedTool) -> AnthropicTool<'_> {
    let EncodedTool { alias, description, schema } = offered;
    AnthropicTool { name: alias, description, input_schema: schema }
}

fn encode_tool_choice(choice: ToolChoice<'_>) -> AnthropicToolChoice<'_> {
    match choice {
        ToolChoice::Auto => AnthropicToolChoice::Auto,
        ToolChoice::Never => AnthropicToolChoice::None,
        ToolChoice::Any => AnthropicToolChoice::Any,
        ToolChoice::Tool(name) => AnthropicToolChoice::Tool { name: tool_alias(name) },
    }
}
