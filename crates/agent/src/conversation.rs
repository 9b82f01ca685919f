//! Provider-independent conversations.
//!
//! Defines the structure of a conversation and of its saved lines. The provider modules encode it for their APIs.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use wharf_json::{JsonLimitExceeded, JsonLimits, RawJson};

/// Schema version of saved turns.
pub const SCHEMA: u32 = 2;

/// Structural limits of a saved line.
const SAVED_LINE_LIMITS: JsonLimits = JsonLimits { depth: 100, nodes: 1_000_000 };

/// The system prompt and the turns so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// System prompt.
    pub system: Option<String>,
    /// Turns in order.
    pub turns: Vec<ConversationTurn>,
}

/// The consecutive blocks of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationTurn {
    /// The side that the turn belongs to.
    pub role: TurnRole,
    /// Blocks in order.
    pub blocks: Vec<TurnBlock>,
}

/// One side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnRole {
    /// The person, and tool results.
    User,
    /// The model.
    Assistant,
}

/// One part of a turn. Text from a model is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnBlock {
    /// Text.
    Text(String),
    /// Third-party text in the user's turn, such as a note or a resource, with a header that names its source. Removed
    /// before model turns when space is needed. Does not occur in lines of schema 1.
    Relayed(String),
    /// An image.
    Image {
        /// Media type, such as `image/png`.
        media_type: String,
        /// Image bytes in Base64.
        data: String,
    },
    /// A tool call requested by the model.
    ToolCall {
        /// Id that the result must carry.
        id: String,
        /// Name of the tool as in its definition.
        name: String,
        /// The arguments as a JSON object. Empty if the model did not write a JSON object.
        #[serde(deserialize_with = "deserialize_raw")]
        arguments: RawJson,
        /// Beginning of the model's output if that is not a JSON object, for the error result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        malformed: Option<String>,
    },
    /// Result of a tool call.
    ToolResult {
        /// Id of the call.
        id: String,
        /// Content returned by the tool.
        content: Vec<ResultBlock>,
        /// The tool reports failure.
        is_error: bool,
    },
    /// Reasoning in the provider's own format. Sent back to that provider only.
    Thinking {
        /// Identifies the provider by [`ModelProvider::source_id`](crate::ModelProvider::source_id).
        provider: String,
        /// The original JSON.
        #[serde(deserialize_with = "deserialize_raw")]
        raw: RawJson,
    },
    /// A block of unknown type in the provider's own format. Sent back to that provider only.
    Unknown {
        /// Identifies the provider by [`ModelProvider::source_id`](crate::ModelProvider::source_id).
        provider: String,
        /// The original JSON.
        #[serde(deserialize_with = "deserialize_raw")]
        raw: RawJson,
    },
}

/// One part of a tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultBlock {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Media type, such as `image/png`.
        media_type: String,
        /// Image bytes in Base64.
        data: String,
    },
}

/// Error: a saved line is not a valid turn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedLineError {
    /// The line was saved by a newer version of this program.
    #[error("line has schema {0}, but this version supports only up to {SCHEMA}")]
    Newer(u32),
    /// The line exceeds the structural limits.
    #[error("too large or too deeply nested")]
    TooComplex(#[source] JsonLimitExceeded),
    /// The line is not a saved turn.
    #[error("not a conversation turn")]
    Shape(#[source] serde_json::Error),
}

#[derive(Serialize)]
struct SavedLineRef<'a> {
    schema: u32,
    turn: &'a ConversationTurn,
}

/// The schema version alone, decoded first to tell a newer schema from a malformed line.
#[derive(Deserialize)]
struct SchemaVersion {
    schema: u32,
}

#[derive(Deserialize)]
struct SavedLine {
    turn: ConversationTurn,
}

impl ConversationTurn {
    /// Encodes the turn as one line of a saved conversation, without the line terminator.
    ///
    /// # Errors
    ///
    /// Fails if a raw block is not valid JSON.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&SavedLineRef { schema: SCHEMA, turn: self })
    }

    /// Decodes a line of a saved conversation.
    ///
    /// # Errors
    ///
    /// Fails if the line has a newer schema, exceeds the structural limits or is not a saved turn.
    pub fn from_line(line: &[u8]) -> Result<Self, SavedLineError> {
        SAVED_LINE_LIMITS.check(line).map_err(SavedLineError::TooComplex)?;
        let SchemaVersion { schema } = serde_json::from_slice(line).map_err(SavedLineError::Shape)?;
        if schema > SCHEMA {
            return Err(SavedLineError::Newer(schema));
        }
        serde_json::from_slice(line).map(|SavedLine { turn }| turn).map_err(SavedLineError::Shape)
    }
}

fn deserialize_raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RawJson, D::Error> {
    let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
    RawJson::parse(text.into_string()).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw_json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn every_block_kind_round_trips_through_a_line() {
        let image = || ("image/png".to_owned(), "aGk=".to_owned());
        let (media_type, data) = image();
        let (shot_type, shot) = image();
        let provider = || "anthropic api.example".to_owned();
        let blocks = vec![
            TurnBlock::Text("two\nlines".into()),
            TurnBlock::Relayed("whose:\n> words".into()),
            TurnBlock::Image { media_type, data },
            TurnBlock::Thinking { provider: provider(), raw: raw_json(r#"{"b":1, "a":12345678901234567890123}"#) },
            TurnBlock::ToolCall {
                id: "1".into(),
                name: "add".into(),
                arguments: raw_json(r#"{"z":1}"#),
                malformed: None,
            },
            TurnBlock::ToolCall {
                id: "2".into(),
                name: "add".into(),
                arguments: RawJson::empty_object(),
                malformed: Some("{".into()),
            },
            TurnBlock::ToolResult {
                id: "1".into(),
                content: vec![ResultBlock::Text("3".into()), ResultBlock::Image { media_type: shot_type, data: shot }],
                is_error: true,
            },
            TurnBlock::Unknown { provider: provider(), raw: raw_json(r#"{"type":"new"}"#) },
        ];
        let turn = ConversationTurn { role: TurnRole::Assistant, blocks };
        let line = turn.to_line().unwrap();
        assert!(
            line.starts_with(r#"{"schema":2,"turn":{"role":"assistant","blocks":[{"text":"two\nlines"}"#),
            "{line}"
        );
        assert!(line.contains(r#"{"b":1, "a":12345678901234567890123}"#) && !line.contains('\n'), "{line}");
        assert_eq!(ConversationTurn::from_line(line.as_bytes()).unwrap(), turn);
    }

    #[test]
    fn schema_1_line_is_readable() {
        let line = br#"{"schema":1,"turn":{"role":"user","blocks":[{"text":"hi"}]}}"#;
        let expected = ConversationTurn { role: TurnRole::User, blocks: vec![TurnBlock::Text("hi".into())] };
        assert_eq!(ConversationTurn::from_line(line).unwrap(), expected);
    }

    #[test]
    fn invalid_lines_have_specific_errors() {
        for (line, expected) in [
            (r#"{"schema":3,"conversation":[]}"#, "line has schema 3, but this version supports only up to 2"),
            (r#"{"schema":2,"turn":{"role":"user"}}"#, "not a conversation turn"),
            (r#"{"schema":2,"turn":{"role":"user","#, "not a conversation turn"),
            (&"[".repeat(1000), "too large or too deeply nested"),
        ] {
            assert_eq!(ConversationTurn::from_line(line.as_bytes()).unwrap_err().to_string(), expected);
        }
    }
}
