//! The blocks an outcome is made of, and what of each is left where only text is possible.

use std::borrow::Cow;
use std::path::PathBuf;

use wharf_json::Raw;

use crate::Base64;
use crate::reference::Reference;

/// One block of an outcome. Strings are as the tool gave them: untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// The block as it came, where it came as JSON.
        raw: Option<Raw>,
    },
    /// A picture.
    Image {
        /// Its bytes.
        data: Base64,
        /// What the tool says it is.
        mime: String,
        /// The block as it came, where it came as JSON.
        raw: Option<Raw>,
    },
    /// Sound.
    Audio {
        /// Its bytes.
        data: Base64,
        /// What the tool says it is.
        mime: String,
        /// The block as it came, where it came as JSON.
        raw: Option<Raw>,
    },
    /// Something one may read elsewhere.
    Link {
        /// Where.
        uri: String,
        /// What it is called.
        name: Option<String>,
        /// What the tool says it is.
        mime: Option<String>,
        /// What the tool says it holds.
        description: Option<String>,
        /// How large the tool says it is, in bytes.
        size: Option<u64>,
        /// The block as it came, where it came as JSON.
        raw: Option<Raw>,
    },
    /// Something with an address, that comes along.
    Resource {
        /// Its address.
        uri: String,
        /// What the tool says it is.
        mime: Option<String>,
        /// What is in it.
        contents: Contents,
        /// The block as it came, where it came as JSON.
        raw: Option<Raw>,
    },
    /// What was too large to be passed on, and lies in a file now.
    File {
        /// Which file.
        path: PathBuf,
        /// What the tool says it is.
        mime: Option<String>,
        /// How large it is.
        bytes: u64,
        /// Why it is there, and what of it is shown before.
        note: String,
    },
    /// A kind unknown here. Kept, never an error.
    Other {
        /// What the tool calls it.
        kind: Option<String>,
        /// The block as it came.
        raw: Raw,
    },
}

/// What is in something that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Base64),
    /// Neither came along.
    Nothing,
}

impl Block {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), raw: None }
    }

    /// The block as it came, where it came as JSON.
    pub fn raw(&self) -> Option<&Raw> {
        match self {
            Self::Text { raw, .. }
            | Self::Image { raw, .. }
            | Self::Audio { raw, .. }
            | Self::Link { raw, .. }
            | Self::Resource { raw, .. } => raw.as_ref(),
            Self::File { .. } => None,
            Self::Other { raw, .. } => Some(raw),
        }
    }

    /// What is left of the block where only text is possible: its text as it is, or a reference with what is known of
    /// it in one bracketed line, escaped and bounded. A text that has an address comes below its reference.
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text { text, .. } => text.into(),
            Self::Resource { contents: Contents::Text(text), .. } => format!("[{}]\n{text}", Reference(self)).into(),
            _ => format!("[{}]", Reference(self)).into(),
        }
    }
}
