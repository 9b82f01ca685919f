//! Sections for tests.

use std::sync::Arc;

use wharf_json::{JsonLimits, RawJson};
use wharf_spec::ServerName;
use wharf_wire::{ToolDefinition, View};

use super::{Filter, Listed, NameStyle, Section, SectionInput};

pub(super) fn tool(text: &str) -> ToolDefinition {
    ToolDefinition::view(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default()).unwrap()
}

/// Creates tools that have the given names and accept any object.
pub(super) fn listed(names: &[&str]) -> Listed {
    let named = |name: &&str| tool(&serde_json::json!({ "name": name, "inputSchema": {"type": "object"} }).to_string());
    Listed { tools: names.iter().map(named).collect(), ..Listed::default() }
}

pub(super) fn section(server: &str, tools: &[&str]) -> Arc<Section> {
    let server = &ServerName::new(server).unwrap();
    let (style, filter, listed) = (NameStyle::default(), &Filter::default(), listed(tools));
    Arc::new(Section::build(SectionInput { server, style, filter, trust: false, inspector: None, listed }))
}
