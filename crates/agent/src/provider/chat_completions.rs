//! Decoder for OpenAI's Chat Completions API, as implemented by OpenAI and many local servers.

mod request;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use wharf_json::RawJson;
use wharf_spec::EscapedText;

use super::api_error::UnredactedError;
use super::call_arguments;
use super::event::{ModelEvent, ResponseDecoder, ResponseFailure, StopReason, TokenUsage, decode_json};
use crate::conversation::TurnBlock;

pub(super) use request::encode_request;

/// Decodes the events of one response. The format separates reasoning, text and calls, but does not mark the end of a
/// block. All blocks are emitted at the end of the response, in this order.
pub(super) struct ChatDecoder {
    source: String,
    /// Id of the response, used for calls without an id.
    answer: String,
    thought: Option<ReasoningDraft>,
    text: String,
    calls: BTreeMap<usize, CallDraft>,
    counted: Option<TokenUsage>,
    stop: Option<StopReason>,
    is_over: bool,
}

/// Accumulated reasoning, and the member that carried it.
struct ReasoningDraft {
    member: &'static str,
    text: String,
}

/// An incomplete call.
#[derive(Default)]
struct CallDraft {
    id: String,
    name: String,
    written: String,
}

#[derive(Deserialize)]
struct ChatChunk {
    id: Option<String>,
    #[serde(default)]
    choices: Vec<ChunkChoice>,
    usage: Option<ChatUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    #[serde(default)]
    index: usize,
    #[serde(default)]
    delta: Option<ChoiceDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceDelta {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl ChatDecoder {
    /// Creates a decoder for one response from this source.
    pub fn new(source: String) -> Self {
        Self {
            source,
            answer: String::new(),
            thought: None,
            text: String::new(),
            calls: BTreeMap::new(),
            counted: None,
            stop: None,
            is_over: false,
        }
    }

    fn on_chunk(&mut self, chunk: ChatChunk) -> Vec<ModelEvent> {
        if let Some(id) = chunk.id.filter(|_| self.answer.is_empty()) {
            self.answer = id;
        }
        self.counted = chunk.usage.as_ref().map(ChatUsage::total).or(self.counted);
        let mut events = Vec::new();
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                self.on_delta(delta, &mut events);
            }
            if let Some(reason) = choice.finish_reason {
                // A refusal precedes the finish reason, which is then the usual one.
                self.stop.get_or_insert(stop_reason(&reason));
            }
        }
        events
    }

    fn on_delta(&mut self, delta: ChoiceDelta, events: &mut Vec<ModelEvent>) {
        for (member, text) in [("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning)] {
            events.extend(text.and_then(|text| self.add_reasoning(member, text)));
        }
        if delta.refusal.as_ref().is_some_and(|text| !text.is_empty()) {
            self.stop = Some(StopReason::Refused);
        }
        for text in [delta.content, delta.refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
            self.text.push_str(&text);
            events.push(ModelEvent::TextDelta(text));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.on_call_delta(call, events);
        }
    }

    /// Adds reasoning text. Some servers send it in two members at once; only the first one seen is used.
    fn add_reasoning(&mut self, member: &'static str, text: String) -> Option<ModelEvent> {
        if text.is_empty() {
            return None;
        }
        let thought = self.thought.get_or_insert_with(|| ReasoningDraft { member, text: String::new() });
        if thought.member != member {
            return None;
        }
        thought.text.push_str(&text);
        Some(ModelEvent::ThinkingDelta(text))
    }

    fn on_call_delta(&mut self, delta: CallDelta, events: &mut Vec<ModelEvent>) {
        let index = delta.index.unwrap_or_else(|| self.call_index(delta.id.as_deref()));
        let fallback = format!("{}_{index}", self.answer);
        let call = self.calls.entry(index).or_default();
        if let Some(id) = delta.id.filter(|_| call.id.is_empty()) {
            call.id = id;
        }
        let FunctionDelta { name, arguments } = delta.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        // Some servers repeat the name in every delta.
        if let Some(name) = name.filter(|name| !name.is_empty() && call.name.is_empty()) {
            call.name = name;
            if call.id.is_empty() {
                call.id = fallback;
            }
            events.push(ModelEvent::ToolCallBegun { index, id: call.id.clone(), name: call.name.clone() });
        }
        if let Some(json) = arguments.filter(|json| !json.is_empty()) {
            call.written.push_str(&json);
            events.push(ModelEvent::ToolCallDelta { index, json });
        }
    }

    /// Returns the index of a call delta without one: a new index if it has a new id, otherwise the last index.
    fn call_index(&self, id: Option<&str>) -> usize {
        match (self.calls.last_key_value(), id) {
            (None, _) => 0,
            (Some((index, call)), Some(id)) if call.id != id => index.saturating_add(1),
            (Some((index, _)), _) => *index,
        }
    }

    /// Emits the blocks, the usage and the final event. Only the first call has an effect.
    fn finish_response(&mut self) -> Vec<ModelEvent> {
        if std::mem::replace(&mut self.is_over, true) {
            return Vec::new();
        }
        let calls = std::mem::take(&mut self.calls);
        let stop = match self.stop.take() {
            // Ollama also reports `stop` for responses with calls.
            None | Some(StopReason::EndTurn) if !calls.is_empty() => StopReason::ToolCalls,
            stop => stop.unwrap_or(StopReason::EndTurn),
        };
        let thought = self.thought.take().and_then(|thought| self.reasoning_block(&thought));
        let text = Some(std::mem::take(&mut self.text)).filter(|text| !text.is_empty()).map(TurnBlock::Text);
        let calls =
            calls.into_values().map(|CallDraft { id, name, written }| call_arguments::call_block(id, name, &written));
        let blocks = thought.into_iter().chain(text).chain(calls).map(ModelEvent::BlockDone);
        let usage = self.counted.map(TokenUsage::to_event);
        blocks.chain(usage).chain([ModelEvent::Done { stop }]).collect()
    }

    fn reasoning_block(&self, thought: &ReasoningDraft) -> Option<TurnBlock> {
        let raw = RawJson::from_value(&json!({ thought.member: thought.text })).ok()?;
        Some(TurnBlock::Thinking { provider: self.source.clone(), raw })
    }
}

impl ResponseDecoder for ChatDecoder {
    fn decode_event(&mut self, data: &Bytes) -> Result<Vec<ModelEvent>, ResponseFailure> {
        if data.trim_ascii() == b"[DONE]" {
            return Ok(self.finish_response());
        }
        let chunk: ChatChunk = decode_json(data)?;
        match &chunk.error {
            Some(error) if !error.is_null() => Err(ResponseFailure::Failed(UnredactedError::from_json(error))),
            _ => Ok(self.on_chunk(chunk)),
        }
    }

    /// Some servers omit the final `[DONE]`. A response with a finish reason is complete.
    fn finish(&mut self) -> Vec<ModelEvent> {
        if self.stop.is_some() { self.finish_response() } else { Vec::new() }
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolCalls,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refused,
        other => StopReason::Other(EscapedText::single_line(other, 80).to_string()),
    }
}

impl ChatUsage {
    fn total(&self) -> TokenUsage {
        let cached = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        TokenUsage {
            input: self.prompt_tokens.unwrap_or(0),
            output: self.completion_tokens.unwrap_or(0),
            cached: cached.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests;
