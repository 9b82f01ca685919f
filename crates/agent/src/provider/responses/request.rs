//! Requests of OpenAI's Responses API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use wharf_json::{JsonLimits, RawJson};

use crate::conversation::{ConversationTurn, ResultBlock, TurnBlock, TurnRole};
use crate::provider::definitions::tool_alias;
use crate::provider::result_images::{data_url, image_parts, result_text};
use crate::provider::{CompletionRequest, EncodedTool, ModelProvider, ToolChoice};

/// A request body. The API stores no state, so each request contains the whole conversation.
#[derive(Serialize)]
struct ResponsesRequest<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<InputItem<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ResponsesToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningParams>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    Known(KnownItem<'a>),
    Carried(&'a RawJson),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownItem<'a> {
    Message { role: TurnRole, content: Vec<ItemPart<'a>> },
    FunctionCall { call_id: &'a str, name: Cow<'a, str>, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: CallOutput<'a> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum CallOutput<'a> {
    Text(String),
    Parts(Vec<ItemPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ItemPart<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    OutputText { text: &'a str },
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a RawJson,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesToolChoice<'a> {
    Word(&'static str),
    Tool { r#type: &'static str, name: Cow<'a, str> },
}

#[derive(Serialize)]
struct ReasoningParams {
    effort: &'static str,
    summary: &'static str,
}

#[derive(Deserialize)]
struct EncryptedReasoning {
    encrypted_content: Option<String>,
}

/// Handling of the model's reasoning. The API stores no state, so reasoning can only be sent back if it was returned in
/// encrypted form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum ReasoningMode {
    /// Requests encrypted reasoning from OpenAI's own models, most of which reason by default, and from other models if
    /// an effort is set.
    GivenOut,
    /// Does not request it: models without reasoning reject the parameter.
    LeftAlone,
}

/// Serializes a request.
pub(in crate::provider) fn encode_request(
    provider: &ModelProvider,
    request: &CompletionRequest<'_>,
    thoughts: ReasoningMode,
) -> Result<Vec<u8>, serde_json::Error> {
    let (source, tools) = (provider.source_id(), &request.tools.offered);
    let mut input = Vec::new();
    for turn in &request.conversation.turns {
        match turn.role {
            TurnRole::User => encode_user_turn(turn, provider, &mut input),
            TurnRole::Assistant => {
                input.extend(turn.blocks.iter().filter_map(|block| encode_model_block(block, &source)))
            }
        }
    }
    let reasoning = request.effort.map(|effort| ReasoningParams { effort: effort.name(), summary: "auto" });
    let may_think = provider.is_openai() || reasoning.is_some();
    let include = (may_think && thoughts == ReasoningMode::GivenOut).then_some("reasoning.encrypted_content");
    serde_json::to_vec(&ResponsesRequest {
        model: &provider.model,
        stream: true,
        store: false,
        max_output_tokens: provider.max_tokens,
        instructions: request.conversation.system.as_deref().filter(|text| !text.is_empty()),
        input,
        tools: tools.iter().map(encode_tool).collect(),
        tool_choice: (!tools.is_empty()).then(|| encode_tool_choice(request.tool_choice)),
        reasoning,
        include: include.into_iter().collect(),
    })
}

/// Adds the items of a user turn: first the results, then images that a result cannot contain, then the rest.
fn encode_user_turn<'a>(turn: &'a ConversationTurn, provider: &ModelProvider, input: &mut Vec<InputItem<'a>>) {
    let mut parts = Vec::new();
    for block in &turn.blocks {
        if let TurnBlock::ToolResult { id, content, is_error } = block {
            let output = if provider.is_openai() && content.iter().any(is_image) {
                CallOutput::Parts(result_parts(content, *is_error))
            } else {
                parts.extend(image_parts(id, content, |text| ItemPart::InputText { text: text.into() }, image_part));
                CallOutput::Text(result_text(content, *is_error))
            };
            input.push(InputItem::Known(KnownItem::FunctionCallOutput { call_id: id, output }));
        }
    }
    parts.extend(turn.blocks.iter().filter_map(encode_part));
    if !parts.is_empty() {
        input.push(InputItem::Known(KnownItem::Message { role: TurnRole::User, content: parts }));
    }
}

fn is_image(block: &ResultBlock) -> bool {
    matches!(block, ResultBlock::Image { .. })
}

/// Returns a result with its images in place. A text states a failure, because the format has no error flag.
fn result_parts(content: &[ResultBlock], is_error: bool) -> Vec<ItemPart<'_>> {
    let failed = is_error.then_some(ItemPart::InputText { text: "The tool failed:".into() });
    let parts = content.iter().map(|block| match block {
        ResultBlock::Text(text) => ItemPart::InputText { text: Cow::Borrowed(text) },
        ResultBlock::Image { media_type, data } => image_part(data_url(media_type, data)),
    });
    failed.into_iter().chain(parts).collect()
}

fn encode_part(block: &TurnBlock) -> Option<ItemPart<'_>> {
    match block {
        TurnBlock::Text(text) | TurnBlock::Relayed(text) if !text.is_empty() => {
            Some(ItemPart::InputText { text: Cow::Borrowed(text) })
        }
        TurnBlock::Image { media_type, data } => Some(image_part(data_url(media_type, data))),
        _ => None,
    }
}

fn image_part<'a>(image_url: String) -> ItemPart<'a> {
    ItemPart::InputImage { image_url }
}

fn encode_model_block<'a>(block: &'a TurnBlock, source: &str) -> Option<InputItem<'a>> {
    match block {
        TurnBlock::Text(text) if !text.is_empty() => {
            let content = vec![ItemPart::OutputText { text }];
            Some(InputItem::Known(KnownItem::Message { role: TurnRole::Assistant, content }))
        }
        TurnBlock::ToolCall { id, name, arguments, .. } => Some(InputItem::Known(KnownItem::FunctionCall {
            call_id: id,
            name: tool_alias(name),
            arguments: arguments.as_str(),
        })),
        TurnBlock::Thinking { provider, raw } if provider == source && has_encrypted_content(raw) => {
            Some(InputItem::Carried(raw))
        }
        TurnBlock::Unknown { provider, raw } if provider == source => Some(InputItem::Carried(raw)),
        _ => None,
    }
}

/// Reports whether reasoning can be sent back. Without its encrypted content the API would look it up in its storage,
/// where it does not exist.
fn has_encrypted_content(raw: &RawJson) -> bool {
    let thought = raw.decode::<EncryptedReasoning>(&JsonLimits::default());
    thought.is_ok_and(|thought| thought.encrypted_content.is_some())
}

fn encode_tool(offered: &EncodedTool) -> ResponsesTool<'_> {
    let EncodedTool { alias, description, schema } = offered;
    ResponsesTool { r#type: "function", name: alias, description, parameters: schema, strict: false }
}

fn encode_tool_choice(choice: ToolChoice<'_>) -> ResponsesToolChoice<'_> {
    match choice {
        ToolChoice::Auto => ResponsesToolChoice::Word("auto"),
        ToolChoice::Never => ResponsesToolChoice::Word("none"),
        ToolChoice::Any => ResponsesToolChoice::Word("required"),
        ToolChoice::Tool(name) => ResponsesToolChoice::Tool { r#type: "function", name: tool_alias(name) },
    }
}
