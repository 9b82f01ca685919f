//! Sections for tests.

use std::sync::Arc;

use wharf_json::{JsonLimits, RawJson};
use wharf_spec::ServerName;
use wharf_wire::{ToolDefinition, View};

use super::{NameStyle, Section, SectionInput, ServerLists, ToolFilter};

pub(super) fn tool(text: &str) -> ToolDefinition {
    ToolDefinition::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default()).unwrap()
}

/// Creates tools that have the given names and accept any object.
pub(super) fn lists_with_tools(names: &[&str]) -> ServerLists {
    let named = |name: &&str| tool(&serde_json::json!({ "name": name, "inputSchema": {"type": "object"} }).to_string());
    ServerLists { tools: names.iter().map(named).collect(), ..ServerLists::default() }
}

pub(super) fn section(server: &str, tools: &[&str]) -> Arc<Section> {
    let server = &ServerName::new(server).unwrap();
    let (style, filter, listed) = (NameStyle::default(), &ToolFilter::default(), lists_with_tools(tools));
    Arc::new(Section::build(SectionInput { server, style, filter, trust: false, inspector: None, listed }))
}
