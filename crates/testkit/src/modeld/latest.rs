//! What was said to the model since it spoke last, and what it was told at the beginning.

use serde_json::Value;

use super::format::Format;
use super::script::When;

/// The news of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Latest {
    text: String,
    results: String,
    system: String,
}

impl Latest {
    pub fn of(format: Format, body: &Value) -> Latest {
        let whole = body["input"].as_str().unwrap_or_default().to_owned();
        let mut latest = Latest { text: whole, system: system(format, body), ..Latest::default() };
        for entry in news(format, body) {
            latest.take(entry);
        }
        latest
    }

    pub fn fits(&self, when: &When) -> bool {
        let (said, part) = match when {
            When::Text(part) => (&self.text, part),
            When::ToolResult(part) => (&self.results, part),
            When::System(part) => (&self.system, part),
        };
        !said.is_empty() && said.contains(part)
    }

    /// Adds a message or an item, whichever format it is of.
    fn take(&mut self, entry: &Value) {
        if entry["type"] == "function_call_output" {
            self.results.push_str(&text_of(&entry["output"]));
        } else if entry["role"] == "tool" {
            self.results.push_str(&text_of(&entry["content"]));
        } else if entry["role"] == "user" {
            self.text.push_str(&text_of(&entry["content"]));
            let results = entries(&entry["content"]).iter().filter(|block| block["type"] == "tool_result");
            results.for_each(|block| self.results.push_str(&text_of(&block["content"])));
        }
    }
}

/// The messages or items after the last one that the model made.
fn news(format: Format, body: &Value) -> &[Value] {
    let entries = entries(if format == Format::Responses { &body["input"] } else { &body["messages"] });
    let is_made = |entry: &Value| {
        entry["role"] == "assistant" || entry["type"] == "function_call" || entry["type"] == "reasoning"
    };
    let begin = entries.iter().rposition(is_made).map_or(0, |index| index + 1);
    &entries[begin..]
}

fn system(format: Format, body: &Value) -> String {
    let is_system = |entry: &&Value| entry["role"] == "system" || entry["role"] == "developer";
    let within = |entries: &[Value]| -> String {
        entries.iter().filter(is_system).map(|entry| text_of(&entry["content"])).collect()
    };
    match format {
        Format::Anthropic => text_of(&body["system"]),
        Format::ChatCompletions => within(entries(&body["messages"])),
        Format::Responses => text_of(&body["instructions"]) + &within(entries(&body["input"])),
    }
}

/// Content as text: a string, or the texts of its parts.
fn text_of(content: &Value) -> String {
    let parts = entries(content).iter().filter_map(|part| part["text"].as_str());
    content.as_str().map_or_else(|| parts.collect::<Vec<_>>().join("\n"), str::to_owned)
}

/// The elements of an array; none of anything else.
pub(super) fn entries(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(format: Format, body: &Value, text: &str, results: &str, system: &str) {
        let expected = Latest { text: text.to_owned(), results: results.to_owned(), system: system.to_owned() };
        assert_eq!(Latest::of(format, body), expected, "{body}");
    }

    #[test]
    fn only_what_is_new_counts_in_every_format() {
        let result = json!({ "type": "tool_result", "tool_use_id": "1", "content": [{ "type": "text", "text": "r" }] });
        let messages = json!([
            { "role": "user", "content": "old" },
            { "role": "assistant", "content": "said" },
            { "role": "user", "content": [result, { "type": "text", "text": "note" }] },
        ]);
        check(Format::Anthropic, &json!({ "system": "s", "messages": messages }), "note", "r", "s");
        let messages = json!([
            { "role": "system", "content": "s" },
            { "role": "user", "content": "old" },
            { "role": "assistant", "content": null, "tool_calls": [] },
            { "role": "tool", "content": "r" },
            { "role": "user", "content": [{ "type": "text", "text": "note" }] },
        ]);
        check(Format::ChatCompletions, &json!({ "messages": messages }), "note", "r", "s");
        let input = json!([
            { "role": "user", "content": "old" },
            { "type": "function_call", "call_id": "1" },
            { "type": "function_call_output", "call_id": "1", "output": "r" },
            { "role": "user", "content": [{ "type": "input_text", "text": "note" }] },
        ]);
        check(Format::Responses, &json!({ "instructions": "s", "input": input }), "note", "r", "s");
        check(Format::Responses, &json!({ "input": "all" }), "all", "", "");
    }
}
