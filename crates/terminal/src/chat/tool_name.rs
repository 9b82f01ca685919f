//! Display names of tools: the server and the tool's name there.

use std::fmt;
use std::sync::Arc;

use wharf::tools::{NameLookup, Registry};
use wharf_spec::EscapedText;

/// A tool's display name. Formats as escaped `server.tool`.
pub struct ToolDisplayName<'a> {
    /// The tool's name in the registry.
    pub alias: &'a str,
    /// The tool's server, or `None` for a built-in tool.
    pub server: Option<Arc<str>>,
    /// The tool's name on its server.
    pub name: Option<Arc<str>>,
}

impl<'a> ToolDisplayName<'a> {
    /// Looks up a tool in a registry by its alias.
    pub fn from_registry(registry: &Registry, alias: &'a str) -> Self {
        let snapshot = registry.snapshot();
        let source = match snapshot.find(alias) {
            NameLookup::One(tool) => tool.description().source.clone(),
            _ => None,
        };
        let (server, name) = source.map(|source| (source.provider, source.name)).unzip();
        Self { alias, server, name }
    }
}

impl fmt::Display for ToolDisplayName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.server, &self.name) {
            (Some(server), Some(name)) => {
                write!(f, "{}.{}", EscapedText::single_line(server, 64), EscapedText::single_line(name, 100))
            }
            _ => write!(f, "{}", EscapedText::single_line(self.alias, 100)),
        }
    }
}
