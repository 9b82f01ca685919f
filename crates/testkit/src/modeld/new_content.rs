//! The part of a request that is newer than the model's last response, and the system prompt.

use serde_json::Value;

use super::format::ModelApiFormat;
use super::script::When;

/// A tool result sent to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedToolResult {
    /// Set if marked as an error; only Anthropic has such a mark.
    pub is_error: bool,
    /// Its text, or the texts of its parts.
    pub text: String,
}

/// The new content of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NewContent {
    text: String,
    pub results: Vec<ScriptedToolResult>,
    system: String,
}

impl NewContent {
    pub fn from_request(format: ModelApiFormat, body: &Value) -> NewContent {
        let whole = body["input"].as_str().unwrap_or_default().to_owned();
        let mut latest = NewContent { text: whole, system: system(format, body), ..NewContent::default() };
        for entry in new_entries(format, body) {
            latest.add(entry);
        }
        latest
    }

    pub fn matches(&self, when: &When) -> bool {
        let fits = |said: &str, part: &str| !said.is_empty() && said.contains(part);
        match when {
            When::Text(part) => fits(&self.text, part),
            When::ToolResult(part) => self.results.iter().any(|result| fits(&result.text, part)),
            When::System(part) => fits(&self.system, part),
        }
    }

    /// Adds a message or an item of any format.
    fn add(&mut self, entry: &Value) {
        let unmarked = |content: &Value| ScriptedToolResult { is_error: false, text: text_of(content) };
        if entry["type"] == "function_call_output" {
            self.results.push(unmarked(&entry["output"]));
        } else if entry["role"] == "tool" {
            self.results.push(unmarked(&entry["content"]));
        } else if entry["role"] == "user" {
            self.text.push_str(&text_of(&entry["content"]));
            let results = entries(&entry["content"]).iter().filter(|block| block["type"] == "tool_result");
            self.results.extend(results.map(|block| {
                let text = text_of(&block["content"]);
                ScriptedToolResult { is_error: block["is_error"] == true, text }
            }));
        }
    }
}

/// Returns the messages or items after the last one of the model.
fn new_entries(format: ModelApiFormat, body: &Value) -> &[Value] {
    let entries = entries(if format == ModelApiFormat::Responses { &body["input"] } else { &body["messages"] });
    let is_made = |entry: &Value| {
        entry["role"] == "assistant" || entry["type"] == "function_call" || entry["type"] == "reasoning"
    };
    let begin = entries.iter().rposition(is_made).map_or(0, |index| index + 1);
    &entries[begin..]
}

fn system(format: ModelApiFormat, body: &Value) -> String {
    let is_system = |entry: &&Value| entry["role"] == "system" || entry["role"] == "developer";
    let within = |entries: &[Value]| -> String {
        entries.iter().filter(is_system).map(|entry| text_of(&entry["content"])).collect()
    };
    match format {
        ModelApiFormat::Anthropic => text_of(&body["system"]),
        ModelApiFormat::ChatCompletions => within(entries(&body["messages"])),
        ModelApiFormat::Responses => text_of(&body["instructions"]) + &within(entries(&body["input"])),
    }
}

/// Returns content as text: a string, or the texts of its parts.
fn text_of(content: &Value) -> String {
    let parts = entries(content).iter().filter_map(|part| part["text"].as_str());
    content.as_str().map_or_else(|| parts.collect::<Vec<_>>().join("\n"), str::to_owned)
}

/// Returns the elements of an array; empty for other values.
pub(super) fn entries(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
