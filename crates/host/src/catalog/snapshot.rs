//! An immutable catalog of all servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use wharf_spec::{ServerName, ToolId};
use wharf_tools::{NameLookup, NameTable};

use super::ToolWarning;
use super::section::Section;
use super::server_lists::ListName;
use super::tool::CatalogTool;
use crate::uri_template::matches_any;

/// Snapshot of all servers' sections. Immutable: a change creates a new catalog that shares the unchanged sections.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Sorted by server.
    sections: Vec<Arc<Section>>,
    pub(super) names: NameTable<Arc<CatalogTool>>,
    version: u64,
}

impl Catalog {
    /// Returns a catalog in which this section replaces that of its server. Other sections are shared.
    pub fn with(&self, section: Arc<Section>) -> Self {
        self.with_all([section])
    }

    /// Returns a catalog with all of these sections, which is much cheaper than adding them one by one.
    pub fn with_all(&self, sections: impl IntoIterator<Item = Arc<Section>>) -> Self {
        let new: BTreeMap<ServerName, Arc<Section>> =
            sections.into_iter().map(|section| (section.server.clone(), section)).collect();
        let (old, kept): (Vec<_>, Vec<_>) =
            self.sections.iter().cloned().partition(|section| new.contains_key(&section.server));
        let names = self.update_names(&old, new.values().flat_map(|section| &section.tools));
        let mut sections: Vec<Arc<Section>> = kept.into_iter().chain(new.into_values()).collect();
        sections.sort_by(|one, other| one.server.cmp(&other.server));
        Self { sections, names, version: self.version + 1 }
    }

    /// Returns a catalog without a server's section.
    pub fn without(&self, server: &ServerName) -> Self {
        let Ok(at) = self.section_index(server.as_str()) else { return self.clone() };
        let mut sections = self.sections.clone();
        let old = sections.remove(at);
        let names = self.update_names(&[old], []);
        Self { sections, names, version: self.version + 1 }
    }

    /// Returns all sections, sorted by server.
    pub fn sections(&self) -> &[Arc<Section>] {
        &self.sections
    }

    /// Reports whether a server has resources or templates, or may have some that are not listed yet.
    pub(crate) fn has_resources(&self) -> bool {
        let is_unlisted = |list: &ListName| matches!(list, ListName::Resources | ListName::Templates);
        self.sections.iter().any(|section| {
            !section.resources.is_empty() || !section.templates.is_empty() || section.unasked.iter().any(is_unlisted)
        })
    }

    /// Reports whether a server has prompts, or may have some that are not listed yet.
    pub(crate) fn has_prompts(&self) -> bool {
        let is_unlisted = |section: &Section| section.unasked.contains(&ListName::Prompts);
        self.sections.iter().any(|section| !section.prompts.is_empty() || is_unlisted(section))
    }

    /// Returns a server's section.
    pub fn section(&self, server: &str) -> Option<&Arc<Section>> {
        self.section_index(server).ok().map(|at| &self.sections[at])
    }

    /// Returns all tools, sorted by server and by their names at the server.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<CatalogTool>> {
        self.sections.iter().flat_map(|section| &section.tools)
    }

    /// Returns the tools that a model may see, in the same order: neither quarantined nor with an ambiguous alias.
    pub fn visible_tools(&self) -> impl Iterator<Item = &Arc<CatalogTool>> {
        self.tools().filter(|tool| tool.quarantine().is_none() && self.by_alias(tool.alias()).is_some())
    }

    /// Returns a tool by its ID.
    pub fn tool(&self, id: &ToolId) -> Option<&Arc<CatalogTool>> {
        self.section(id.server.as_str())?.tool(&id.tool)
    }

    /// Returns the tool of an alias. An ambiguous alias has none.
    pub fn by_alias(&self, alias: &str) -> Option<&Arc<CatalogTool>> {
        if let NameLookup::One(tool) = self.names.find(alias) { Some(tool) } else { None }
    }

    /// Returns the first server with a resource template that a URI matches, or that is equal to it.
    pub fn template_server(&self, uri: &str) -> Option<ServerName> {
        let matches = |section: &&Arc<Section>| {
            let templates = || section.templates.iter().map(|template| template.uri_template.as_str());
            templates().any(|template| template == uri) || matches_any(uri, templates())
        };
        self.sections.iter().find(matches).map(|section| section.server.clone())
    }

    /// Returns the warnings about a tool, including those that concern other servers' tools.
    pub fn warnings_of(&self, tool: &CatalogTool) -> Vec<ToolWarning> {
        let others = self.tools().filter(|other| other.id.server != tool.id.server && tool.looks_like(other));
        // One example suffices.
        tool.marks.iter().cloned().chain(others.take(1).map(|other| ToolWarning::LooksLike(other.id.clone()))).collect()
    }

    /// Returns the number of changes that led to this catalog.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn section_index(&self, server: &str) -> Result<usize, usize> {
        self.sections.binary_search_by(|section| section.server.as_str().cmp(server))
    }

    /// Returns the name table without the names of some sections and with those of some tools.
    fn update_names<'a>(
        &'a self,
        old: &[Arc<Section>],
        new: impl IntoIterator<Item = &'a Arc<CatalogTool>>,
    ) -> NameTable<Arc<CatalogTool>> {
        let gone: Vec<&str> = old.iter().flat_map(|section| &section.tools).map(|tool| &**tool.alias()).collect();
        let shared = self.tools_sharing_names(old, &gone);
        let added = shared.into_iter().chain(new).map(|tool| (tool.alias().clone(), tool.clone()));
        // A single owner holds all names, so that many sections are one change of the table.
        self.names.with_changes(&"catalog".into(), gone.iter().copied(), added)
    }

    /// Returns the tools of other servers that share one of these names, which requires a hash collision.
    fn tools_sharing_names(&self, old: &[Arc<Section>], gone: &[&str]) -> Vec<&Arc<CatalogTool>> {
        let mut sharing: Vec<&Arc<CatalogTool>> = Vec::new();
        for name in gone {
            let NameLookup::Several(held) = self.names.find(name) else { continue };
            for tool in held.into_iter().map(|held| &held.value) {
                let stays = !old.iter().any(|section| section.server == tool.id.server);
                if stays && !sharing.iter().any(|known| Arc::ptr_eq(known, tool)) {
                    sharing.push(tool);
                }
            }
        }
        sharing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::fixture::section;

    fn aliases(catalog: &Catalog) -> Vec<String> {
        catalog.tools().map(|tool| tool.alias().to_string()).collect()
    }

    #[test]
    fn section_change_leaves_other_sections_untouched() {
        let before = ["b", "a", "c"].map(|server| section(server, &["y", "x"]));
        let catalog = before.iter().cloned().fold(Catalog::default(), |catalog, section| catalog.with(section));
        assert_eq!(aliases(&catalog), aliases(&Catalog::default().with_all(before)));
        assert_eq!(aliases(&catalog), ["mcp__a__x", "mcp__a__y", "mcp__b__x", "mcp__b__y", "mcp__c__x", "mcp__c__y"]);
        let changed = catalog.with(section("a", &["y", "z"]));
        assert_eq!((catalog.version(), changed.version()), (3, 4));
        for (one, other) in catalog.sections().iter().zip(changed.sections()) {
            assert_eq!(Arc::ptr_eq(one, other), one.server.as_str() != "a");
        }
        assert!(changed.by_alias("mcp__a__x").is_none() && catalog.by_alias("mcp__a__x").is_some());
        assert_eq!(&*changed.by_alias("mcp__a__z").unwrap().id.tool, "z");
        let less = changed.without(&ServerName::new("a").unwrap());
        assert_eq!(aliases(&less), ["mcp__b__x", "mcp__b__y", "mcp__c__x", "mcp__c__y"]);
        assert!(less.by_alias("mcp__a__z").is_none() && less.section("a").is_none());
        let same = less.without(&ServerName::new("a").unwrap());
        assert_eq!((less.version(), same.version()), (5, 5));
    }

    #[test]
    fn colliding_alias_resolves_to_no_tool() {
        // Forged, because finding a real hash collision takes too long for a test.
        let forged = |server: &str| {
            let mut tool = CatalogTool::clone(&section(server, &["x"]).tools[0]);
            Arc::make_mut(&mut tool.description).name = "mcp__same__x_12345678".into();
            let mut section = Arc::into_inner(section(server, &["y"])).unwrap();
            section.tools.insert(0, Arc::new(tool));
            Arc::new(section)
        };
        for order in [["a", "b"], ["b", "a"]] {
            let catalog = order.into_iter().fold(Catalog::default(), |catalog, server| catalog.with(forged(server)));
            assert!(catalog.by_alias("mcp__same__x_12345678").is_none());
            let offered: Vec<_> = catalog.visible_tools().map(|tool| tool.alias().to_string()).collect();
            assert_eq!(offered, ["mcp__a__y", "mcp__b__y"]);
            let three = catalog.with(forged("c"));
            for changed in [three.with(forged("a")), three.with_all(["a", "b"].map(forged))] {
                assert!(changed.by_alias("mcp__same__x_12345678").is_none());
            }
            let only = three.with_all(["a", "b"].map(|server| section(server, &["y"])));
            assert_eq!(only.by_alias("mcp__same__x_12345678").unwrap().id.server.as_str(), "c");
            let alone = catalog.without(&ServerName::new("b").unwrap());
            assert_eq!(alone.by_alias("mcp__same__x_12345678").unwrap().id.server.as_str(), "a");
        }
    }

    #[test]
    fn lookalikes_across_servers_are_marked() {
        let catalog =
            Catalog::default().with(section("a", &["search", "list"])).with(section("b", &["se\u{430}rch", "list"]));
        let marks = |server: &str, tool: &str| {
            let id = ToolId::new(&ServerName::new(server).unwrap(), tool);
            catalog.warnings_of(catalog.tool(&id).unwrap()).iter().map(ToolWarning::to_string).collect::<Vec<_>>()
        };
        assert_eq!(marks("a", "search"), ["name looks like b / se\u{430}rch"]);
        assert_eq!(marks("b", "se\u{430}rch"), ["irregular name", "name looks like a / search"]);
        assert_eq!((marks("a", "list"), marks("b", "list")), (vec![], vec![]));
    }

    #[test]
    fn quarantined_tools_are_listed_but_not_visible() {
        let mut quarantined = Arc::into_inner(section("a", &["good"])).unwrap();
        let mut bad = CatalogTool::clone(&section("a", &["bad"]).tools[0]);
        bad.marks.push(ToolWarning::Quarantined("it lies".to_owned()));
        quarantined.tools.insert(0, Arc::new(bad));
        let catalog = Catalog::default().with(Arc::new(quarantined));
        assert_eq!((catalog.tools().count(), catalog.visible_tools().count()), (2, 1));
    }
}
