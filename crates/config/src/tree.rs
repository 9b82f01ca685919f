//! A configuration file as a tree whose every value knows where it stands, whichever format it was written in.

use std::fmt;

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub at: Position,
    /// What it is.
    pub value: Value,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// Text.
    Text(String),
    /// Values in their order.
    List(Vec<Node>),
    /// Members in their order. A key that stands twice is there twice.
    Map(Vec<Member>),
}

/// A member of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its key.
    pub key: String,
    /// Where the key stands.
    pub at: Position,
    /// Its value.
    pub node: Node,
}

/// A line and a column, both counted from one, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// Why a text is no configuration at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Unreadable {
    /// Where it goes wrong.
    pub at: Position,
    /// What is wrong: a lower-case fragment, escaped.
    pub text: String,
}

impl Position {
    /// Where a text begins.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Value {
    /// What kind of value it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

impl Node {
    /// The first member of this key, if it is a map that has one.
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == key)
    }

    /// The members, if it is a map.
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Map(members) => members,
            _ => &[],
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
