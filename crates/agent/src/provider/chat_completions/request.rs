//! Requests of OpenAI's Chat Completions API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf_json::{JsonLimits, RawJson};

use crate::conversation::{ConversationTurn, TurnBlock, TurnRole};
use crate::provider::definitions::tool_alias;
use crate::provider::result_images::{data_url, image_parts, result_text};
use crate::provider::{CompletionRequest, EncodedTool, ModelProvider, ReasoningEffort, ToolChoice};

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChatToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum ChatMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<SentCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

/// Message content. A single text is a plain string, because some servers do not accept a list.
#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(&'a str),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct SentCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: SentFunction<'a>,
}

/// The arguments are JSON in a string.
#[derive(Serialize)]
struct SentFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: FunctionDefinition<'a>,
}

#[derive(Serialize)]
struct FunctionDefinition<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawJson,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatToolChoice<'a> {
    Word(&'static str),
    Tool { r#type: &'static str, function: FunctionName<'a> },
}

#[derive(Serialize)]
struct FunctionName<'a> {
    name: Cow<'a, str>,
}

/// Saved reasoning, in the member that carried it.
#[derive(Default, Deserialize)]
struct SavedReasoning<'a> {
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
}

/// Serializes a request.
pub(in crate::provider) fn encode_request(
    provider: &ModelProvider,
    request: &CompletionRequest<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let source = provider.source_id();
    // Many servers ignore `none`, so no tools are sent then.
    let tools = if matches!(request.tool_choice, ToolChoice::Never) { &[][..] } else { &request.tools.offered[..] };
    let system = request.conversation.system.as_deref().filter(|text| !text.is_empty());
    let mut messages: Vec<ChatMessage<'_>> =
        system.map(|content| ChatMessage::System { content }).into_iter().collect();
    for turn in &request.conversation.turns {
        match turn.role {
            TurnRole::User => encode_user_turn(turn, &mut messages),
            TurnRole::Assistant => messages.extend(encode_model_turn(turn, &source)),
        }
    }
    // Newer OpenAI models reject the old name, and other servers do not know the new one.
    let limit = Some(provider.max_tokens);
    serde_json::to_vec(&ChatRequest {
        model: &provider.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: limit.filter(|_| !provider.is_openai()),
        max_completion_tokens: limit.filter(|_| provider.is_openai()),
        messages,
        tools: tools.iter().map(encode_tool).collect(),
        tool_choice: (!tools.is_empty()).then(|| encode_tool_choice(request.tool_choice)),
        reasoning_effort: request.effort.map(ReasoningEffort::name),
    })
}

/// Adds the messages of a user turn: first the results, directly after their calls, then their images, which a result
/// cannot contain, then the rest.
fn encode_user_turn<'a>(turn: &'a ConversationTurn, messages: &mut Vec<ChatMessage<'a>>) {
    let mut parts = Vec::new();
    for block in &turn.blocks {
        if let TurnBlock::ToolResult { id, content, is_error } = block {
            messages.push(ChatMessage::Tool { tool_call_id: id, content: result_text(content, *is_error) });
            parts.extend(image_parts(id, content, |text| ContentPart::Text { text: text.into() }, image_part));
        }
    }
    parts.extend(turn.blocks.iter().filter_map(encode_part));
    match parts.as_slice() {
        [] => {}
        &[ContentPart::Text { text: Cow::Borrowed(text) }] => {
            messages.push(ChatMessage::User { content: UserContent::Text(text) })
        }
        _ => messages.push(ChatMessage::User { content: UserContent::Parts(parts) }),
    }
}

fn encode_part(block: &TurnBlock) -> Option<ContentPart<'_>> {
    match block {
        TurnBlock::Text(text) | TurnBlock::Relayed(text) if !text.is_empty() => {
            Some(ContentPart::Text { text: Cow::Borrowed(text) })
        }
        TurnBlock::Image { media_type, data } => Some(image_part(data_url(media_type, data))),
        _ => None,
    }
}

fn image_part<'a>(url: String) -> ContentPart<'a> {
    ContentPart::ImageUrl { image_url: ImageUrl { url } }
}

/// Returns the message of a model turn. Reasoning is sent back only together with calls: some servers require it there,
/// and some reject it elsewhere (DeepSeek does both).
fn encode_model_turn<'a>(turn: &'a ConversationTurn, source: &str) -> Option<ChatMessage<'a>> {
    let mut texts: Vec<&str> = Vec::new();
    let mut tool_calls = Vec::new();
    let mut thought = SavedReasoning::default();
    for block in &turn.blocks {
        match block {
            TurnBlock::Text(text) => texts.push(text),
            TurnBlock::ToolCall { id, name, arguments, .. } => {
                let function = SentFunction { name: tool_alias(name), arguments: arguments.as_str() };
                tool_calls.push(SentCall { id, r#type: "function", function });
            }
            TurnBlock::Thinking { provider, raw } if provider == source => {
                thought = raw.decode(&JsonLimits::default()).unwrap_or_default();
            }
            _ => {}
        }
    }
    if tool_calls.is_empty() {
        thought = SavedReasoning::default();
    }
    let content = Some(texts.concat()).filter(|text| !text.is_empty());
    let SavedReasoning { reasoning_content, reasoning } = thought;
    (content.is_some() || !tool_calls.is_empty()).then_some(ChatMessage::Assistant {
        content,
        reasoning_content,
        reasoning,
        tool_calls,
    })
}

fn encode_tool(offered: &EncodedTool) -> ChatTool<'_> {
    let EncodedTool { alias, description, schema } = offered;
    ChatTool { r#type: "function", function: FunctionDefinition { name: alias, description, parameters: schema } }
}

fn encode_tool_choice(choice: ToolChoice<'_>) -> ChatToolChoice<'_> {
    match choice {
        ToolChoice::Auto => ChatToolChoice::Word("auto"),
        ToolChoice::Never => ChatToolChoice::Word("none"),
        ToolChoice::Any => ChatToolChoice::Word("required"),
        ToolChoice::Tool(name) => {
            ChatToolChoice::Tool { r#type: "function", function: FunctionName { name: tool_alias(name) } }
        }
    }
}
