//! Reasons for which a text cannot be edited.

use crate::tree::TextPosition;

/// Reason for which a text is left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditRefusal {
    /// The text is not valid JSON with comments.
    #[error("cannot be parsed: {text}")]
    Unreadable {
        /// Position of the error.
        at: TextPosition,
        /// Description of the error.
        text: String,
    },
    /// The text is not UTF-8.
    #[error("is not UTF-8 (detected: {what})")]
    NotText {
        /// Detected encoding.
        what: &'static str,
    },
    /// The file is YAML or TOML, which is supported for reading only.
    #[error("is {format}, which Wharf can read but not edit")]
    Format {
        /// Name of the format.
        format: &'static str,
    },
    /// A key occurs twice, so the edit would be ambiguous.
    #[error("`{}` occurs twice, first at {first}", wharf_spec::UntrustedText::new(key.as_str()))]
    Duplicate {
        /// The key.
        key: String,
        /// First position.
        first: TextPosition,
        /// Second position.
        second: TextPosition,
    },
    /// The text was written by a newer version of Wharf.
    #[error("has `{key}: {found}`, but this version supports only 1")]
    Newer {
        /// Position of the version number.
        at: TextPosition,
        /// `version` or `schema`.
        key: String,
        /// Version found.
        found: u64,
    },
    /// A value on the path has the wrong type.
    #[error("{} is not {expected}", wharf_spec::UntrustedText::new(what.as_str()))]
    Unlike {
        /// Position of the value.
        at: TextPosition,
        /// Name of the value.
        what: String,
        /// Expected type.
        expected: &'static str,
    },
}

impl EditRefusal {
    /// Returns the position in the text.
    pub fn position(&self) -> TextPosition {
        match self {
            Self::Unreadable { at, .. } | Self::Newer { at, .. } | Self::Unlike { at, .. } => *at,
            Self::Duplicate { second, .. } => *second,
            Self::NotText { .. } | Self::Format { .. } => TextPosition::START,
        }
    }

    /// Returns a suggested fix.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "fix the file manually. It was not changed",
            Self::NotText { .. } => "save the file as UTF-8",
            Self::Format { .. } => "edit it manually, or move these servers to a JSON file",
            Self::Duplicate { .. } => "remove or rename one of the two",
            Self::Newer { .. } => "edit it with the newer version of Wharf that wrote it, or manually",
            Self::Unlike { .. } => "correct it manually. The file was not changed",
        }
    }
}
