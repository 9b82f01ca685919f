//! Warnings about tools, for people.

use std::fmt;

use wharf_spec::ToolId;

/// A warning about a tool. Only [`ToolWarning::Quarantined`] withholds the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolWarning {
    /// The name is not 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`. Models use an alias.
    OddName,
    /// The name looks like that of another tool and differs from it.
    LooksLike(ToolId),
    /// A text contained hidden or control characters, which have been escaped.
    Neutralised,
    /// A text was too long and has been truncated.
    Shortened,
    /// The schema was replaced by one that accepts any object.
    SchemaReplaced(SchemaError),
    /// The schema had alternatives or conditions at the top level, which have been merged into one object.
    SchemaFlattened,
    /// The schema refers to an external or missing schema, which is not fetched; escaped.
    ReferenceDropped(String),
    /// A keyword of the schema has an invalid value and has been removed.
    KeywordDropped(String),
    /// The name of an argument contains hidden or control characters and could not be changed; escaped.
    OddArgument(String),
    /// Withheld from models until a person releases it. Holds the reason, escaped.
    Quarantined(String),
}

/// Reason for replacing a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaError {
    /// The definition has no schema.
    Missing,
    /// The schema is invalid JSON or has a duplicate key.
    Invalid,
    /// The schema does not describe an object.
    NotObject,
    /// The schema has more than 256 KiB.
    TooLarge,
    /// The schema is nested more than 32 levels deep, or its chain of references is too long.
    TooDeep,
    /// The schema contains more than 5,000 schemas.
    TooMany,
    /// Validating arguments could take more than a million steps.
    TooCostly,
}

impl fmt::Display for ToolWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OddName => f.write_str("it has an odd name"),
            Self::LooksLike(other) => write!(f, "its name looks like {other}"),
            Self::Neutralised => f.write_str("it has hidden characters in its texts"),
            Self::Shortened => f.write_str("its texts were shortened"),
            Self::SchemaReplaced(fault) => write!(f, "its schema is not used: {fault}"),
            Self::SchemaFlattened => f.write_str("its schema was made into one plain object"),
            Self::ReferenceDropped(reference) => write!(f, "its schema refers to `{reference}`, which is not in it"),
            Self::KeywordDropped(keyword) => write!(f, "its schema has a `{keyword}` that means nothing"),
            Self::OddArgument(name) => write!(f, "its argument `{name}` has an odd name"),
            Self::Quarantined(reason) => write!(f, "it is quarantined: {reason}"),
        }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "there is none",
            Self::Invalid => "it is not valid",
            Self::NotObject => "it does not describe an object",
            Self::TooLarge => "it is too large",
            Self::TooDeep => "it is nested too deep",
            Self::TooMany => "it has too many parts",
            Self::TooCostly => "it is too costly to check",
        })
    }
}
