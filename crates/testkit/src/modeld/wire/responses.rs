//! OpenAI's responses: indexed items, numbered events.

use serde_json::{Value, json};

use super::{CREATED, Event};
use crate::modeld::new_content::entries;
use crate::modeld::prepared_answer::{Block, Turn};
use crate::modeld::script::Stop;
use crate::modeld::seal::encrypt;

pub(super) fn full_message(turn: &Turn, request: &Value) -> Value {
    ResponsesWriter::new(turn, request).full_response()
}

pub(super) fn events(turn: &Turn, request: &Value) -> Vec<Event> {
    let mut writer = ResponsesWriter::new(turn, request);
    let begun = writer.response("in_progress", &json!([]));
    writer.push("response.created", json!({ "response": begun }));
    writer.push("response.in_progress", json!({ "response": begun }));
    for (index, block) in turn.blocks.iter().enumerate() {
        writer.block(index, block);
    }
    if turn.breaks_off {
        writer.fail()
    } else {
        writer.end()
    }
    writer.events
}

/// A stream under construction.
struct ResponsesWriter<'a> {
    turn: &'a Turn,
    request: &'a Value,
    events: Vec<Event>,
}

impl<'a> ResponsesWriter<'a> {
    fn new(turn: &'a Turn, request: &'a Value) -> ResponsesWriter<'a> {
        ResponsesWriter { turn, request, events: Vec::new() }
    }

    fn push(&mut self, name: &'static str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(Event::named(name, &data));
    }

    fn block(&mut self, index: usize, block: &Block) {
        let begun = self.item(index, block, "in_progress");
        self.push("response.output_item.added", json!({ "output_index": index, "item": begun }));
        match block {
            Block::Text(text) => self.text(index, text),
            Block::Thinking(text) if self.summarizes() => self.summary(index, text),
            Block::Call { name, arguments, .. } => self.arguments(index, name, arguments),
            Block::Thinking(_) | Block::Unknown(_) => {}
        }
        let done = self.item(index, block, "completed");
        self.push("response.output_item.done", json!({ "output_index": index, "item": done }));
    }

    fn text(&mut self, index: usize, text: &str) {
        let place = json!({ "item_id": self.turn.block_id("msg", index), "output_index": index, "content_index": 0 });
        self.push("response.content_part.added", with_member(&place, "part", output_text("")));
        for piece in self.turn.split_deltas(text) {
            let delta = with_member(&with_member(&place, "delta", json!(piece)), "logprobs", json!([]));
            self.push("response.output_text.delta", delta);
        }
        let done = with_member(&with_member(&place, "text", json!(text)), "logprobs", json!([]));
        self.push("response.output_text.done", done);
        self.push("response.content_part.done", with_member(&place, "part", output_text(text)));
    }

    fn summary(&mut self, index: usize, text: &str) {
        let place = json!({ "item_id": self.turn.block_id("rs", index), "output_index": index, "summary_index": 0 });
        self.push("response.reasoning_summary_part.added", with_member(&place, "part", summary_text("")));
        for piece in self.turn.split_deltas(text) {
            self.push("response.reasoning_summary_text.delta", with_member(&place, "delta", json!(piece)));
        }
        self.push("response.reasoning_summary_text.done", with_member(&place, "text", json!(text)));
        self.push("response.reasoning_summary_part.done", with_member(&place, "part", summary_text(text)));
    }

    fn arguments(&mut self, index: usize, name: &str, arguments: &str) {
        let place = json!({ "item_id": self.turn.block_id("fc", index), "output_index": index });
        for piece in self.turn.split_deltas(arguments) {
            self.push("response.function_call_arguments.delta", with_member(&place, "delta", json!(piece)));
        }
        let done = with_member(&with_member(&place, "name", json!(name)), "arguments", json!(arguments));
        self.push("response.function_call_arguments.done", done);
    }

    /// The last event repeats the complete response.
    fn end(&mut self) {
        let response = self.full_response();
        let name = if response["status"] == "completed" { "response.completed" } else { "response.incomplete" };
        self.push(name, json!({ "response": response }));
    }

    fn fail(&mut self) {
        let (code, message) = ("server_error", "The server had an error");
        self.push("error", json!({ "code": code, "message": message, "param": null }));
        let mut response = self.response("failed", &json!([]));
        response["error"] = json!({ "code": code, "message": message });
        self.push("response.failed", json!({ "response": response }));
    }

    fn full_response(&self) -> Value {
        let blocks = self.turn.blocks.iter().enumerate();
        let output: Vec<Value> = blocks.map(|(index, block)| self.item(index, block, "completed")).collect();
        let reason = match self.turn.stop {
            Stop::EndTurn | Stop::ToolUse => None,
            Stop::MaxTokens => Some("max_output_tokens"),
            Stop::Refusal => Some("content_filter"),
        };
        let mut response = self.response(reason.map_or("completed", |_| "incomplete"), &json!(output));
        response["usage"] = usage(self.turn);
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({ "reason": reason });
        }
        response
    }

    fn response(&self, status: &str, output: &Value) -> Value {
        let request = self.request;
        let or = |member: &str, default: Value| request.get(member).cloned().unwrap_or(default);
        json!({
            "id": self.turn.id("resp"),
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": request["instructions"],
            "max_output_tokens": request["max_output_tokens"],
            "model": self.turn.model,
            "output": output,
            "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
            "previous_response_id": null,
            "reasoning": or("reasoning", json!({ "effort": null, "summary": null })),
            "store": or("store", json!(true)),
            "temperature": 1.0,
            "text": { "format": { "type": "text" } },
            "tool_choice": or("tool_choice", json!("auto")),
            "tools": or("tools", json!([])),
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": null,
            "metadata": {},
        })
    }

    /// Returns an item at its start, empty, or at its end. An item of an unknown type is the same at both.
    fn item(&self, index: usize, block: &Block, status: &str) -> Value {
        let is_done = status == "completed";
        let id = |prefix| self.turn.block_id(prefix, index);
        match block {
            Block::Text(text) => {
                let content = if is_done { json!([output_text(text)]) } else { json!([]) };
                json!({ "id": id("msg"), "type": "message", "status": status, "role": "assistant", "content": content })
            }
            Block::Thinking(text) => {
                let summary = if is_done && self.summarizes() { json!([summary_text(text)]) } else { json!([]) };
                let item = json!({ "id": id("rs"), "type": "reasoning", "summary": summary });
                if self.encrypts() { with_member(&item, "encrypted_content", json!(encrypt(text))) } else { item }
            }
            Block::Call { id: call_id, name, arguments } => json!({
                "id": id("fc"),
                "type": "function_call",
                "status": status,
                "call_id": call_id,
                "name": name,
                "arguments": if is_done { arguments.as_str() } else { "" },
            }),
            Block::Unknown(raw) => raw.clone(),
        }
    }

    /// Reports whether the request asks for reasoning summaries.
    fn summarizes(&self) -> bool {
        self.request["reasoning"]["summary"].is_string()
    }

    fn encrypts(&self) -> bool {
        entries(&self.request["include"]).iter().any(|wanted| wanted == "reasoning.encrypted_content")
    }
}

fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text })
}

fn summary_text(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

fn usage(turn: &Turn) -> Value {
    let usage = turn.usage;
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": usage.cached },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.input + usage.output,
    })
}

/// Returns a copy of an object with one more member.
fn with_member(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}
