//! A tool as people know it: whose it is, and what it is called there.

use std::fmt;
use std::sync::Arc;

use wharf::tools::{Found, Registry};
use wharf_spec::Shown;

/// Shows as `server.tool`, escaped.
pub struct ToolName<'a> {
    /// Its name in the registry.
    pub alias: &'a str,
    /// Whose it is; nobody's, where it is our own.
    pub server: Option<Arc<str>>,
    /// What its server calls it.
    pub name: Option<Arc<str>>,
}

impl<'a> ToolName<'a> {
    /// The tool of this name in a registry.
    pub fn of(registry: &Registry, alias: &'a str) -> Self {
        let snapshot = registry.snapshot();
        let origin = match snapshot.find(alias) {
            Found::One(tool) => tool.description().origin.clone(),
            _ => None,
        };
        let (server, name) = origin.map(|origin| (origin.provider, origin.name)).unzip();
        Self { alias, server, name }
    }
}

impl fmt::Display for ToolName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.server, &self.name) {
            (Some(server), Some(name)) => write!(f, "{}.{}", Shown::line(server, 64), Shown::line(name, 100)),
            _ => write!(f, "{}", Shown::line(self.alias, 100)),
        }
    }
}
