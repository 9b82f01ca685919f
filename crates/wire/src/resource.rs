//! Resources and templates as a server describes them, and what reading one gives.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Bounds, ResourceContents, View};
use wharf_json::{DecodeError, Raw};

/// A resource in a server's list. Every string is untrusted.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Where it is read.
    pub uri: String,
    /// What the server calls it.
    pub name: String,
    /// What people should see instead.
    pub title: Option<String>,
    /// What it holds.
    pub description: Option<String>,
    /// What the server says it is.
    pub mime_type: Option<String>,
    /// The whole entry as it came.
    pub raw: Raw,
}

/// A family of resources: an RFC 6570 template to fill in.
#[derive(Debug, Clone)]
pub struct ResourceTemplate {
    /// The template.
    pub uri_template: String,
    /// What the server calls it.
    pub name: String,
    /// What people should see instead.
    pub title: Option<String>,
    /// What it holds.
    pub description: Option<String>,
    /// What the server says its members are.
    pub mime_type: Option<String>,
    /// The whole entry as it came.
    pub raw: Raw,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
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

fn missing(field: &str) -> DecodeError {
    DecodeError::Shape(serde::de::Error::custom(format!("no `{field}`")))
}

impl View for Resource {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        let Entry { uri, name, title, description, mime_type, .. } = raw.decode(bounds)?;
        let uri = uri.ok_or_else(|| missing("uri"))?;
        Ok(Self { uri, name, title, description, mime_type, raw })
    }
}

impl View for ResourceTemplate {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        let Entry { uri_template, name, title, description, mime_type, .. } = raw.decode(bounds)?;
        let uri_template = uri_template.ok_or_else(|| missing("uriTemplate"))?;
        Ok(Self { uri_template, name, title, description, mime_type, raw })
    }
}

/// What `resources/read` answered: one or several contents.
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// The contents in the server's order.
    pub contents: Vec<ResourceContents>,
    /// The contents array byte for byte.
    pub contents_raw: Raw,
    /// The whole result as it came.
    pub raw: Raw,
}

impl View for ReadResult {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Shape<'a> {
            #[serde(borrow)]
            contents: &'a RawValue,
        }
        let shape: Shape = raw.decode(bounds)?;
        let contents = serde_json::from_str(shape.contents.get()).map_err(DecodeError::Shape)?;
        Ok(Self { contents, contents_raw: raw.part(shape.contents), raw })
    }
}
