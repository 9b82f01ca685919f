//! Format-independent syntax tree of a configuration file, with positions.

use std::fmt;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Start position.
    pub at: TextPosition,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number as written.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Members in order, including duplicate keys.
    Map(Vec<Member>),
}

/// A member of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Key of the member.
    pub key: String,
    /// Position of the key.
    pub at: TextPosition,
    /// Value of the member.
    pub node: Node,
}

/// A line and a column, both starting at 1. Columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Line number.
    pub line: u32,
    /// Column number.
    pub column: u32,
}

/// Error for a text that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Unreadable {
    /// Position of the error.
    pub at: TextPosition,
    /// Description: a lower-case fragment, escaped.
    pub text: String,
}

impl TextPosition {
    /// Start of a text.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Value {
    /// Returns a name of the type, with an article.
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
    /// Returns the first member with this key, if the value is a map.
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == key)
    }

    /// Returns the members, or none if the value is not a map.
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Map(members) => members,
            _ => &[],
        }
    }

    /// Returns the text, if the value is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
