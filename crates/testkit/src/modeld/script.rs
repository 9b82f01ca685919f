//! Scripted responses of the model, independent of the format.

use serde_json::Value;

/// The responses of a model: the first matching rule, or else the next turn. If neither is left, the request is
/// rejected, so that a test with too many requests fails instead of continuing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Responses used in this order, for any request.
    pub turns: Vec<Answer>,
    /// Responses used for every matching request.
    pub rules: Vec<Rule>,
    /// Require no API key, like a local server.
    pub keyless: bool,
}

impl Script {
    /// Creates a script with turns only.
    pub fn from_turns(turns: impl IntoIterator<Item = Answer>) -> Script {
        Script { turns: turns.into_iter().collect(), ..Script::default() }
    }

    /// Appends a rule.
    pub fn when(mut self, when: When, answer: Answer) -> Script {
        self.rules.push(Rule { when, answer });
        self
    }
}

/// A response and its condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The condition on the request.
    pub when: When,
    /// The response.
    pub answer: Answer,
}

/// A condition on the part of a request that is newer than the model's last response. The empty string matches any
/// non-empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// The user's text contains this.
    Text(String),
    /// A tool result contains this.
    ToolResult(String),
    /// The system prompt, of any age, contains this.
    System(String),
}

/// One response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Content blocks, in order.
    pub blocks: Vec<Say>,
    /// Stop reason; derived from the blocks if `None`.
    pub stop: Option<Stop>,
    /// Token counts.
    pub usage: Usage,
    /// Timing of the response.
    pub pace: Pace,
    /// Failure instead of, or during, the response.
    pub fail: Option<AnswerFailure>,
}

impl Answer {
    /// Creates a response with a text.
    pub fn text(text: &str) -> Answer {
        Answer::default().with_block(Say::Text(text.to_owned()))
    }

    /// Creates a response with a tool call.
    pub fn call(name: &str, arguments: Value) -> Answer {
        Answer::default().with_block(Say::call(name, arguments))
    }

    /// Creates a failure.
    pub fn fail(fail: AnswerFailure) -> Answer {
        Answer { fail: Some(fail), ..Answer::default() }
    }

    /// Appends a block.
    pub fn with_block(mut self, say: Say) -> Answer {
        self.blocks.push(say);
        self
    }

    /// Waits at a gate after this many events.
    pub fn held_at(mut self, gate: &str, after: usize) -> Answer {
        self.pace.hold = Some(Hold { gate: gate.to_owned(), after });
        self
    }

    /// Returns the stop reason.
    pub(super) fn stop_reason(&self) -> Stop {
        let calls = self.blocks.iter().any(|say| matches!(say, Say::ToolCall { .. }));
        self.stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::EndTurn })
    }
}

/// A content block of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Say {
    /// Text for the user.
    Text(String),
    /// Thinking, signed or encrypted if the format supports it. Chat completions send it as `reasoning_content`, like
    /// local servers.
    Thinking(String),
    /// A call of the tool with this name, or with a name that ends in it: `read_file` calls `mcp__fs__read_file`. A
    /// tool that was not offered is called anyway.
    ToolCall {
        /// The end of its name.
        name: String,
        /// An object, or a string, which is sent unchanged and need not be JSON.
        arguments: Value,
    },
    /// A block or an item of an unknown type, verbatim. Chat completions have neither: there its members become members
    /// of the message.
    Unknown(Value),
}

impl Say {
    /// Creates a tool call.
    pub fn call(name: &str, arguments: Value) -> Say {
        Say::ToolCall { name: name.to_owned(), arguments }
    }
}

/// The reason a model stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The response is complete.
    EndTurn,
    /// The model waits for tool results.
    ToolUse,
    /// The token limit is reached.
    MaxTokens,
    /// The model declines.
    Refusal,
}

/// Token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input: u64,
    /// All output tokens, thinking included.
    pub output: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Thinking tokens of the output; not reported by Anthropic.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage { input: 100, output: 20, cached: 0, reasoning: 0 }
    }
}

/// Timing of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Characters per delta.
    pub delta: usize,
    /// Bytes per write, independent of event and character boundaries; one event per write if `None`.
    pub write: Option<usize>,
    /// Gate at which it waits.
    pub hold: Option<Hold>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { delta: 12, write: None, hold: None }
    }
}

/// A gate at which a response waits until a test opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Name of the gate.
    pub gate: String,
    /// Number of events sent before. Without streaming there are none, and the complete response waits.
    pub after: usize,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerFailure {
    /// A status other than 200, with this verbatim `Retry-After`.
    Status(u16, Option<String>),
    /// Sends the blocks, and an error instead of the end. Without streaming, only the error.
    ErrorEvent,
    /// Closes the connection after this many bytes of the body.
    CutAfter(usize),
    /// Never responds; waits until the client disconnects.
    Hang,
    /// Status 200, with a body that is neither JSON nor valid events.
    Garbage,
}
