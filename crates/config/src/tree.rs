//! Format-independent syntax tree of a configuration file, with positions.

use std::fmt;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigNode {
    /// Start position.
    pub at: TextPosition,
    /// The value.
    pub value: ConfigValue,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigValue {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number as written.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<ConfigNode>),
    /// Members in order, including duplicate keys.
    Map(Vec<ConfigMember>),
}

/// A member of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigMember {
    /// Key of the member.
    pub key: String,
    /// Position of the key.
    pub at: TextPosition,
    /// Value of the member.
    pub node: ConfigNode,
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
pub struct ParseFailure {
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

impl ConfigValue {
    /// Returns a name of the type, with an article.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

impl ConfigNode {
    /// Returns the first member with this key, if the value is a map.
    pub fn member(&self, key: &str) -> Option<&ConfigMember> {
        self.members().iter().find(|member| member.key == key)
    }

    /// Returns the members, or none if the value is not a map.
    pub fn members(&self) -> &[ConfigMember] {
        match &self.value {
            ConfigValue::Map(members) => members,
            _ => &[],
        }
    }

    /// Returns the text, if the value is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            ConfigValue::Text(text) => Some(text),
            _ => None,
        }
    }
}
