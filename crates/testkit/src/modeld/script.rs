//! What the model says, as a value; the same in every format.

use serde::Deserialize;
use serde_json::Value;

/// The answers of a model: the first rule that fits, or else the next of the turns. Where neither has one left, the
/// request is refused, so that a test that asks too often fails instead of going on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Answers that are used up in this order, whoever asks.
    pub turns: Vec<Answer>,
    /// Answers that are given as often as they fit.
    pub rules: Vec<Rule>,
    /// Nobody needs a key, as with a local server.
    pub keyless: bool,
}

impl Script {
    /// Makes a script of turns alone.
    pub fn of(turns: impl IntoIterator<Item = Answer>) -> Script {
        Script { turns: turns.into_iter().collect(), ..Script::default() }
    }

    /// Adds a rule at the end.
    pub fn when(mut self, when: When, answer: Answer) -> Script {
        self.rules.push(Rule { when, answer });
        self
    }
}

/// An answer and when it is given.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What must have been said to the model.
    pub when: When,
    /// What it says to that.
    pub answer: Answer,
}

/// What a rule looks for in that part of a request which is newer than the model's last answer. The empty string is
/// found in anything that is said at all.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The user's text contains this.
    Text(String),
    /// The result of a tool contains this.
    ToolResult(String),
    /// The system prompt, which is as old as the conversation, contains this.
    System(String),
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// What is said, in order.
    pub blocks: Vec<Say>,
    /// Why the model stops; without it, what follows from the blocks.
    pub stop: Option<Stop>,
    /// What it counts.
    pub usage: Usage,
    /// How it arrives.
    pub pace: Pace,
    /// What goes wrong instead of, or in the middle of, all that.
    pub fail: Option<Fail>,
}

impl Answer {
    /// Says a text.
    pub fn text(text: &str) -> Answer {
        Answer::default().and(Say::Text(text.to_owned()))
    }

    /// Calls a tool.
    pub fn call(name: &str, arguments: Value) -> Answer {
        Answer::default().and(Say::call(name, arguments))
    }

    /// Fails.
    pub fn fail(fail: Fail) -> Answer {
        Answer { fail: Some(fail), ..Answer::default() }
    }

    /// Says one thing more.
    pub fn and(mut self, say: Say) -> Answer {
        self.blocks.push(say);
        self
    }

    /// Waits before a gate, once so many events have been sent.
    pub fn held(mut self, gate: &str, after: usize) -> Answer {
        self.pace.hold = Some(Hold { gate: gate.to_owned(), after });
        self
    }

    /// The reason it stops for.
    pub(super) fn stopping(&self) -> Stop {
        let calls = self.blocks.iter().any(|say| matches!(say, Say::ToolCall { .. }));
        self.stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::EndTurn })
    }
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// Text for the user.
    Text(String),
    /// Thinking, sealed where the format has that. Chat completions send it as `reasoning_content`, the way local
    /// servers do.
    Thinking(String),
    /// A call of the tool whose name is this, or else ends in this: `read_file` calls `mcp__fs__read_file`. A tool that
    /// was not offered is called nevertheless.
    ToolCall {
        /// The end of its name.
        name: String,
        /// An object; or a string, which is sent as it is and need not be JSON.
        arguments: Value,
    },
    /// A block or an item of a type that clients need not know, word for word. Chat completions have neither: there its
    /// members are members of the message.
    Unknown(Value),
}

impl Say {
    /// Calls a tool.
    pub fn call(name: &str, arguments: Value) -> Say {
        Say::ToolCall { name: name.to_owned(), arguments }
    }
}

/// Why a model stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said everything.
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// It may not say more.
    MaxTokens,
    /// It does not want to.
    Refusal,
}

/// Tokens, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// All that was read, whether out of the cache or not.
    pub input: u64,
    /// All that was said, thinking included.
    pub output: u64,
    /// What of the input came out of the cache.
    pub cached: u64,
    /// What of the output was thinking; Anthropic does not tell.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage { input: 100, output: 20, cached: 0, reasoning: 0 }
    }
}

/// How an answer arrives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// The characters of one delta.
    pub delta: usize,
    /// The bytes of one write, which need not end where an event or a character does; without it, an event each.
    pub write: Option<usize>,
    /// Where it waits.
    pub hold: Option<Hold>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { delta: 12, write: None, hold: None }
    }
}

/// A gate before which an answer waits until a test opens it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The name it is opened by.
    pub gate: String,
    /// How many events are sent before. Without streaming there are none, and the whole answer waits.
    #[serde(default)]
    pub after: usize,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fail {
    /// Another status than 200, with this `Retry-After`, word for word.
    Status(u16, Option<String>),
    /// The blocks arrive, and an error in place of the end. Without streaming, nothing but the error does.
    ErrorEvent,
    /// The connection ends after so many bytes of the body.
    CutAfter(usize),
    /// No word, until the client has left.
    Hang,
    /// The status says 200, and what follows is neither JSON nor events of any API.
    Garbage,
}
