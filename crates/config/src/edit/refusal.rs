//! Why a text is not edited.

use crate::tree::Position;

/// Why a text is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not JSON with comments.
    #[error("cannot be read: {text}")]
    Unreadable {
        /// Where it goes wrong.
        at: Position,
        /// What is wrong.
        text: String,
    },
    /// It is not UTF-8.
    #[error("is not UTF-8 but {what}")]
    NotText {
        /// What it seems to be.
        what: &'static str,
    },
    /// It is YAML or TOML, which is read and never edited.
    #[error("is {format}, which is only read")]
    Format {
        /// Which.
        format: &'static str,
    },
    /// A key stands there twice, so that nobody can say which is meant.
    #[error("`{}` stands there twice, the first time at {first}", wharf_spec::Untrusted::new(key.as_str()))]
    Duplicate {
        /// Which.
        key: String,
        /// Where it stands first.
        first: Position,
        /// Where it stands again.
        second: Position,
    },
    /// A newer Wharf has written it.
    #[error("says `{key}: {found}`, and only 1 is known here")]
    Newer {
        /// Where it says so.
        at: Position,
        /// `version` or `schema`.
        key: String,
        /// What it says.
        found: u64,
    },
    /// Something on the way to what is to be changed is of another kind.
    #[error("{} is not {expected}", wharf_spec::Untrusted::new(what.as_str()))]
    Unlike {
        /// Where it stands.
        at: Position,
        /// What it is called.
        what: String,
        /// What it has to be.
        expected: &'static str,
    },
}

impl Refusal {
    /// Where in the text.
    pub fn at(&self) -> Position {
        match self {
            Self::Unreadable { at, .. } | Self::Newer { at, .. } | Self::Unlike { at, .. } => *at,
            Self::Duplicate { second, .. } => *second,
            Self::NotText { .. } | Self::Format { .. } => Position::START,
        }
    }

    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "repair the file by hand; it was not touched",
            Self::NotText { .. } => "save the file as UTF-8",
            Self::Format { .. } => "edit it by hand, or keep these servers in a JSON file",
            Self::Duplicate { .. } => "remove or rename one of the two",
            Self::Newer { .. } => "edit it with the newer Wharf that wrote it, or by hand",
            Self::Unlike { .. } => "correct it by hand; the file was not touched",
        }
    }
}
