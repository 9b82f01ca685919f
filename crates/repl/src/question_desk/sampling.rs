//! Sampling: the user reviews the prompt, and then the response.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use wharf::{AskReply, ConsentAnswer, RawJson, SamplingAsk};
use wharf_agent::{
    CompletionRequest, Conversation, ConversationTurn, Model, ModelError, ModelEvent, StopReason, ToolChoice,
    TurnBlock, TurnRole,
};
use wharf_client::SamplingError;
use wharf_spec::UntrustedText;
use wharf_wire::{JsonLimits, SamplingRequest};

use super::QuestionSender;
use wharf_terminal::console::Console;
use wharf_terminal::failure::error_chain;
use wharf_terminal::question::{SamplingDialog, SamplingSummary, ScreenSize};

/// Response of the model.
struct SampledResponse {
    text: String,
    stop: StopReason,
}

/// Handles a sampling request and replies. Ends immediately if the server withdraws the request.
pub async fn sample(
    sender: &QuestionSender,
    console: &Console,
    model: &Model,
    ask: &SamplingAsk,
    mut reply: AskReply<Result<RawJson, SamplingError>>,
) {
    let outcome = tokio::select! {
        outcome = run_request(sender, console, model, ask) => outcome,
        () = reply.wait_withdrawn() => return,
    };
    reply.answer(outcome);
}

async fn run_request(
    sender: &QuestionSender,
    console: &Console,
    model: &Model,
    ask: &SamplingAsk,
) -> Result<RawJson, SamplingError> {
    let (server, request) = (ask.server.as_str(), &ask.request);
    let conversation = parse_conversation(request).map_err(SamplingError::Failed)?;
    let text = format_conversation(&conversation);
    let wanted = SamplingSummary {
        server,
        model: &model.provider().model,
        messages: conversation.turns.len(),
        max_tokens: request.max_tokens,
        text: &text,
    };
    require_consent(sender.ask_user(server, SamplingDialog::for_request(&wanted, ScreenSize::from_stderr())).await)?;
    let limit = u32::try_from(request.max_tokens).unwrap_or(u32::MAX).max(1);
    let answer = generate(&model.clone().with_max_tokens(limit), &conversation).await.map_err(|error| {
        // The details go only to the user: they may reveal the endpoint or billing.
        let (name, why) = (UntrustedText::new(server), UntrustedText::new(error_chain(&error)));
        console.warn(format_args!("the model request for {name} failed: {}", why.truncate(500)));
        SamplingError::Failed("the model request failed".to_owned())
    })?;
    require_consent(
        sender.ask_user(server, SamplingDialog::for_response(server, &answer.text, ScreenSize::from_stderr())).await,
    )?;
    sampling_result(&model.provider().model, &answer)
        .ok_or_else(|| SamplingError::Failed("the response could not be serialized".to_owned()))
}

fn require_consent(consent: Option<ConsentAnswer>) -> Result<(), SamplingError> {
    match consent {
        Some(ConsentAnswer::Given) => Ok(()),
        Some(ConsentAnswer::Refused) | None => Err(SamplingError::Declined),
    }
}

async fn generate(model: &Model, conversation: &Conversation) -> Result<SampledResponse, ModelError> {
    let tools = Arc::default();
    let request = CompletionRequest { conversation, tools: &tools, tool_choice: ToolChoice::Auto, effort: None };
    let mut stream = model.stream(request).await?;
    let mut answer = SampledResponse { text: String::new(), stop: StopReason::EndTurn };
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::BlockDone(TurnBlock::Text(text)) => answer.text.push_str(&text),
            ModelEvent::Done { stop } => answer.stop = stop,
            _ => {}
        }
    }
    Ok(answer)
}

/// Builds a `CreateMessageResult` (2025-06-18, Sampling).
fn sampling_result(model: &str, answer: &SampledResponse) -> Option<RawJson> {
    let stop = match &answer.stop {
        StopReason::EndTurn => "endTurn",
        StopReason::MaxTokens => "maxTokens",
        StopReason::Refused => "refusal",
        _ => "other",
    };
    let content = json!({ "type": "text", "text": answer.text });
    RawJson::from_value(&json!({ "role": "assistant", "content": content, "model": model, "stopReason": stop })).ok()
}

#[derive(Deserialize)]
struct Message {
    role: SamplingRole,
    content: MessageContent,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SamplingRole {
    User,
    Assistant,
}

/// Since 2025-11-25 a message may have several blocks.
#[derive(Deserialize)]
#[serde(untagged)]
enum MessageContent {
    Several(Vec<Value>),
    One(Value),
}

/// Converts the request into a conversation.
///
/// # Errors
///
/// Returns the reason if the request cannot be handled.
fn parse_conversation(request: &SamplingRequest) -> Result<Conversation, String> {
    let messages: Vec<Message> = request.messages.decode(&JsonLimits::default()).map_err(|error| error.to_string())?;
    if messages.is_empty() {
        return Err("the request has no messages".to_owned());
    }
    let turns: Result<Vec<ConversationTurn>, String> = messages.into_iter().map(parse_turn).collect();
    Ok(Conversation { system: request.system_prompt.clone(), turns: turns? })
}

fn parse_turn(message: Message) -> Result<ConversationTurn, String> {
    let role = match message.role {
        SamplingRole::User => TurnRole::User,
        SamplingRole::Assistant => TurnRole::Assistant,
    };
    let blocks = match message.content {
        MessageContent::One(block) => vec![block],
        MessageContent::Several(blocks) => blocks,
    };
    Ok(ConversationTurn { role, blocks: blocks.iter().map(parse_block).collect::<Result<_, _>>()? })
}

fn parse_block(block: &Value) -> Result<TurnBlock, String> {
    let text = |key: &str| block[key].as_str().map(str::to_owned);
    let read = match block["type"].as_str() {
        Some("text") => text("text").map(TurnBlock::Text),
        Some("image") => {
            text("mimeType").zip(text("data")).map(|(media_type, data)| TurnBlock::Image { media_type, data })
        }
        _ => return Err("only text and image content is supported".to_owned()),
    };
    read.ok_or_else(|| "a content block is incomplete".to_owned())
}

/// Formats the full prompt for review. Untrusted.
fn format_conversation(conversation: &Conversation) -> String {
    let system = conversation.system.iter().map(|text| format!("system: {text}"));
    let turns = conversation.turns.iter().map(|turn| {
        let role = match turn.role {
            TurnRole::User => "user",
            TurnRole::Assistant => "assistant",
        };
        let blocks: Vec<String> = turn.blocks.iter().map(format_block).collect();
        format!("{role}: {}", blocks.join("\n"))
    });
    system.chain(turns).collect::<Vec<_>>().join("\n\n")
}

fn format_block(block: &TurnBlock) -> String {
    match block {
        TurnBlock::Text(text) => text.clone(),
        TurnBlock::Image { media_type, data } => format!("[image: {media_type}, {} characters of Base64]", data.len()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
