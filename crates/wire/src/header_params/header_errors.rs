//! Errors of annotations and values. Text from the server is shortened and escaped.

use std::fmt;

use crate::JsonDecodeError;

/// Maximum characters of server text in an error message.
const MAX_QUOTED_CHARS: usize = 80;

/// An invalid header annotation of a tool. Quoted parts of the schema are short and escaped.
#[derive(Debug)]
pub enum HeaderAnnotationError {
    /// The schema is too complex, or not valid JSON.
    Unreadable(JsonDecodeError),
    /// The annotated schema is not reachable through `properties` alone.
    OutOfReach {
        /// Path of keys to the schema.
        property: String,
    },
    /// The annotation is not a string.
    NotText {
        /// The annotated property.
        property: String,
    },
    /// The annotation is the empty string.
    Empty {
        /// The annotated property.
        property: String,
    },
    /// The annotation is not a valid header name, or too long.
    NotToken {
        /// The annotated property.
        property: String,
        /// The annotation.
        header: String,
    },
    /// The property's type is not `string`, `integer` or `boolean`.
    Type {
        /// The annotated property.
        property: String,
    },
    /// Another property requests the same header, ignoring case.
    Duplicate {
        /// The second of the two properties.
        property: String,
        /// The requested header.
        header: String,
    },
    /// More properties are annotated than the limit.
    TooMany {
        /// Maximum number of annotated properties.
        most: usize,
    },
}

/// The reason an argument cannot be sent in a header. The call fails.
#[derive(Debug)]
pub enum HeaderValueError {
    /// The arguments are too complex, not valid JSON, or contain a duplicate key.
    Unreadable(JsonDecodeError),
    /// The value is an object, an array or a fraction.
    Kind {
        /// The annotated property.
        property: String,
    },
    /// The integer is outside ±(2^53 − 1).
    Range {
        /// The annotated property.
        property: String,
    },
}

/// Formats a property path for display.
pub(super) fn format_path(path: &[impl AsRef<str>]) -> String {
    let mut shown = String::new();
    for name in path.iter().map(AsRef::as_ref) {
        if !shown.is_empty() {
            shown.push('.');
        }
        shown.push_str(name);
        // Enough for `shown` to detect the truncation.
        if shown.len() > 4 * MAX_QUOTED_CHARS {
            break;
        }
    }
    escape_short(&shown)
}

/// Shortens a server's text and escapes it to ASCII.
pub(super) fn escape_short(text: &str) -> String {
    let mut characters = text.chars();
    let head: String = characters.by_ref().take(MAX_QUOTED_CHARS).flat_map(char::escape_default).collect();
    if characters.next().is_some() { head + "…" } else { head }
}

impl fmt::Display for HeaderAnnotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(_) => f.write_str("the input schema cannot be read"),
            Self::OutOfReach { property } => {
                write!(f, "header annotation at `{property}`, which is not a plain property")
            }
            Self::NotText { property } => write!(f, "header annotation of `{property}` is not a string"),
            Self::Empty { property } => write!(f, "header annotation of `{property}` is empty"),
            Self::NotToken { property, header } => {
                write!(f, "header annotation of `{property}`: `{header}` is not a valid header name")
            }
            Self::Type { property } => {
                write!(f, "header annotation of `{property}`: the type must be string, integer or boolean")
            }
            Self::Duplicate { property, header } => {
                write!(f, "header annotation of `{property}`: `{header}` is already used by another property")
            }
            Self::TooMany { most } => write!(f, "more than {most} properties have a header annotation"),
        }
    }
}

impl std::error::Error for HeaderAnnotationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for HeaderValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(_) => f.write_str("the arguments cannot be read"),
            Self::Kind { property } => {
                write!(f, "`{property}` is sent in a header and must be a string, an integer, a boolean or null")
            }
            Self::Range { property } => {
                write!(f, "`{property}` is sent in a header and must be within ±9007199254740991")
            }
        }
    }
}

impl std::error::Error for HeaderValueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}
