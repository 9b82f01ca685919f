//! Resource and template definitions, and the result of `resources/read`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{JsonLimits, ResourceContents, View};
use wharf_json::{JsonDecodeError, RawJson};

/// A resource in a server's list. Every string is untrusted.
#[derive(Debug, Clone)]
pub struct Resource {
    /// URI of the resource.
    pub uri: String,
    /// Name of the resource.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description of the resource.
    pub description: Option<String>,
    /// MIME type declared by the server.
    pub mime_type: Option<String>,
    /// The complete entry as received.
    pub raw: RawJson,
}

/// A resource template: an RFC 6570 URI template.
#[derive(Debug, Clone)]
pub struct ResourceTemplate {
    /// The URI template.
    pub uri_template: String,
    /// Name of the template.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description of the resources.
    pub description: Option<String>,
    /// MIME type of the resources, declared by the server.
    pub mime_type: Option<String>,
    /// The complete entry as received.
    pub raw: RawJson,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResourceEntry {
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    uri_template: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
}

fn missing_field(field: &str) -> JsonDecodeError {
    JsonDecodeError::Shape(serde::de::Error::custom(format!("missing field `{field}`")))
}

impl View for Resource {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        let WireResourceEntry { uri, name, title, description, mime_type, .. } = raw.decode(bounds)?;
        let uri = uri.ok_or_else(|| missing_field("uri"))?;
        Ok(Self { uri, name, title, description, mime_type, raw })
    }
}

impl View for ResourceTemplate {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        let WireResourceEntry { uri_template, name, title, description, mime_type, .. } = raw.decode(bounds)?;
        let uri_template = uri_template.ok_or_else(|| missing_field("uriTemplate"))?;
        Ok(Self { uri_template, name, title, description, mime_type, raw })
    }
}

/// The result of `resources/read`: one or more contents.
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// The contents in the server's order.
    pub contents: Vec<ResourceContents>,
    /// The contents array byte for byte.
    pub contents_raw: RawJson,
    /// The complete result as received.
    pub raw: RawJson,
}

impl View for ReadResult {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        struct Shape<'a> {
            #[serde(borrow)]
            contents: &'a RawValue,
        }
        let shape: Shape = raw.decode(bounds)?;
        let contents_raw = raw.slice_part(shape.contents);
        Ok(Self { contents: contents_raw.decode_unbounded()?, contents_raw, raw })
    }
}
