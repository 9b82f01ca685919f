//! Responses in the format of each API: complete, and as an equivalent event stream.

mod anthropic;
mod chat;
mod responses;

use serde_json::Value;

use super::format::ModelApiFormat;
use super::prepared_answer::Turn;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    /// Name of the event; chat completions have none.
    name: Option<&'static str>,
    data: String,
}

impl Event {
    fn named(name: &'static str, data: &Value) -> Event {
        Event { name: Some(name), data: data.to_string() }
    }

    fn unnamed(data: impl ToString) -> Event {
        Event { name: None, data: data.to_string() }
    }

    /// Returns the event as sent.
    pub fn text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data)
    }
}

/// Returns the response to a streaming request.
pub(super) fn events(format: ModelApiFormat, turn: &Turn, request: &Value) -> Vec<Event> {
    match format {
        ModelApiFormat::Anthropic => anthropic::events(turn),
        ModelApiFormat::ChatCompletions => chat::events(turn, request),
        ModelApiFormat::Responses => responses::events(turn, request),
    }
}

/// Returns the response to a non-streaming request.
pub(super) fn full_message(format: ModelApiFormat, turn: &Turn, request: &Value) -> Value {
    match format {
        ModelApiFormat::Anthropic => anthropic::full_message(turn),
        ModelApiFormat::ChatCompletions => chat::full_message(turn),
        ModelApiFormat::Responses => responses::full_message(turn, request),
    }
}

/// Fixed creation time of all responses.
const CREATED: u64 = 1_780_000_000;

/// Parses the arguments of a call; falls back to the text itself.
fn parse_arguments(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments))
}
