//! Content blocks of an outcome, and their text rendering.

use std::borrow::Cow;
use std::path::PathBuf;

use wharf_json::RawJson;

use crate::Base64Text;
use crate::block_reference::BlockReference;

/// One content block of an outcome. Strings are verbatim from the tool: untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutcomeBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// The original JSON of the block, if it arrived as JSON.
        raw: Option<RawJson>,
    },
    /// An image.
    Image {
        /// The image bytes.
        data: Base64Text,
        /// MIME type declared by the tool.
        mime: String,
        /// The original JSON of the block, if it arrived as JSON.
        raw: Option<RawJson>,
    },
    /// Audio.
    Audio {
        /// The audio bytes.
        data: Base64Text,
        /// MIME type declared by the tool.
        mime: String,
        /// The original JSON of the block, if it arrived as JSON.
        raw: Option<RawJson>,
    },
    /// A link to a resource whose contents are not included.
    Link {
        /// URI of the resource.
        uri: String,
        /// Name of the resource.
        name: Option<String>,
        /// MIME type declared by the tool.
        mime: Option<String>,
        /// Description given by the tool.
        description: Option<String>,
        /// Size in bytes declared by the tool.
        size: Option<u64>,
        /// The original JSON of the block, if it arrived as JSON.
        raw: Option<RawJson>,
    },
    /// A resource with its contents included.
    Resource {
        /// URI of the resource.
        uri: String,
        /// MIME type declared by the tool.
        mime: Option<String>,
        /// The included contents.
        contents: EmbeddedContents,
        /// The original JSON of the block, if it arrived as JSON.
        raw: Option<RawJson>,
    },
    /// Content that was too large to pass on and was written to a file.
    File {
        /// Path of the file.
        path: PathBuf,
        /// MIME type declared by the tool.
        mime: Option<String>,
        /// File size in bytes.
        bytes: u64,
        /// Explains why the content is in a file and which part of the content precedes this block.
        note: String,
    },
    /// A block of unknown type, preserved as received. Never an error.
    Other {
        /// Block type named by the tool.
        kind: Option<String>,
        /// The original JSON of the block.
        raw: RawJson,
    },
}

/// Contents of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbeddedContents {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Base64Text),
    /// The resource has neither text nor bytes.
    Nothing,
}

impl OutcomeBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), raw: None }
    }

    /// Returns the original JSON of the block, if it arrived as JSON.
    pub fn raw(&self) -> Option<&RawJson> {
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

    /// Renders the block as text: a text block verbatim, any other block as one bracketed reference line, escaped and
    /// bounded. The text of a resource follows below its reference line.
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text { text, .. } => text.into(),
            Self::Resource { contents: EmbeddedContents::Text(text), .. } => {
                format!("[{}]\n{text}", BlockReference(self)).into()
            }
            _ => format!("[{}]", BlockReference(self)).into(),
        }
    }
}
