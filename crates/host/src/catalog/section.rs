//! The catalog section of one server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wharf_client::WithheldEntry;
use wharf_spec::{Glob, ServerName, UntrustedText};
use wharf_wire::{PromptDefinition, Resource, ResourceTemplate, ToolDefinition};

use super::server_lists::{ListFreshness, ListName, ServerLists};
use super::tool::{CatalogTool, SectionContext, sanitize_into};
use super::{INSTRUCTIONS, NameStyle, ToolFilter, ToolWarning};

/// Tools, resources and prompts of one server, prepared for use. Immutable: a new list creates a new section.
#[derive(Debug)]
#[non_exhaustive]
pub struct Section {
    /// The server.
    pub server: ServerName,
    /// Allows the server's tools unless a rule says otherwise.
    pub trust: bool,
    /// Tools, sorted by their names at the server. Names are unique.
    pub tools: Vec<Arc<CatalogTool>>,
    /// Resources in the server's order. All strings are untrusted.
    pub resources: Vec<Resource>,
    /// Resource templates in the server's order. All strings are untrusted.
    pub templates: Vec<ResourceTemplate>,
    /// Prompts in the server's order. All strings are untrusted.
    pub prompts: Vec<PromptDefinition>,
    /// Instructions for a model, sanitized and truncated. Passing them on is optional.
    pub instructions: Option<String>,
    /// Listed entries that cannot be used.
    pub withheld: Vec<(ListName, WithheldEntry)>,
    /// Number of tools excluded by the filter.
    pub filtered: usize,
    /// Globs of the filter that match no tool.
    pub unmatched: Vec<Glob>,
    /// Lists that could not be read, with the error (escaped).
    pub failures: Vec<(ListName, String)>,
    /// Lists that have not been requested. They are empty here, regardless of their content at the server.
    pub unasked: Vec<ListName>,
    /// Age of the section.
    pub freshness: ListFreshness,
}

/// Inspects a definition. Returns the reason for quarantining it, if there is one; escaped.
pub type ToolInspector<'a> = &'a dyn Fn(&ToolDefinition) -> Option<String>;

/// Input of [`Section::build`].
pub struct SectionInput<'a> {
    /// The server.
    pub server: &'a ServerName,
    /// Naming style of the tools.
    pub style: NameStyle,
    /// Filter of the tools.
    pub filter: &'a ToolFilter,
    /// Allows the server's tools unless a rule says otherwise.
    pub trust: bool,
    /// Inspector that decides about quarantine. Without it no tool is quarantined.
    pub inspector: Option<ToolInspector<'a>>,
    /// Lists of the server.
    pub listed: ServerLists,
}

impl Section {
    /// Builds a section from a server's lists. An unusable tool is withheld and does not affect the others.
    pub fn build(parts: SectionInput<'_>) -> Self {
        let SectionInput { server, style, filter, trust, inspector, listed } = parts;
        let ServerLists {
            tools,
            resources,
            templates,
            prompts,
            instructions,
            mut withheld,
            failures,
            unasked,
            freshness,
        } = listed;
        // A list that could not be read proves nothing about the globs.
        let unmatched = match failures.iter().any(|(list, _)| *list == ListName::Tools) {
            true => Vec::new(),
            false => filter.unmatched_globs(tools.iter().map(|tool| tool.name.as_str())),
        };
        let found = tools.len();
        let placed = with_positions(tools, &withheld).filter(|(_, tool)| filter.admits(&tool.name)).collect::<Vec<_>>();
        let filtered = found - placed.len();
        let making = SectionContext { server, provider: server.as_str().into(), style, freshness };
        let tools = build_tools(&making, placed, inspector, &mut withheld);
        let instructions = instructions.map(|text| sanitize_into(&text, INSTRUCTIONS, &mut Vec::new()));
        Self {
            server: server.clone(),
            trust,
            tools,
            resources,
            templates,
            prompts,
            instructions,
            withheld,
            filtered,
            unmatched,
            failures,
            unasked,
            freshness,
        }
    }

    /// Returns a tool by its name at the server.
    pub fn tool(&self, name: &str) -> Option<&Arc<CatalogTool>> {
        let place = self.tools.binary_search_by(|tool| (*tool.id.tool).cmp(name)).ok()?;
        self.tools.get(place)
    }
}

/// Pairs each tool with its position in the server's list, from which withheld entries have been removed already.
fn with_positions(
    tools: Vec<ToolDefinition>,
    withheld: &[(ListName, WithheldEntry)],
) -> impl Iterator<Item = (usize, ToolDefinition)> + use<> {
    let of_tools = withheld.iter().filter(|(list, _)| *list == ListName::Tools);
    let missing: HashSet<usize> = of_tools.map(|(_, item)| item.position).collect();
    (0..).filter(move |position| !missing.contains(position)).zip(tools)
}

fn build_tools(
    making: &SectionContext<'_>,
    placed: Vec<(usize, ToolDefinition)>,
    inspector: Option<ToolInspector<'_>>,
    withheld: &mut Vec<(ListName, WithheldEntry)>,
) -> Vec<Arc<CatalogTool>> {
    let made = placed.into_iter().map(|(position, definition)| (position, CatalogTool::new(making, definition)));
    let mut tools = withhold_duplicates(made.collect(), withheld);
    tools.sort_by(|one, other| one.id.tool.cmp(&other.id.tool));
    mark_look_alikes(&mut tools);
    if let Some(inspector) = inspector {
        for tool in &mut tools {
            tool.marks.extend(inspector(&tool.definition).map(ToolWarning::Quarantined));
        }
    }
    tools.into_iter().map(Arc::new).collect()
}

/// Withholds all tools that share an alias, regardless of order: tools of the same name, and hash collisions.
fn withhold_duplicates(
    made: Vec<(usize, CatalogTool)>,
    withheld: &mut Vec<(ListName, WithheldEntry)>,
) -> Vec<CatalogTool> {
    let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
    for (_, tool) in &made {
        *counts.entry(tool.alias().clone()).or_default() += 1;
    }
    let mut single = Vec::with_capacity(made.len());
    for (position, tool) in made {
        if counts[tool.alias()] == 1 {
            single.push(tool);
            continue;
        }
        let name = Some(UntrustedText::new(&*tool.id.tool).truncate(100).to_string());
        let reason = "duplicate tool name at the server".to_owned();
        withheld.push((ListName::Tools, WithheldEntry { position, name, reason }));
    }
    single
}

fn mark_look_alikes(tools: &mut [CatalogTool]) {
    let mut alike: HashMap<Box<str>, Vec<usize>> = HashMap::new();
    for (place, tool) in tools.iter().enumerate() {
        alike.entry(tool.skeleton.clone()).or_default().push(place);
    }
    for places in alike.into_values().filter(|places| places.len() > 1) {
        for (nth, place) in places.iter().enumerate() {
            // One example suffices: there may be hundreds.
            let other = tools[places[usize::from(nth == 0)]].id.clone();
            tools[*place].marks.push(ToolWarning::LooksLike(other));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use wharf_tools::{PermissionRequirement, ToolHints, ToolRisk};

    use super::*;
    use crate::catalog::fixture::{lists_with_tools, tool};

    fn section(listed: ServerLists, filter: &ToolFilter, inspector: Option<ToolInspector<'_>>) -> Section {
        let server = &ServerName::new("git").unwrap();
        let style = NameStyle::Double;
        Section::build(SectionInput { server, style, filter, trust: false, inspector, listed })
    }

    fn build_unfiltered(listed: ServerLists) -> Section {
        section(listed, &ToolFilter::default(), None)
    }

    fn names(section: &Section) -> Vec<&str> {
        section.tools.iter().map(|tool| &*tool.id.tool).collect()
    }

    #[test]
    fn tool_description_has_origin_and_no_hidden_text() {
        let definition = r#"{"name":"log","title":"Lo\u202eg","description":"Shows\u200b commits.","inputSchema":
            {"anyOf":[{}]},"annotations":{"readOnlyHint":true,"destructiveHint":true},"x-own":1}"#;
        let section = build_unfiltered(ServerLists { tools: vec![tool(definition)], ..ServerLists::default() });
        let log = section.tool("log").unwrap();
        let description = &log.description;
        assert_eq!((&*description.name, &*description.shown), ("mcp__git__log", "mcp__git__log"));
        assert_eq!(description.text, "[git: log]\nShows\\u{200b} commits.");
        assert_eq!(description.title.as_deref(), Some("Lo\\u{202e}g"));
        assert_eq!(description.schema.as_str(), r#"{"type":"object","properties":{}}"#);
        assert_eq!((description.risk, description.permission), (ToolRisk::High, PermissionRequirement::Needed));
        let source = description.source.as_ref().unwrap();
        assert_eq!((&*source.provider, &*source.name, source.fingerprint), ("git", "log", log.fingerprint));
        assert_eq!(log.marks, [ToolWarning::SchemaFlattened, ToolWarning::Neutralised]);
        assert!(log.definition.raw.as_str().contains("x-own") && section.tool("lo").is_none());
    }

    #[test]
    fn duplicate_tools_are_all_withheld() {
        let mut listed = lists_with_tools(&["b", "a", "b", "c", "b"]);
        let malformed = |position| WithheldEntry { position, name: None, reason: "no name".to_owned() };
        listed.withheld = vec![(ListName::Tools, malformed(1)), (ListName::Prompts, malformed(0))];
        let section = build_unfiltered(listed);
        assert_eq!(names(&section), ["a", "c"]);
        let withheld: Vec<_> = section.withheld.iter().map(|(list, item)| (*list, item.position)).collect();
        let of_tools = |position| (ListName::Tools, position);
        assert_eq!(withheld, [of_tools(1), (ListName::Prompts, 0), of_tools(0), of_tools(3), of_tools(5)]);
    }

    #[test]
    fn irregular_and_lookalike_names_are_marked() {
        let section = build_unfiltered(lists_with_tools(&[
            "search",
            "se\u{430}rch",
            "Search",
            "search ",
            "search\u{200b}",
            "other",
            "a b",
        ]));
        let marks = |name: &str| section.tool(name).unwrap().marks.clone();
        let like = |name: &str| ToolWarning::LooksLike(wharf_spec::ToolId::new(&section.server, name));
        assert_eq!(marks("other"), []);
        assert_eq!(marks("a b"), [ToolWarning::OddName]);
        assert_eq!(marks("Search"), [like("search")]);
        assert_eq!(marks("search"), [like("Search")]);
        for odd in ["se\u{430}rch", "search ", "search\u{200b}"] {
            assert_eq!(marks(odd), [ToolWarning::OddName, like("Search")], "{odd:?}");
        }
    }

    #[test]
    fn filter_excludes_tools_and_inspector_quarantines() {
        let filter = ToolFilter { include: None, exclude: vec![Glob::new("w*"), Glob::new("nope")] };
        let inspector = |tool: &ToolDefinition| (tool.name == "bad").then(|| "it lies".to_owned());
        let section = section(lists_with_tools(&["bad", "write", "good"]), &filter, Some(&inspector));
        assert_eq!((names(&section), section.filtered), (vec!["bad", "good"], 1));
        assert_eq!(section.unmatched, [Glob::new("nope")]);
        let failed =
            ServerLists { failures: vec![(ListName::Tools, "timed out".to_owned())], ..ServerLists::default() };
        assert_eq!(self::section(failed, &filter, None).unmatched, []);
        let quarantine = |name: &str| section.tool(name).unwrap().quarantine().map(str::to_owned);
        assert_eq!((quarantine("bad"), quarantine("good")), (Some("it lies".to_owned()), None));
    }

    #[test]
    fn cached_hints_keep_only_cautious_values() {
        let claims = |value: bool| {
            let hints =
                ["readOnly", "destructive", "idempotent", "openWorld"].map(|hint| format!(r#""{hint}Hint":{value}"#));
            tool(&format!(r#"{{"name":"a","annotations":{{{}}}}}"#, hints.join(",")))
        };
        let hints = |value: bool, freshness: ListFreshness| {
            let listed = ServerLists { tools: vec![claims(value)], freshness, ..ServerLists::default() };
            build_unfiltered(listed).tools[0].description.hints
        };
        let all = |value: bool| ToolHints {
            read_only: Some(value),
            destructive: Some(value),
            idempotent: Some(value),
            open_world: Some(value),
        };
        let kept = ListFreshness::Kept { at: SystemTime::UNIX_EPOCH };
        assert_eq!((hints(true, ListFreshness::Live), hints(false, ListFreshness::Live)), (all(true), all(false)));
        assert_eq!(hints(true, kept), ToolHints { read_only: None, idempotent: None, ..all(true) });
        assert_eq!(hints(false, kept), ToolHints { destructive: None, open_world: None, ..all(false) });
    }
}
