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
#[non_exhaustive]
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
            Self::OddName => f.write_str("irregular name"),
            Self::LooksLike(other) => write!(f, "name looks like {other}"),
            Self::Neutralised => f.write_str("hidden characters in its texts were escaped"),
            Self::Shortened => f.write_str("texts were truncated"),
            Self::SchemaReplaced(fault) => write!(f, "schema was replaced: {fault}"),
            Self::SchemaFlattened => f.write_str("schema was flattened into one object"),
            Self::ReferenceDropped(reference) => {
                write!(f, "schema reference `{reference}` was dropped (not in the schema)")
            }
            Self::KeywordDropped(keyword) => write!(f, "schema keyword `{keyword}` was dropped (invalid value)"),
            Self::OddArgument(name) => write!(f, "argument `{name}` has an irregular name"),
            Self::Quarantined(reason) => write!(f, "quarantined: {reason}"),
        }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::NotObject => "not an object schema",
            Self::TooLarge => "too large",
            Self::TooDeep => "nested too deeply",
            Self::TooMany => "too many subschemas",
            Self::TooCostly => "too costly to validate",
        })
    }
}
