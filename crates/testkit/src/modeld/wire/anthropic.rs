//! Anthropic's Messages: indexed blocks, each with start, deltas and stop.

use serde_json::{Value, json};

use super::{Event, parse_arguments};
use crate::modeld::prepared_answer::{Block, Turn};
use crate::modeld::script::Stop;
use crate::modeld::seal::signature;

pub(super) fn full_message(turn: &Turn) -> Value {
    let content: Vec<Value> = turn.blocks.iter().map(complete_block).collect();
    let output = turn.usage.output;
    message(turn, &json!(content), &json!(stop_reason(turn.stop)), output)
}

pub(super) fn events(turn: &Turn) -> Vec<Event> {
    let begun = message(turn, &json!([]), &Value::Null, 1);
    let mut events = vec![Event::named("message_start", &json!({ "type": "message_start", "message": begun }))];
    for (index, block) in turn.blocks.iter().enumerate() {
        events.extend(block_events(turn, index, block));
    }
    // The real API sends one after the start of the first block.
    events.insert(events.len().min(2), Event::named("ping", &json!({ "type": "ping" })));
    events.extend(if turn.breaks_off { vec![overloaded()] } else { end(turn) });
    events
}

fn message(turn: &Turn, content: &Value, stop_reason: &Value, output: u64) -> Value {
    json!({
        "id": turn.id("msg"),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage(turn, output),
    })
}

/// Cached tokens are counted in addition to the input, not within it.
fn usage(turn: &Turn, output: u64) -> Value {
    json!({
        "input_tokens": turn.usage.input.saturating_sub(turn.usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": turn.usage.cached,
        "output_tokens": output,
    })
}

fn complete_block(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::Thinking(text) => json!({ "type": "thinking", "thinking": text, "signature": signature(text) }),
        Block::Call { id, name, arguments } => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": parse_arguments(arguments) })
        }
        Block::Unknown(raw) => raw.clone(),
    }
}

fn block_events(turn: &Turn, index: usize, block: &Block) -> Vec<Event> {
    let begun = json!({ "type": "content_block_start", "index": index, "content_block": empty_block(block) });
    let mut events = vec![Event::named("content_block_start", &begun)];
    events.extend(deltas(turn, block).into_iter().map(|delta| {
        let data = json!({ "type": "content_block_delta", "index": index, "delta": delta });
        Event::named("content_block_delta", &data)
    }));
    events.push(Event::named("content_block_stop", &json!({ "type": "content_block_stop", "index": index })));
    events
}

/// Returns an empty block; a block of an unknown type is complete.
fn empty_block(block: &Block) -> Value {
    match block {
        Block::Text(_) => json!({ "type": "text", "text": "" }),
        Block::Thinking(_) => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        Block::Call { id, name, .. } => json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
        Block::Unknown(raw) => raw.clone(),
    }
}

fn deltas(turn: &Turn, block: &Block) -> Vec<Value> {
    let filled = |kind: &str, member: &str, text: &str| -> Vec<Value> {
        turn.split_deltas(text).into_iter().map(|piece| json!({ "type": kind, member: piece })).collect()
    };
    match block {
        Block::Text(text) => filled("text_delta", "text", text),
        Block::Thinking(text) => {
            let seal = json!({ "type": "signature_delta", "signature": signature(text) });
            [filled("thinking_delta", "thinking", text), vec![seal]].concat()
        }
        Block::Call { arguments, .. } => {
            let empty = json!({ "type": "input_json_delta", "partial_json": "" });
            // A call without arguments has only the initial empty delta.
            let rest = if arguments == "{}" { "" } else { arguments };
            [vec![empty], filled("input_json_delta", "partial_json", rest)].concat()
        }
        Block::Unknown(_) => Vec::new(),
    }
}

fn end(turn: &Turn) -> Vec<Event> {
    let delta = json!({ "stop_reason": stop_reason(turn.stop), "stop_sequence": null });
    let usage = usage(turn, turn.usage.output);
    vec![
        Event::named("message_delta", &json!({ "type": "message_delta", "delta": delta, "usage": usage })),
        Event::named("message_stop", &json!({ "type": "message_stop" })),
    ]
}

fn overloaded() -> Event {
    let error = json!({ "type": "overloaded_error", "message": "Overloaded" });
    Event::named("error", &json!({ "type": "error", "error": error }))
}

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    }
}
