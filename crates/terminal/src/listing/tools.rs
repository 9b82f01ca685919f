//! Tools as they are listed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf::catalog::{CatalogTool, NameStyle, tool_names};
use wharf_wire::RawJson;

use super::ListItem;
use crate::table::LabelRow;

/// JSON item of a tool. Schemas and annotations are copied byte for byte.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    server: &'a str,
    name: &'a str,
    alias: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    input_schema: Option<&'a RawJson>,
    output_schema: Option<&'a RawJson>,
    annotations: Option<&'a RawValue>,
}

/// Members that a document copies unparsed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AsItCame<'a> {
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

/// Returns the displayed name of a tool if the setting `toolNames` gives it another than the usual one.
pub fn custom_name(tool: &CatalogTool) -> Option<&str> {
    let usual = tool_names(NameStyle::default(), &tool.id).shown;
    Some(&*tool.description.shown).filter(|shown| *shown != &*usual)
}

impl ListItem for Arc<CatalogTool> {
    const NOUN: &'static str = "tool";

    fn row(&self) -> LabelRow {
        let tool = &self.definition;
        let title = (tool.display_name() != tool.name).then(|| tool.display_name());
        LabelRow::new(custom_name(self).unwrap_or(&tool.name), tool.description.as_deref().or(title))
    }

    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a {
        let tool = &self.definition;
        let AsItCame { annotations } = serde_json::from_str(tool.raw.as_str()).unwrap_or_default();
        Item {
            server,
            name: &tool.name,
            alias: self.alias(),
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            input_schema: tool.input_schema.as_ref(),
            output_schema: tool.output_schema.as_ref(),
            annotations,
        }
    }
}
