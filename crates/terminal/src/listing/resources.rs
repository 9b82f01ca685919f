//! Resources as they are listed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf_client::{CallError, Connection, Listing};
use wharf_wire::{Resource, ServerCapabilities};

use super::{ListItem, ServerList};
use crate::table::LabelRow;

/// JSON item of a resource.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    server: &'a str,
    uri: &'a str,
    name: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    mime_type: Option<&'a str>,
    size: Option<&'a RawValue>,
    annotations: Option<&'a RawValue>,
}

/// Members that a document copies unparsed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AsItCame<'a> {
    #[serde(borrow)]
    size: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

impl ListItem for Resource {
    const NOUN: &'static str = "resource";

    fn row(&self) -> LabelRow {
        LabelRow::new(&self.uri, self.description.as_deref().or(self.title.as_deref()).or(Some(&self.name)))
    }

    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a {
        let AsItCame { size, annotations } = serde_json::from_str(self.raw.as_str()).unwrap_or_default();
        Item {
            server,
            uri: &self.uri,
            name: &self.name,
            title: self.title.as_deref(),
            description: self.description.as_deref(),
            mime_type: self.mime_type.as_deref(),
            size,
            annotations,
        }
    }
}

impl ServerList for Resource {
    const TOOL: &'static str = "ListMcpResources";

    fn is_offered(offer: &ServerCapabilities) -> bool {
        offer.resources
    }

    async fn list(connection: &Connection) -> Result<Listing<Self>, CallError> {
        connection.list_resources().await
    }
}
