//! What is odd about a tool, for whoever looks at it.

use std::fmt;

use wharf_spec::ToolId;

/// Something about a tool that a person should know. None of them by itself withholds it but [`Mark::Quarantined`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark {
    /// Its name is not one to 128 of `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`; models know it by another.
    OddName,
    /// Its name looks like that of another tool, and is not the same.
    LooksLike(ToolId),
    /// Something in its texts was hidden or acted, and has been made visible.
    Neutralised,
    /// One of its texts was too long and has been cut.
    Shortened,
    /// Its schema is not what a model gets; that is one which takes any object.
    SchemaReplaced(SchemaFault),
    /// Its schema had alternatives or conditions at the top, which have been put into one plain object.
    SchemaFlattened,
    /// Its schema refers to something that is not in it, which nobody fetches; escaped.
    ReferenceDropped(String),
    /// A keyword of its schema holds something it cannot hold, and is not given to a model.
    KeywordDropped(String),
    /// The name of an argument has hidden or acting characters in it, and had to stay as it is; escaped.
    OddArgument(String),
    /// It is kept from models until a person releases it, for this reason; escaped.
    Quarantined(String),
}

/// Why a schema is not given to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaFault {
    /// There is none.
    Missing,
    /// It is not JSON, or a key stands twice in it.
    Invalid,
    /// It does not describe an object.
    NotObject,
    /// It has more than 256 KiB.
    TooLarge,
    /// Its schemas are nested more than 32 deep, or refer to each other in too long a chain.
    TooDeep,
    /// It has more than 5,000 schemas in it.
    TooMany,
    /// Checking arguments against it could take more than a million steps.
    TooCostly,
}

impl fmt::Display for Mark {
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

impl fmt::Display for SchemaFault {
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
