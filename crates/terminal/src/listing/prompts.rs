//! Prompts as they are listed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf_client::{CallError, Connection, Listing};
use wharf_wire::{PromptDefinition, ServerCapabilities};

use super::{ListItem, ServerList};
use crate::table::LabelRow;

/// JSON item of a prompt. Arguments are copied byte for byte.
#[derive(Serialize)]
struct Item<'a> {
    server: &'a str,
    name: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    arguments: Option<&'a RawValue>,
}

/// Members that a document copies unparsed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AsItCame<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl ListItem for PromptDefinition {
    const NOUN: &'static str = "prompt";

    /// Shows the name and the arguments, optional ones in brackets.
    fn row(&self) -> LabelRow {
        let mut label = self.name.clone();
        for argument in &self.arguments {
            let name = &argument.name;
            label.push_str(&if argument.required { format!(" {name}=") } else { format!(" [{name}=]") });
        }
        LabelRow::new(&label, self.description.as_deref().or(self.title.as_deref()))
    }

    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a {
        let AsItCame { arguments } = serde_json::from_str(self.raw.as_str()).unwrap_or_default();
        Item {
            server,
            name: &self.name,
            title: self.title.as_deref(),
            description: self.description.as_deref(),
            arguments,
        }
    }
}

impl ServerList for PromptDefinition {
    const TOOL: &'static str = "ListMcpPrompts";

    fn is_offered(offer: &ServerCapabilities) -> bool {
        offer.prompts
    }

    async fn list(connection: &Connection) -> Result<Listing<Self>, CallError> {
        connection.list_prompts().await
    }
}
