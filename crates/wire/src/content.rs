//! Content blocks of tool results and prompts.

use serde::Deserialize;
use serde_json::value::RawValue;

use wharf_json::RawJson;

/// One content block, with its raw JSON.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Content {
    /// A text block.
    Text {
        /// The text.
        text: String,
        /// The block as received.
        raw: RawJson,
    },
    /// An image, Base64-encoded in `data`.
    Image {
        /// Base64 text, not decoded here.
        data: String,
        /// MIME type declared by the server.
        mime_type: String,
        /// The block as received.
        raw: RawJson,
    },
    /// Audio, Base64-encoded in `data`.
    Audio {
        /// Base64 text, not decoded here.
        data: String,
        /// MIME type declared by the server.
        mime_type: String,
        /// The block as received.
        raw: RawJson,
    },
    /// A link to a resource.
    ResourceLink {
        /// URI of the resource.
        uri: String,
        /// Name of the resource.
        name: Option<String>,
        /// MIME type declared by the server.
        mime_type: Option<String>,
        /// The block as received.
        raw: RawJson,
    },
    /// An embedded resource.
    Resource {
        /// The resource.
        resource: ResourceContents,
        /// The block as received.
        raw: RawJson,
    },
    /// An unknown kind of block, or a known kind without its required fields. It is preserved, not an error.
    Unknown {
        /// The value of `type`, if present.
        kind: Option<String>,
        /// The block as received.
        raw: RawJson,
    },
}

/// Text or binary contents of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceContents {
    /// URI of the resource.
    pub uri: String,
    /// MIME type declared by the server.
    pub mime_type: Option<String>,
    /// The text, for a text resource.
    pub text: Option<String>,
    /// The bytes in Base64, for a binary resource.
    pub blob: Option<String>,
}

impl Content {
    /// Reads a block. A block that is not understood becomes [`Content::Unknown`].
    pub fn view(raw: RawJson) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct WireContentBlock<'a> {
            r#type: Option<String>,
            text: Option<String>,
            data: Option<String>,
            mime_type: Option<String>,
            uri: Option<String>,
            name: Option<String>,
            #[serde(borrow)]
            resource: Option<&'a RawValue>,
        }
        let shape: WireContentBlock = raw.decode_unbounded().unwrap_or_default();
        let WireContentBlock { r#type: kind, text, data, mime_type, uri, name, resource } = shape;
        match (kind.as_deref(), text, data, mime_type, uri) {
            (Some("text"), Some(text), ..) => Self::Text { text, raw },
            (Some("image"), _, Some(data), Some(mime_type), _) => Self::Image { data, mime_type, raw },
            (Some("audio"), _, Some(data), Some(mime_type), _) => Self::Audio { data, mime_type, raw },
            (Some("resource_link"), _, _, mime_type, Some(uri)) => Self::ResourceLink { uri, name, mime_type, raw },
            (Some("resource"), ..) => match resource.map(|resource| raw.slice_part(resource).decode_unbounded()) {
                Some(Ok(resource)) => Self::Resource { resource, raw },
                _ => Self::Unknown { kind, raw },
            },
            _ => Self::Unknown { kind, raw },
        }
    }

    /// Returns the block as received.
    pub fn raw(&self) -> &RawJson {
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
    fn every_content_kind_preserves_its_bytes() {
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
            let block = Content::view(RawJson::parse(text).unwrap());
            let found = match block {
                Content::Text { .. } => "text",
                Content::Image { .. } => "image",
                Content::Audio { .. } => "audio",
                Content::ResourceLink { .. } => "link",
                Content::Resource { .. } => "resource",
                Content::Unknown { .. } => "unknown",
            };
            assert_eq!(found, kind, "{text}");
            assert_eq!(block.raw().as_str(), text);
        }
    }
}
