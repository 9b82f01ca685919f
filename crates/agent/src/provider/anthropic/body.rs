//! Requests of Anthropic's Messages API.

use std::borrow::Cow;

use serde::Serialize;
use wharf_json::RawJson;

use super::thinking::{OutputConfig, Thinking, output_config, thinking};
use crate::conversation::{Block, ResultBlock, Role, Turn};
use crate::provider::definitions::alias;
use crate::provider::{EncodedTool, Provider, Request, ToolChoice};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Vec<Content<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Known(Known<'a>),
    Carried(&'a RawJson),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Known<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
    ToolUse { id: &'a str, name: Cow<'a, str>, input: &'a RawJson },
    ToolResult { tool_use_id: &'a str, content: Vec<Known<'a>>, is_error: bool },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawJson,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Choice<'a> {
    Auto,
    None,
    Any,
    Tool { name: Cow<'a, str> },
}

/// Serializes a request.
pub(in crate::provider) fn body(provider: &Provider, request: &Request<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let (source, tools) = (provider.source(), &request.tools.offered);
    let turns = &request.conversation.turns;
    let messages = turns.iter().map(|turn| message(turn, &source)).filter(|message| !message.content.is_empty());
    serde_json::to_vec(&Body {
        model: &provider.model,
        max_tokens: provider.max_tokens,
        stream: true,
        system: request.conversation.system.as_deref().filter(|text| !text.is_empty()),
        messages: messages.collect(),
        tools: tools.iter().map(tool).collect(),
        tool_choice: (!tools.is_empty()).then(|| choice(request.tool_choice)),
        thinking: thinking(provider, request),
        output_config: output_config(provider, request),
    })
}

/// Converts a turn to a message. Results come first, because the API requires them directly after their calls.
fn message<'a>(turn: &'a Turn, source: &str) -> Message<'a> {
    let mut blocks: Vec<&Block> = turn.blocks.iter().collect();
    blocks.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
    Message { role: turn.role, content: blocks.into_iter().filter_map(|block| content(block, source)).collect() }
}

fn content<'a>(block: &'a Block, source: &str) -> Option<Content<'a>> {
    Some(Content::Known(match block {
        // The API rejects empty text.
        Block::Text(text) | Block::Relayed(text) if text.trim().is_empty() => return None,
        Block::Text(text) | Block::Relayed(text) => Known::Text { text },
        Block::Image { media_type, data } => image(media_type, data),
        Block::ToolCall { id, name, arguments, .. } => Known::ToolUse { id, name: alias(name), input: arguments },
        Block::ToolResult { id, content, is_error } => Known::ToolResult {
            tool_use_id: id,
            content: content.iter().filter_map(result).collect(),
            is_error: *is_error,
        },
        Block::Thinking { provider, raw } | Block::Unknown { provider, raw } => {
            return (provider == source).then_some(Content::Carried(raw));
        }
    }))
}

fn result(block: &ResultBlock) -> Option<Known<'_>> {
    match block {
        ResultBlock::Text(text) if text.trim().is_empty() => None,
        ResultBlock::Text(text) => Some(Known::Text { text }),
        ResultBlock::Image { media_type, data } => Some(image(media_type, data)),
    }
}

fn image<'a>(media_type: &'a str, data: &'a str) -> Known<'a> {
    Known::Image { source: Source { r#type: "base64", media_type, data } }
}

fn tool(offered: &EncodedTool) -> Tool<'_> {
    let EncodedTool { alias, description, schema } = offered;
    Tool { name: alias, description, input_schema: schema }
}

fn choice(choice: ToolChoice<'_>) -> Choice<'_> {
    match choice {
        ToolChoice::Auto => Choice::Auto,
        ToolChoice::Never => Choice::None,
        ToolChoice::Any => Choice::Any,
        ToolChoice::Tool(name) => Choice::Tool { name: alias(name) },
    }
}
