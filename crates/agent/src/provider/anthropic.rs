//! Decoder for Anthropic's Messages API.

mod request;
mod thinking;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use wharf_json::{JsonLimits, RawJson, object_members};
use wharf_spec::EscapedText;

use super::api_error::UnredactedError;
use super::call_arguments;
use super::event::{ModelEvent, ResponseDecoder, ResponseFailure, StopReason, TokenUsage, copy_raw, decode_json};
use crate::conversation::TurnBlock;

pub(super) use request::encode_request;

/// Decodes the events of one response.
pub(super) struct AnthropicDecoder {
    source: String,
    drafts: BTreeMap<usize, BlockDraft>,
    usage: AnthropicUsage,
    stop: Option<String>,
}

/// An incomplete block.
enum BlockDraft {
    Text(String),
    Thinking { text: String, signature: Option<String> },
    Call { id: String, name: String, given: String, written: String },
    Carried { raw: RawJson, is_thinking: bool, written: String },
}

#[derive(Deserialize)]
struct AnthropicEventType {
    r#type: String,
}

#[derive(Deserialize)]
struct MessageStart {
    message: StartedMessage,
}

#[derive(Deserialize)]
struct StartedMessage {
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    index: usize,
    #[serde(borrow)]
    content_block: &'a RawValue,
}

/// Members of a starting block. llama.cpp omits `input`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StartingBlock<'a> {
    r#type: String,
    text: String,
    thinking: String,
    signature: Option<String>,
    id: String,
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BlockDelta {
    index: usize,
    delta: Value,
}

#[derive(Deserialize)]
struct BlockStop {
    index: usize,
}

#[derive(Deserialize)]
struct MessageDelta {
    delta: StopDelta,
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct StopDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct ErrorEvent {
    error: Value,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

/// A thinking block as sent back to the API.
#[derive(Serialize)]
struct ThinkingBlock<'a> {
    r#type: &'static str,
    thinking: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

impl AnthropicDecoder {
    /// Creates a decoder for one response from this source.
    pub fn new(source: String) -> Self {
        Self { source, drafts: BTreeMap::new(), usage: AnthropicUsage::default(), stop: None }
    }

    fn start_block(&mut self, data: &[u8]) -> Result<Vec<ModelEvent>, ResponseFailure> {
        let BlockStart { index, content_block } = decode_json(data)?;
        let (draft, event) = new_draft(index, content_block)?;
        self.drafts.insert(index, draft);
        Ok(event.into_iter().collect())
    }

    fn extend_block(&mut self, BlockDelta { index, delta }: BlockDelta) -> Option<ModelEvent> {
        let text = |member: &str| delta.get(member).and_then(Value::as_str);
        match (self.drafts.get_mut(&index)?, text("type")?) {
            (BlockDraft::Text(all), "text_delta") => {
                all.push_str(text("text")?);
                Some(ModelEvent::TextDelta(text("text")?.to_owned()))
            }
            (BlockDraft::Thinking { text: all, .. }, "thinking_delta") => {
                all.push_str(text("thinking")?);
                Some(ModelEvent::ThinkingDelta(text("thinking")?.to_owned()))
            }
            (BlockDraft::Thinking { signature, .. }, "signature_delta") => {
                signature.get_or_insert_default().push_str(text("signature")?);
                None
            }
            (BlockDraft::Call { written, .. }, "input_json_delta") => {
                written.push_str(text("partial_json")?);
                Some(ModelEvent::ToolCallDelta { index, json: text("partial_json")?.to_owned() })
            }
            (BlockDraft::Carried { written, .. }, "input_json_delta") => {
                written.push_str(text("partial_json")?);
                None
            }
            _ => None,
        }
    }

    fn finish_block(&self, draft: BlockDraft) -> Option<ModelEvent> {
        let provider = self.source.clone();
        let block = match draft {
            BlockDraft::Text(text) if text.is_empty() => return None,
            BlockDraft::Text(text) => TurnBlock::Text(text),
            BlockDraft::Thinking { text, signature } => {
                let thought = ThinkingBlock { r#type: "thinking", thinking: &text, signature: signature.as_deref() };
                TurnBlock::Thinking { provider, raw: RawJson::from_value(&thought).ok()? }
            }
            BlockDraft::Call { id, name, given, written } => {
                call_arguments::call_block(id, name, if written.is_empty() { &given } else { &written })
            }
            BlockDraft::Carried { raw, is_thinking: true, .. } => TurnBlock::Thinking { provider, raw },
            BlockDraft::Carried { raw, written, .. } => {
                TurnBlock::Unknown { provider, raw: with_input(&raw, &written).unwrap_or(raw) }
            }
        };
        Some(ModelEvent::BlockDone(block))
    }

    /// Returns the final events. Blocks without a stop event are complete at the end of the response.
    fn finish_response(&mut self) -> Vec<ModelEvent> {
        let drafts = std::mem::take(&mut self.drafts);
        let mut events: Vec<ModelEvent> = drafts.into_values().filter_map(|draft| self.finish_block(draft)).collect();
        events.push(self.usage.total().to_event());
        events.push(ModelEvent::Done { stop: stop_reason(self.stop.as_deref()) });
        events
    }
}

impl ResponseDecoder for AnthropicDecoder {
    fn decode_event(&mut self, data: &Bytes) -> Result<Vec<ModelEvent>, ResponseFailure> {
        let AnthropicEventType { r#type: kind } = decode_json(data)?;
        match kind.as_str() {
            "message_start" => self.usage.update(decode_json::<MessageStart>(data)?.message.usage),
            "content_block_start" => return self.start_block(data),
            "content_block_delta" => return Ok(self.extend_block(decode_json(data)?).into_iter().collect()),
            "content_block_stop" => {
                let draft = self.drafts.remove(&decode_json::<BlockStop>(data)?.index);
                return Ok(draft.and_then(|draft| self.finish_block(draft)).into_iter().collect());
            }
            "message_delta" => {
                let MessageDelta { delta, usage } = decode_json(data)?;
                self.usage.update(usage);
                self.stop = delta.stop_reason.or(self.stop.take());
            }
            "message_stop" => return Ok(self.finish_response()),
            "error" => {
                return Err(ResponseFailure::Failed(UnredactedError::from_json(
                    &decode_json::<ErrorEvent>(data)?.error,
                )));
            }
            // Ignores pings and unknown events.
            _ => {}
        }
        Ok(Vec::new())
    }
}

/// Creates the draft of a starting block, and the event for its initial content.
fn new_draft(index: usize, block: &RawValue) -> Result<(BlockDraft, Option<ModelEvent>), ResponseFailure> {
    let AnthropicEventType { r#type: kind } = decode_json(block.get().as_bytes())?;
    if !matches!(kind.as_str(), "text" | "thinking" | "tool_use") {
        let is_thinking = kind == "redacted_thinking";
        return Ok((BlockDraft::Carried { raw: copy_raw(block)?, is_thinking, written: String::new() }, None));
    }
    let start: StartingBlock<'_> = decode_json(block.get().as_bytes())?;
    Ok(match start.r#type.as_str() {
        "text" => {
            let delta = Some(start.text.clone()).filter(|text| !text.is_empty());
            (BlockDraft::Text(start.text), delta.map(ModelEvent::TextDelta))
        }
        "thinking" => {
            let signature = start.signature.filter(|signature| !signature.is_empty());
            (BlockDraft::Thinking { text: start.thinking, signature }, None)
        }
        _ => {
            let event = ModelEvent::ToolCallBegun { index, id: start.id.clone(), name: start.name.clone() };
            let given = start.input.map(|input| input.get().to_owned()).unwrap_or_default();
            (BlockDraft::Call { id: start.id, name: start.name, given, written: String::new() }, Some(event))
        }
    })
}

/// Adds the streamed input to a block of unknown type.
fn with_input(raw: &RawJson, written: &str) -> Option<RawJson> {
    let input: &RawValue = serde_json::from_str(written).ok()?;
    let list = object_members(raw, &JsonLimits::default()).ok()?;
    let kept = list.iter().filter(|(key, _)| key != "input").map(|(key, value)| (key.as_ref(), value.as_str()));
    let all = kept.chain([("input", input.get())]);
    let all: Vec<String> = all.map(|(key, value)| format!("{}:{value}", Value::from(key))).collect();
    RawJson::parse(format!("{{{}}}", all.join(","))).ok()
}

fn stop_reason(reason: Option<&str>) -> StopReason {
    match reason {
        None | Some("end_turn" | "stop_sequence") => StopReason::EndTurn,
        Some("tool_use") => StopReason::ToolCalls,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
        Some("refusal") => StopReason::Refused,
        Some("pause_turn") => StopReason::Paused,
        Some(other) => StopReason::Other(EscapedText::single_line(other, 80).to_string()),
    }
}

impl AnthropicUsage {
    /// Merges later usage values, which are cumulative.
    fn update(&mut self, later: Option<Self>) {
        let later = later.unwrap_or_default();
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
    }

    /// Sums the three input counts: the API does not include the two cache counts in `input_tokens`.
    fn total(self) -> TokenUsage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let parts = [self.input_tokens.unwrap_or(0), cached, self.cache_creation_input_tokens.unwrap_or(0)];
        let input = parts.into_iter().fold(0, u64::saturating_add);
        TokenUsage { input, output: self.output_tokens.unwrap_or(0), cached }
    }
}

#[cfg(test)]
mod tests;
