//! Decoder for OpenAI's Responses API.

mod request;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wharf_spec::EscapedText;

use super::api_error::UnredactedError;
use super::call_arguments;
use super::event::{ModelEvent, ResponseDecoder, ResponseFailure, StopReason, TokenUsage, copy_raw, decode_json};
use crate::conversation::TurnBlock;

pub(super) use request::{ReasoningMode, encode_request};

/// Decodes the events of one response.
pub(super) struct ResponsesDecoder {
    source: String,
    begun: Vec<StartedCall>,
    blocks: usize,
    has_calls: bool,
    has_refused: bool,
}

/// A started call; its position in the list is its index. Later events refer to it by either field: llama.cpp sends no
/// output index.
struct StartedCall {
    output: Option<usize>,
    item: Option<String>,
}

#[derive(Deserialize)]
struct ResponsesEventType {
    r#type: String,
}

#[derive(Deserialize)]
struct ItemDelta {
    delta: String,
    output_index: Option<usize>,
    item_id: Option<String>,
}

#[derive(Deserialize)]
struct ItemEvent<'a> {
    output_index: Option<usize>,
    #[serde(borrow)]
    item: &'a RawValue,
}

/// Members of a message or call item.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputItem {
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    content: Value,
}

#[derive(Deserialize)]
struct FinalEvent<'a> {
    #[serde(borrow)]
    response: FinalResponse<'a>,
}

#[derive(Deserialize)]
struct FinalResponse<'a> {
    usage: Option<ResponsesUsage>,
    error: Option<Value>,
    incomplete_details: Option<IncompleteDetails>,
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ResponsesUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

impl ResponsesDecoder {
    /// Creates a decoder for one response from this source.
    pub fn new(source: String) -> Self {
        Self { source, begun: Vec::new(), blocks: 0, has_calls: false, has_refused: false }
    }

    fn start_item(&mut self, data: &[u8]) -> Result<Vec<ModelEvent>, ResponseFailure> {
        let ItemEvent { output_index, item } = decode_json(data)?;
        let ResponsesEventType { r#type: kind } = decode_json(item.get().as_bytes())?;
        if kind != "function_call" {
            return Ok(Vec::new());
        }
        let item: OutputItem = decode_json(item.get().as_bytes())?;
        let event = ModelEvent::ToolCallBegun {
            index: self.begun.len(),
            id: item.call_id.or_else(|| item.id.clone()).unwrap_or_default(),
            name: item.name.unwrap_or_default(),
        };
        self.begun.push(StartedCall { output: output_index, item: item.id });
        Ok(vec![event])
    }

    fn call_delta(&self, delta: ItemDelta) -> Option<ModelEvent> {
        let same = |begun: &StartedCall| match (begun.output, delta.output_index) {
            (Some(one), Some(other)) => one == other,
            _ => begun.item.is_some() && begun.item == delta.item_id,
        };
        let index = self.begun.iter().position(same)?;
        Some(ModelEvent::ToolCallDelta { index, json: delta.delta })
    }

    fn finish_item(&mut self, item: &RawValue) -> Result<Option<ModelEvent>, ResponseFailure> {
        let ResponsesEventType { r#type: kind } = decode_json(item.get().as_bytes())?;
        let block = match kind.as_str() {
            "message" => self.message_block(&decode_json::<OutputItem>(item.get().as_bytes())?.content),
            "function_call" => Some(self.call_block(decode_json(item.get().as_bytes())?)),
            _ => Some(self.raw_block(&kind, item)?),
        };
        self.blocks += 1;
        Ok(block.map(ModelEvent::BlockDone))
    }

    /// Returns the text of a message, including refusals.
    fn message_block(&mut self, content: &Value) -> Option<TurnBlock> {
        let mut text = String::new();
        for part in content.as_array().into_iter().flatten() {
            let member = |name| part.get(name).and_then(Value::as_str);
            self.has_refused |= member("refusal").is_some();
            text.push_str(member("text").or(member("refusal")).unwrap_or_default());
        }
        Some(text).filter(|text| !text.is_empty()).map(TurnBlock::Text)
    }

    fn call_block(&mut self, item: OutputItem) -> TurnBlock {
        self.has_calls = true;
        let id = item.call_id.or(item.id).unwrap_or_default();
        call_arguments::call_block(id, item.name.unwrap_or_default(), &item.arguments.unwrap_or_default())
    }

    fn raw_block(&self, kind: &str, item: &RawValue) -> Result<TurnBlock, ResponseFailure> {
        let (raw, provider) = (copy_raw(item)?, self.source.clone());
        Ok(match kind {
            "reasoning" => TurnBlock::Thinking { provider, raw },
            _ => TurnBlock::Unknown { provider, raw },
        })
    }

    fn finish_response(&mut self, data: &[u8]) -> Result<Vec<ModelEvent>, ResponseFailure> {
        let FinalEvent { response } = decode_json(data)?;
        let mut events = Vec::new();
        // If no item arrived as a separate event, the final event contains all of them.
        if self.blocks == 0 {
            for item in &response.output {
                events.extend(self.finish_item(item)?);
            }
        }
        events.extend(response.usage.as_ref().map(|usage| usage.total().to_event()));
        let reason = response.incomplete_details.and_then(|details| details.reason);
        events.push(ModelEvent::Done { stop: self.stop_reason(reason.as_deref()) });
        Ok(events)
    }

    fn stop_reason(&self, incomplete: Option<&str>) -> StopReason {
        match incomplete {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refused,
            Some(other) => StopReason::Other(EscapedText::single_line(other, 80).to_string()),
            None if self.has_calls => StopReason::ToolCalls,
            None if self.has_refused => StopReason::Refused,
            None => StopReason::EndTurn,
        }
    }
}

impl ResponseDecoder for ResponsesDecoder {
    fn decode_event(&mut self, data: &Bytes) -> Result<Vec<ModelEvent>, ResponseFailure> {
        // Some servers end the stream like Chat Completions.
        if data.trim_ascii() == b"[DONE]" {
            return Ok(Vec::new());
        }
        let ResponsesEventType { r#type: kind } = decode_json(data)?;
        let event = match kind.as_str() {
            "response.output_item.added" => return self.start_item(data),
            "response.output_text.delta" | "response.refusal.delta" => {
                Some(ModelEvent::TextDelta(decode_json::<ItemDelta>(data)?.delta))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                Some(ModelEvent::ThinkingDelta(decode_json::<ItemDelta>(data)?.delta))
            }
            "response.function_call_arguments.delta" => self.call_delta(decode_json(data)?),
            "response.output_item.done" => self.finish_item(decode_json::<ItemEvent<'_>>(data)?.item)?,
            "response.completed" | "response.incomplete" => return self.finish_response(data),
            "response.failed" => {
                let error = decode_json::<FinalEvent<'_>>(data)?.response.error;
                return Err(ResponseFailure::Failed(UnredactedError::from_json(&error.unwrap_or_default())));
            }
            "error" => return Err(ResponseFailure::Failed(parse_error_event(&decode_json(data)?))),
            // Ignores the other events, including unknown ones.
            _ => None,
        };
        Ok(event.into_iter().collect())
    }
}

/// Parses an error event: the error is a member of its own, or the event itself. In the latter case the `type` is not
/// an error kind.
fn parse_error_event(event: &Value) -> UnredactedError {
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        return UnredactedError::from_json(error);
    }
    let mut event = event.clone();
    if let Some(members) = event.as_object_mut() {
        members.remove("type");
    }
    UnredactedError::from_json(&event)
}

impl ResponsesUsage {
    fn total(&self) -> TokenUsage {
        let cached = self.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        TokenUsage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cached: cached.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests;
