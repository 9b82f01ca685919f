//! Templates as they are listed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf_client::{CallError, Connection, Listing};
use wharf_wire::{ResourceTemplate, ServerCapabilities};

use super::{ListItem, ServerList};
use crate::table::LabelRow;

/// JSON item of a resource template.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    server: &'a str,
    uri_template: &'a str,
    name: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    mime_type: Option<&'a str>,
    annotations: Option<&'a RawValue>,
}

/// Members that a document copies unparsed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AsItCame<'a> {
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

impl ListItem for ResourceTemplate {
    const NOUN: &'static str = "template";

    fn row(&self) -> LabelRow {
        LabelRow::new(&self.uri_template, self.description.as_deref().or(self.title.as_deref()).or(Some(&self.name)))
    }

    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a {
        let AsItCame { annotations } = serde_json::from_str(self.raw.as_str()).unwrap_or_default();
        Item {
            server,
            uri_template: &self.uri_template,
            name: &self.name,
            title: self.title.as_deref(),
            description: self.description.as_deref(),
            mime_type: self.mime_type.as_deref(),
            annotations,
        }
    }
}

impl ServerList for ResourceTemplate {
    const TOOL: &'static str = "ListMcpResourceTemplates";

    fn is_offered(offer: &ServerCapabilities) -> bool {
        offer.resources
    }

    async fn list(connection: &Connection) -> Result<Listing<Self>, CallError> {
        connection.list_templates().await
    }
}
