//! What can be wrong with an annotation or with a value, told without letting the server's words act.

use std::fmt;

use crate::DecodeError;

/// Characters of a server's name that are repeated to people.
const LONGEST_SHOWN: usize = 80;

/// Why a tool's header annotations cannot be followed. What it repeats of the schema is short and escaped.
#[derive(Debug)]
pub enum MirrorFault {
    /// The schema is too complex, or no JSON.
    Unreadable(DecodeError),
    /// The annotated schema is not one that a chain of `properties` leads to.
    OutOfReach {
        /// The keys that lead to it.
        property: String,
    },
    /// The annotation is something else than a string.
    NotText {
        /// The annotated property.
        property: String,
    },
    /// The annotation is the empty string.
    Empty {
        /// The annotated property.
        property: String,
    },
    /// The annotation has characters that no header's name has, or far too many of them.
    NotToken {
        /// The annotated property.
        property: String,
        /// The annotation.
        header: String,
    },
    /// The property's type is none of `string`, `integer` and `boolean`.
    Type {
        /// The annotated property.
        property: String,
    },
    /// Another property asks for the same header, perhaps in other case.
    Duplicate {
        /// The second of the two.
        property: String,
        /// What both ask for.
        header: String,
    },
    /// More properties are annotated than anybody sends headers.
    TooMany {
        /// How many may be.
        most: usize,
    },
}

/// Why an argument cannot be repeated in a header, and so why the call cannot be made.
#[derive(Debug)]
pub enum Unmirrorable {
    /// The arguments are too complex, no JSON, or have a key twice.
    Unreadable(DecodeError),
    /// The value is an object, an array or a fraction.
    Kind {
        /// The annotated property.
        property: String,
    },
    /// The integer is beyond ±(2^53 − 1).
    Range {
        /// The annotated property.
        property: String,
    },
}

/// The names that lead to a property, on their way to a person.
pub(super) fn property(path: &[impl AsRef<str>]) -> String {
    let mut shown = String::new();
    for name in path.iter().map(AsRef::as_ref) {
        if !shown.is_empty() {
            shown.push('.');
        }
        shown.push_str(name);
        // Enough for `shown` to see that something is missing.
        if shown.len() > 4 * LONGEST_SHOWN {
            break;
        }
    }
    self::shown(&shown)
}

/// A text of the server's, short and in ASCII.
pub(super) fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let head: String = characters.by_ref().take(LONGEST_SHOWN).flat_map(char::escape_default).collect();
    if characters.next().is_some() { head + "…" } else { head }
}

impl fmt::Display for MirrorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(_) => f.write_str("the input schema cannot be read"),
            Self::OutOfReach { property } => {
                write!(f, "`{property}` asks for a header where no plain property stands")
            }
            Self::NotText { property } => write!(f, "`{property}` asks for a header whose name is not a string"),
            Self::Empty { property } => write!(f, "`{property}` asks for a header without a name"),
            Self::NotToken { property, header } => {
                write!(f, "`{property}` asks for the header `{header}`, which is no name of a header")
            }
            Self::Type { property } => {
                write!(f, "`{property}` asks for a header but is not of type string, integer or boolean")
            }
            Self::Duplicate { property, header } => {
                write!(f, "`{property}` asks for the header `{header}`, as another property does")
            }
            Self::TooMany { most } => write!(f, "more than {most} properties ask for a header"),
        }
    }
}

impl std::error::Error for MirrorFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Unmirrorable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(_) => f.write_str("the arguments cannot be read"),
            Self::Kind { property } => {
                write!(f, "`{property}` goes into a header, so it must be a string, an integer, a boolean or null")
            }
            Self::Range { property } => {
                write!(f, "`{property}` goes into a header, so it must be within ±9007199254740991")
            }
        }
    }
}

impl std::error::Error for Unmirrorable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}
