//! OpenAI's chat completions: one message, with calls numbered separately from its text.

use serde_json::{Map, Value, json};

use super::{CREATED, Event};
use crate::modeld::prepared_answer::{Block, Turn};
use crate::modeld::script::Stop;

pub(super) fn full_message(turn: &Turn) -> Value {
    let choice = json!({
        "index": 0,
        "message": message(turn),
        "logprobs": null,
        "finish_reason": finish_reason(turn.stop),
    });
    json!({
        "id": turn.id("chatcmpl").replacen('_', "-", 1),
        "object": "chat.completion",
        "created": CREATED,
        "model": turn.model,
        "choices": [choice],
        "usage": usage(turn),
        "service_tier": "default",
        "system_fingerprint": null,
    })
}

pub(super) fn events(turn: &Turn, request: &Value) -> Vec<Event> {
    let counts = request["stream_options"]["include_usage"] == true;
    let mut chunks = ChatChunks { turn, counts, events: Vec::new() };
    chunks.fill();
    if turn.breaks_off {
        let message = "The server had an error";
        let error = json!({ "message": message, "type": "server_error", "param": null, "code": null });
        chunks.events.push(Event::unnamed(json!({ "error": error })));
        return chunks.events;
    }
    chunks.choice(json!({}), &json!(finish_reason(turn.stop)));
    if counts {
        chunks.push(&json!([]), &usage(turn));
    }
    chunks.events.push(Event::unnamed("[DONE]"));
    chunks.events
}

/// A stream under construction.
struct ChatChunks<'a> {
    turn: &'a Turn,
    /// If set, every chunk has a `usage`, null in all but the last.
    counts: bool,
    events: Vec<Event>,
}

impl ChatChunks<'_> {
    fn fill(&mut self) {
        let turn = self.turn;
        let speaks = turn.blocks.iter().any(|block| matches!(block, Block::Text(_)));
        let content = if speaks { json!("") } else { Value::Null };
        self.delta(json!({ "role": "assistant", "content": content, "refusal": null }));
        let mut calls = 0;
        for block in &turn.blocks {
            match block {
                Block::Text(text) => self.pieces(text, |piece| json!({ "content": piece })),
                Block::Thinking(text) => self.pieces(text, |piece| json!({ "reasoning_content": piece })),
                Block::Unknown(raw) => self.delta(raw.clone()),
                Block::Call { id, name, arguments } => {
                    self.call(calls, id, name, arguments);
                    calls += 1;
                }
            }
        }
    }

    fn call(&mut self, index: usize, id: &str, name: &str, arguments: &str) {
        let function = json!({ "name": name, "arguments": "" });
        self.delta(json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }));
        self.pieces(
            arguments,
            |piece| json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }),
        );
    }

    fn pieces(&mut self, text: &str, delta: impl Fn(&str) -> Value) {
        for piece in self.turn.split_deltas(text) {
            self.delta(delta(&piece));
        }
    }

    fn delta(&mut self, delta: Value) {
        self.choice(delta, &Value::Null);
    }

    fn choice(&mut self, delta: Value, finish_reason: &Value) {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        self.push(&json!([choice]), &Value::Null);
    }

    fn push(&mut self, choices: &Value, usage: &Value) {
        let mut chunk = json!({
            "id": self.turn.id("chatcmpl").replacen('_', "-", 1),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.turn.model,
            "service_tier": "default",
            "system_fingerprint": null,
            "choices": choices,
        });
        if self.counts {
            chunk["usage"] = usage.clone();
        }
        self.events.push(Event::unnamed(chunk));
    }
}

fn message(turn: &Turn) -> Value {
    let mut message = Map::new();
    let (mut content, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for block in &turn.blocks {
        match block {
            Block::Text(text) => content.push_str(text),
            Block::Thinking(text) => reasoning.push_str(text),
            Block::Unknown(raw) => message.extend(raw.as_object().cloned().unwrap_or_default()),
            Block::Call { id, name, arguments } => {
                let function = json!({ "name": name, "arguments": arguments });
                calls.push(json!({ "id": id, "type": "function", "function": function }));
            }
        }
    }
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), if content.is_empty() { Value::Null } else { json!(content) });
    message.insert("refusal".to_owned(), Value::Null);
    if !reasoning.is_empty() {
        message.insert("reasoning_content".to_owned(), json!(reasoning));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), json!(calls));
    }
    Value::Object(message)
}

fn usage(turn: &Turn) -> Value {
    let usage = turn.usage;
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cached, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
    }
}
