//! The catalog as clients see it: names across all servers, and lists that are encoded once.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;
use serde_json::json;
use wharf::RawJson;
use wharf::catalog::{Catalog, Section};
use wharf::spec::{ServerName, ToolId};
use wharf::wire::{JsonLimits, object_members};

use crate::client_view::{ToolSurface, ViewOptions};
use crate::tool_search::{SearchedTool, ToolSearch};

/// Maximum number of entries on a page.
const MAX_PAGE_ENTRIES: usize = 1000;

/// Names of tools and prompts at the gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NameScheme {
    /// `<server>__<name>`
    #[default]
    Server,
    /// The server's own name. Where two servers use the same one, the first server in alphabetical order has it.
    Plain,
}

/// All lists of one version of the catalog.
pub(crate) struct CatalogView {
    /// Version of the catalog.
    pub version: u64,
    pub tools: EntryList,
    pub prompts: EntryList,
    pub resources: EntryList,
    pub templates: EntryList,
    /// Finds the tools, if clients do not see all of them.
    pub search: Option<Arc<ToolSearch>>,
    tool_ids: HashMap<String, (ToolId, Option<RawJson>)>,
    prompt_ids: HashMap<String, (ServerName, String)>,
    /// The server of each listed URI, and the URI there.
    resource_ids: HashMap<String, (ServerName, String)>,
}

/// The encoded entries of a list.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct EntryList(Vec<Bytes>);

/// A page of a list.
pub(crate) struct EntryPage<'a> {
    pub entries: &'a [Bytes],
    pub next_cursor: Option<String>,
}

impl CatalogView {
    /// Creates the lists. Calls of the servers in `task_servers` can become tasks.
    pub fn new(catalog: &Catalog, options: &ViewOptions, task_servers: &[ServerName]) -> Self {
        let names = options.names;
        let mut view = Self {
            version: catalog.version(),
            tools: EntryList::default(),
            prompts: EntryList::default(),
            resources: EntryList::default(),
            templates: EntryList::default(),
            search: None,
            tool_ids: HashMap::new(),
            prompt_ids: HashMap::new(),
            resource_ids: HashMap::new(),
        };
        let mut searched = Vec::new();
        for tool in catalog.visible_tools() {
            if !options.profile.offers_tool(&tool.id) {
                continue;
            }
            let name = match names {
                // The alias is unique over all servers. Clients have a prefix of their own.
                NameScheme::Server => tool.alias().strip_prefix("mcp__").unwrap_or(tool.alias()).to_owned(),
                NameScheme::Plain => tool.definition.name.clone(),
            };
            if view.tool_ids.contains_key(&name) {
                continue;
            }
            let Some(entry) = with_member(&tool.definition.raw, "name", &name) else { continue };
            let is_new = memmem::find(&entry, b"\"execution\"").is_none();
            let entry =
                if is_new && task_servers.contains(&tool.id.server) { with_task_support(&entry) } else { entry };
            if options.surface == ToolSurface::Search {
                let (name, tool, definition) = (name.clone(), Arc::clone(tool), entry.clone());
                searched.push(SearchedTool { name, tool, definition });
            }
            view.tools.0.push(entry);
            view.tool_ids.insert(name, (tool.id.clone(), tool.definition.input_schema.clone()));
        }
        if options.surface == ToolSurface::Search {
            let search = Arc::new(ToolSearch::new(searched));
            view.tools = EntryList(search.definitions());
            view.search = Some(search);
        }
        let sections = catalog.sections().iter().filter(|section| options.profile.offers_server(&section.server));
        sections.for_each(|section| view.add_section(section, names));
        view
    }

    fn add_section(&mut self, section: &Section, names: NameScheme) {
        for prompt in &section.prompts {
            let name = match names {
                NameScheme::Server => format!("{}__{}", section.server, prompt.name),
                NameScheme::Plain => prompt.name.clone(),
            };
            if self.prompt_ids.contains_key(&name) {
                continue;
            }
            if let Some(entry) = with_member(&prompt.raw, "name", &name) {
                self.prompts.0.push(entry);
                self.prompt_ids.insert(name, (section.server.clone(), prompt.name.clone()));
            }
        }
        for resource in &section.resources {
            // The same URI of a second server is offered under another one.
            let is_taken = self.resource_ids.contains_key(&resource.uri);
            let uri = if is_taken { format!("{}+{}", section.server, resource.uri) } else { resource.uri.clone() };
            if self.resource_ids.contains_key(&uri) {
                continue;
            }
            if let Some(entry) = with_member(&resource.raw, "uri", &uri) {
                self.resources.0.push(entry);
                self.resource_ids.insert(uri, (section.server.clone(), resource.uri.clone()));
            }
        }
        self.templates
            .0
            .extend(section.templates.iter().map(|template| Bytes::copy_from_slice(template.raw.as_bytes())));
    }

    /// Returns a tool by its name at the gateway.
    pub fn tool(&self, name: &str) -> Option<&ToolId> {
        self.tool_ids.get(name).map(|(id, _)| id)
    }

    /// Returns the input schema of a tool.
    pub fn input_schema(&self, name: &str) -> Option<RawJson> {
        self.tool_ids.get(name)?.1.clone()
    }

    /// Returns a prompt by its name at the gateway: its server, and its name there.
    pub fn prompt(&self, name: &str) -> Option<&(ServerName, String)> {
        self.prompt_ids.get(name)
    }

    /// Returns the server of a listed resource, and its URI there.
    pub fn resource(&self, uri: &str) -> Option<&(ServerName, String)> {
        self.resource_ids.get(uri)
    }
}

impl EntryList {
    /// Returns the page of a cursor, or the first one. `None` if the cursor is invalid.
    pub fn page(&self, cursor: Option<&str>) -> Option<EntryPage<'_>> {
        let start = match cursor {
            None => 0,
            Some(cursor) => cursor.strip_prefix("after-")?.parse().ok().filter(|start| *start <= self.0.len())?,
        };
        let end = self.0.len().min(start + MAX_PAGE_ENTRIES);
        let next_cursor = (end < self.0.len()).then(|| format!("after-{end}"));
        Some(EntryPage { entries: &self.0[start..end], next_cursor })
    }
}

/// Says in the words of 2025-11-25 that calls of a tool can become tasks. In later revisions that is a matter of the
/// server.
fn with_task_support(tool: &Bytes) -> Bytes {
    let tool = tool.strip_suffix(b"}").unwrap_or(tool);
    [tool, br#","execution":{"taskSupport":"optional"}}"#].concat().into()
}

/// Returns an object with one member replaced and all others as they are. `None` if it is not an object.
fn with_member(object: &RawJson, name: &str, value: &str) -> Option<Bytes> {
    let members = object_members(object, &JsonLimits::default()).ok()?;
    let mut text = format!("{{{}:{}", json!(name), json!(value));
    for (key, member) in &members {
        if key != name {
            text.push(',');
            text.push_str(&json!(key).to_string());
            text.push(':');
            text.push_str(member.as_str());
        }
    }
    text.push('}');
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_member_leaves_the_others_as_they_are() {
        let raw = RawJson::new_unchecked(r#"{"x":1e400,"name":"a","y":{"name":"b"}}"#);
        assert_eq!(with_member(&raw, "name", "s__a").unwrap(), r#"{"name":"s__a","x":1e400,"y":{"name":"b"}}"#);
    }

    #[test]
    fn pages_follow_their_cursors() {
        let list = EntryList((0..2500).map(|number| Bytes::from(number.to_string())).collect());
        let (mut found, mut cursor) = (0, None);
        loop {
            let page = list.page(cursor.as_deref()).unwrap();
            found += page.entries.len();
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(found, 2500);
        assert!(list.page(Some("after-2501")).is_none() && list.page(Some("nonsense")).is_none());
    }
}
