//! `wharf tools --withheld`: the tools that no model sees, with the reasons.

use std::sync::Arc;

use serde::Serialize;
use wharf::catalog::{CatalogTool, ListName, Section};
use wharf_client::{Connection, WithheldEntry};
use wharf_spec::UntrustedText;
use wharf_wire::RawJson;

use wharf_terminal::definition_review::release_command;
use wharf_terminal::listing::{ListItem, ServerItems};
use wharf_terminal::table::LabelRow;

/// A tool that is withheld.
pub enum WithheldTool {
    /// Its definition seems to give orders to the model. A person can release it.
    Quarantined(Arc<CatalogTool>),
    /// Its definition cannot be used.
    Unusable(WithheldEntry),
}

#[derive(Serialize)]
struct WithheldDocument<'a> {
    server: &'a str,
    name: Option<&'a str>,
    reason: &'a str,
    releasable: bool,
    digest: Option<String>,
    definition: Option<&'a RawJson>,
}

impl ListItem for WithheldTool {
    const NOUN: &'static str = "withheld tool";

    fn row(&self) -> LabelRow {
        let name = self
            .name()
            .map_or_else(|| "(without a name)".to_owned(), |name| UntrustedText::new(name).truncate(100).to_string());
        // The reason is escaped already.
        LabelRow { label: name, about: self.reason().to_owned() }
    }

    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a {
        let tool = match self {
            Self::Quarantined(tool) => Some(tool),
            Self::Unusable(_) => None,
        };
        WithheldDocument {
            server,
            name: self.name(),
            reason: self.reason(),
            releasable: tool.is_some(),
            digest: tool.map(|tool| tool.fingerprint.to_string()),
            definition: tool.map(|tool| &tool.definition.raw),
        }
    }
}

impl WithheldTool {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Quarantined(tool) => Some(&tool.id.tool),
            Self::Unusable(entry) => entry.name.as_deref(),
        }
    }

    fn reason(&self) -> &str {
        match self {
            Self::Quarantined(tool) => tool.quarantine().unwrap_or_default(),
            Self::Unusable(entry) => &entry.reason,
        }
    }
}

/// Returns the withheld tools of one server.
pub fn withheld_tools(connection: &Connection, section: Option<&Section>) -> ServerItems<WithheldTool> {
    let quarantined = section.into_iter().flat_map(|section| &section.tools);
    let quarantined = quarantined.filter(|tool| tool.quarantine().is_some()).cloned().map(WithheldTool::Quarantined);
    let unusable = section.into_iter().flat_map(|section| &section.withheld);
    let unusable = unusable.filter(|(list, _)| *list == ListName::Tools);
    let unusable = unusable.map(|(_, entry)| WithheldTool::Unusable(entry.clone()));
    ServerItems {
        facts: connection.facts().clone(),
        is_offered: connection.facts().capabilities.tools,
        items: quarantined.chain(unusable).collect(),
        withheld: Vec::new(),
        ranks: Vec::new(),
        below: next_step,
    }
}

/// Returns the line below a withheld tool: the command that releases it, or who can change it.
fn next_step(tool: &WithheldTool) -> String {
    match tool {
        WithheldTool::Quarantined(tool) => format!("      {}\n", release_command(&tool.id)),
        WithheldTool::Unusable(_) => "      its server has to correct the definition\n".to_owned(),
    }
}
