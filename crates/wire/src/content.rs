//! The blocks answers and prompts are made of.

use serde::Deserialize;
use serde_json::value::RawValue;

use wharf_json::Raw;

/// One block, with the raw text it came as.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// The block as it came.
        raw: Raw,
    },
    /// A picture, Base64 in `data`.
    Image {
        /// Base64 text, not decoded here.
        data: String,
        /// What the server says it is.
        mime_type: String,
        /// The block as it came.
        raw: Raw,
    },
    /// Sound, Base64 in `data`.
    Audio {
        /// Base64 text, not decoded here.
        data: String,
        /// What the server says it is.
        mime_type: String,
        /// The block as it came.
        raw: Raw,
    },
    /// A resource one may read.
    ResourceLink {
        /// Where.
        uri: String,
        /// What it is called.
        name: Option<String>,
        /// What the server says it is.
        mime_type: Option<String>,
        /// The block as it came.
        raw: Raw,
    },
    /// A resource that comes along.
    Resource {
        /// The resource.
        resource: ResourceContents,
        /// The block as it came.
        raw: Raw,
    },
    /// A kind unknown here, or a known one without what it needs. Kept, never an error.
    Unknown {
        /// Its `type`, where it has one.
        kind: Option<String>,
        /// The block as it came.
        raw: Raw,
    },
}

/// The text or the bytes of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceContents {
    /// Where it is.
    pub uri: String,
    /// What the server says it is.
    pub mime_type: Option<String>,
    /// Its text, or
    pub text: Option<String>,
    /// its bytes in Base64.
    pub blob: Option<String>,
}

impl Content {
    /// Reads a block; one that is not understood becomes [`Content::Unknown`].
    pub fn view(raw: Raw) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Shape<'a> {
            r#type: Option<String>,
            text: Option<String>,
            data: Option<String>,
            mime_type: Option<String>,
            uri: Option<String>,
            name: Option<String>,
            #[serde(borrow)]
            resource: Option<&'a RawValue>,
        }
        let shape: Shape = serde_json::from_slice(raw.as_bytes()).unwrap_or_default();
        let Shape { r#type: kind, text, data, mime_type, uri, name, resource } = shape;
        match (kind.as_deref(), text, data, mime_type, uri) {
            (Some("text"), Some(text), ..) => Self::Text { text, raw },
            (Some("image"), _, Some(data), Some(mime_type), _) => Self::Image { data, mime_type, raw },
            (Some("audio"), _, Some(data), Some(mime_type), _) => Self::Audio { data, mime_type, raw },
            (Some("resource_link"), _, _, mime_type, Some(uri)) => Self::ResourceLink { uri, name, mime_type, raw },
            (Some("resource"), ..) => match resource.map(|resource| serde_json::from_str(resource.get())) {
                Some(Ok(resource)) => Self::Resource { resource, raw },
                _ => Self::Unknown { kind, raw },
            },
            _ => Self::Unknown { kind, raw },
        }
    }

    /// The block as it came.
    pub fn raw(&self) -> &Raw {
        match self {
            Self::Text { raw, .. }
            | Self::Image { raw, .. }
            | Self::Audio { raw, .. }
            | Self::ResourceLink { raw, .. }
            | Self::Resource { raw, .. }
            | Self::Unknown { raw, .. } => raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_kept() {
        for (text, kind) in [
            (r#"{"type":"text","text":"a"}"#, "text"),
            (r#"{"type":"image","data":"","mimeType":"image/png"}"#, "image"),
            (r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#, "audio"),
            (r#"{"type":"resource_link","uri":"a:b","name":"n"}"#, "link"),
            (r#"{"type":"resource","resource":{"uri":"a:b","text":"t"}}"#, "resource"),
            (r#"{"type":"hologram","n":12345678901234567890123}"#, "unknown"),
            (r#"{"type":"image","data":""}"#, "unknown"),
            (r#"{"type":"resource"}"#, "unknown"),
            (r#"{"type":7}"#, "unknown"),
            ("[]", "unknown"),
        ] {
            let block = Content::view(Raw::parse(text).unwrap());
            let found = match block {
                Content::Text { .. } => "text",
                Content::Image { .. } => "image",
                Content::Audio { .. } => "audio",
                Content::ResourceLink { .. } => "link",
                Content::Resource { .. } => "resource",
                Content::Unknown { .. } => "unknown",
            };
            assert_eq!(found, kind, "{text}");
            assert_eq!(block.raw().get(), text);
        }
    }
}
