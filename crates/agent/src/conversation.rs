//! What was said, as no provider in particular writes it.
//!
//! Owns the shape of a conversation and of the lines it is saved in. How a provider writes it is that provider's.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use wharf_json::{Bounds, Raw, TooComplex};

/// The number of the form in which turns are saved.
pub const SCHEMA: u32 = 2;

/// How much structure a saved line may have.
const BOUNDS: Bounds = Bounds { depth: 100, nodes: 1_000_000 };

/// Everything a model is told: how to behave, and what was said so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// How to behave.
    pub system: Option<String>,
    /// What was said, in order.
    pub turns: Vec<Turn>,
}

/// What one side said at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Who said it.
    pub role: Role,
    /// What it is made of, in order.
    pub blocks: Vec<Block>,
}

/// One side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, and whoever speaks for the tools.
    User,
    /// The model.
    Assistant,
}

/// One part of a turn. What a model said is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text(String),
    /// What somebody else than the person says in the user's turn, such as a note or a resource, in words that say whose
    /// it is. It makes room before answers do. Not in lines of the first schema.
    Relayed(String),
    /// A picture.
    Image {
        /// What it is, as `image/png`.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// The model wants a tool called.
    ToolCall {
        /// What its result has to be marked with.
        id: String,
        /// The tool, by the name it was defined with.
        name: String,
        /// An object; an empty one where the model wrote something that is none.
        #[serde(deserialize_with = "raw")]
        arguments: Raw,
        /// The beginning of what the model wrote where that is no JSON object, so that it can be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        malformed: Option<String>,
    },
    /// What came of a call.
    ToolResult {
        /// The id of the call.
        id: String,
        /// What the tool gave.
        content: Vec<ResultBlock>,
        /// Whether the tool says that it failed.
        is_error: bool,
    },
    /// What the model thought, as its provider wrote it: sent back to that one, and to no other.
    Thinking {
        /// Which provider that is, by [`Provider::source`](crate::Provider::source).
        provider: String,
        /// As it came.
        #[serde(deserialize_with = "raw")]
        raw: Raw,
    },
    /// A block of a kind unknown here, as its provider wrote it: sent back to that one, and to no other.
    Unknown {
        /// Which provider that is, by [`Provider::source`](crate::Provider::source).
        provider: String,
        /// As it came.
        #[serde(deserialize_with = "raw")]
        raw: Raw,
    },
}

/// One part of what a tool gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultBlock {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// What it is, as `image/png`.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
}

/// Why a saved line is no turn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// It was saved by a later version of this program.
    #[error("the line has schema {0}, and the latest known here is {SCHEMA}")]
    Newer(u32),
    /// It is too much to be read.
    #[error("the line is too much to be read")]
    TooComplex(#[source] TooComplex),
    /// It is no such line.
    #[error("the line is no turn of a conversation")]
    Shape(#[source] serde_json::Error),
}

#[derive(Serialize)]
struct Saving<'a> {
    schema: u32,
    turn: &'a Turn,
}

/// The number alone, so that a later form is told from a broken one.
#[derive(Deserialize)]
struct Numbered {
    schema: u32,
}

#[derive(Deserialize)]
struct Saved {
    turn: Turn,
}

impl Turn {
    /// The turn as one line of a saved conversation, without the line's end.
    ///
    /// Fails where a raw block is no JSON after all.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Saving { schema: SCHEMA, turn: self })
    }

    /// Reads a line of a saved conversation.
    pub fn from_line(line: &[u8]) -> Result<Self, BadLine> {
        BOUNDS.check(line).map_err(BadLine::TooComplex)?;
        let Numbered { schema } = serde_json::from_slice(line).map_err(BadLine::Shape)?;
        if schema > SCHEMA {
            return Err(BadLine::Newer(schema));
        }
        serde_json::from_slice(line).map(|Saved { turn }| turn).map_err(BadLine::Shape)
    }
}

fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
    let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
    Raw::parse(text.into_string()).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw_of(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn every_block_survives_its_line() {
        let image = || ("image/png".to_owned(), "aGk=".to_owned());
        let (media_type, data) = image();
        let (shot_type, shot) = image();
        let provider = || "anthropic api.example".to_owned();
        let blocks = vec![
            Block::Text("two\nlines".into()),
            Block::Relayed("whose:\n> words".into()),
            Block::Image { media_type, data },
            Block::Thinking { provider: provider(), raw: raw_of(r#"{"b":1, "a":12345678901234567890123}"#) },
            Block::ToolCall { id: "1".into(), name: "add".into(), arguments: raw_of(r#"{"z":1}"#), malformed: None },
            Block::ToolCall {
                id: "2".into(),
                name: "add".into(),
                arguments: Raw::empty_object(),
                malformed: Some("{".into()),
            },
            Block::ToolResult {
                id: "1".into(),
                content: vec![ResultBlock::Text("3".into()), ResultBlock::Image { media_type: shot_type, data: shot }],
                is_error: true,
            },
            Block::Unknown { provider: provider(), raw: raw_of(r#"{"type":"new"}"#) },
        ];
        let turn = Turn { role: Role::Assistant, blocks };
        let line = turn.to_line().unwrap();
        assert!(
            line.starts_with(r#"{"schema":2,"turn":{"role":"assistant","blocks":[{"text":"two\nlines"}"#),
            "{line}"
        );
        assert!(line.contains(r#"{"b":1, "a":12345678901234567890123}"#) && !line.contains('\n'), "{line}");
        assert_eq!(Turn::from_line(line.as_bytes()).unwrap(), turn);
    }

    #[test]
    fn a_line_of_the_first_schema_is_still_read() {
        let line = br#"{"schema":1,"turn":{"role":"user","blocks":[{"text":"hi"}]}}"#;
        let expected = Turn { role: Role::User, blocks: vec![Block::Text("hi".into())] };
        assert_eq!(Turn::from_line(line).unwrap(), expected);
    }

    #[test]
    fn what_is_no_turn_is_told_apart() {
        for (line, expected) in [
            (r#"{"schema":3,"conversation":[]}"#, "the line has schema 3, and the latest known here is 2"),
            (r#"{"schema":2,"turn":{"role":"user"}}"#, "the line is no turn of a conversation"),
            (r#"{"schema":2,"turn":{"role":"user","#, "the line is no turn of a conversation"),
            (&"[".repeat(1000), "the line is too much to be read"),
        ] {
            assert_eq!(Turn::from_line(line.as_bytes()).unwrap_err().to_string(), expected);
        }
    }
}
