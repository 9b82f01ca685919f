//! Answers as each API writes them: as a whole, and as a stream of events that comes to the same.

mod anthropic;
mod chat;
mod responses;

use serde_json::Value;

use super::format::Format;
use super::turn::Turn;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    /// Chat completions give none.
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

    /// The event as it is sent.
    pub fn text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data)
    }
}

/// The answer to a request that asked for a stream.
pub(super) fn events(format: Format, turn: &Turn, request: &Value) -> Vec<Event> {
    match format {
        Format::Anthropic => anthropic::events(turn),
        Format::ChatCompletions => chat::events(turn, request),
        Format::Responses => responses::events(turn, request),
    }
}

/// The answer to a request that did not.
pub(super) fn whole(format: Format, turn: &Turn, request: &Value) -> Value {
    match format {
        Format::Anthropic => anthropic::whole(turn),
        Format::ChatCompletions => chat::whole(turn),
        Format::Responses => responses::whole(turn, request),
    }
}

/// The instant at which every answer is made; no clock plays a part.
const CREATED: u64 = 1_780_000_000;

/// The arguments of a call as JSON, or as the text that they are.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments))
}
