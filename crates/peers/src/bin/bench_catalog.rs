//! Benchmark of the catalog of many servers: merge, name lookup and replacement of one server, each compared with a
//! plain `HashMap` from names to tools. Prints one line of figures.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and panics on errors"
)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wharf::catalog::{Catalog, CatalogTool, NameStyle, Section, SectionInput, ServerLists, ToolFilter};
use wharf_json::{JsonLimits, RawJson};
use wharf_spec::{ServerName, ToolId};
use wharf_wire::{ToolDefinition, View};

const SERVERS: usize = 200;
const TOOLS: usize = 50;

/// Index of the server that is replaced by a new version.
const CHANGED_SERVER: usize = SERVERS / 2;

type PlainCatalog = HashMap<String, Arc<CatalogTool>>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let time = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => 0.5,
        ["--secs", seconds] => seconds.parse().expect("--secs takes a number"),
        other => panic!("flags: [--secs SECONDS], not {other:?}"),
    };
    let time = Duration::from_secs_f64(time);
    let listed = tool_listing(1);
    let sections: Vec<Arc<Section>> = (0..SERVERS).map(|server| section(server, &listed)).collect();
    let (catalog, plain) = (merge_all(&sections), plain_catalog(&sections));
    let (names, ids) = (names(&sections), ids(&sections));
    let changed = section(CHANGED_SERVER, &tool_listing(2));
    check(&catalog, &changed, &names);
    let each = |total: f64| total / names.len() as f64;
    let figures = json!({
        "servers": SERVERS,
        "tools": TOOLS,
        "section_us": median(time, || section(CHANGED_SERVER, &listed)) / 1e3,
        "merge_us": median(time, || merge_all(&sections)) / 1e3,
        "grow_us": median(time, || merge_one_by_one(&sections)) / 1e3,
        "plain_merge_us": median(time, || plain_catalog(&sections)) / 1e3,
        "find_ns": each(median(time, || names.iter().filter(|name| catalog.by_alias(name).is_some()).count())),
        "plain_find_ns": each(median(time, || names.iter().filter(|name| plain.contains_key(**name)).count())),
        "id_ns": each(median(time, || ids.iter().filter(|id| catalog.tool(id).is_some()).count())),
        "change_us": median(time, || catalog.with(changed.clone())) / 1e3,
        "plain_change_us": median(time, || replace_in_plain(&plain, &sections[CHANGED_SERVER], &changed)) / 1e3,
    });
    println!("{figures}");
}

fn section(server: usize, listed: &ServerLists) -> Arc<Section> {
    let server = &ServerName::new(&format!("server-{server:03}")).unwrap();
    let (style, filter, listed) = (NameStyle::Double, &ToolFilter::default(), listed.clone());
    Arc::new(Section::build(SectionInput { server, style, filter, trust: false, inspector: None, listed }))
}

/// Returns the tool listing of one server.
fn tool_listing(version: usize) -> ServerLists {
    let definition = |tool: usize| {
        let text = json!({
            "name": format!("tool_number_{tool}"),
            "description": format!("Does the {tool}th thing that version {version} of the server can do for you."),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Where the thing is." },
                    "count": { "type": "integer", "minimum": 0 },
                    "how": { "enum": ["slowly", "fast"], "default": "fast" },
                },
                "required": ["path"],
            },
        });
        ToolDefinition::from_raw(RawJson::from_value(&text).unwrap(), &JsonLimits::default()).unwrap()
    };
    ServerLists { tools: (0..TOOLS).map(definition).collect(), ..ServerLists::default() }
}

fn merge_all(sections: &[Arc<Section>]) -> Catalog {
    Catalog::default().with_all(sections.iter().cloned())
}

/// Builds the catalog one server at a time, as if each published when it became ready.
fn merge_one_by_one(sections: &[Arc<Section>]) -> Catalog {
    sections.iter().fold(Catalog::default(), |catalog, section| catalog.with(section.clone()))
}

fn plain_catalog(sections: &[Arc<Section>]) -> PlainCatalog {
    let tools = sections.iter().flat_map(|section| &section.tools);
    tools.map(|tool| (tool.alias().to_string(), tool.clone())).collect()
}

/// Copies the map and changes the copy, as concurrent readers require.
fn replace_in_plain(plain: &PlainCatalog, old: &Section, new: &Section) -> PlainCatalog {
    let mut changed = plain.clone();
    for tool in &old.tools {
        changed.remove(&**tool.alias());
    }
    changed.extend(new.tools.iter().map(|tool| (tool.alias().to_string(), tool.clone())));
    changed
}

/// Returns every name, in an order unrelated to either table.
fn names(sections: &[Arc<Section>]) -> Vec<&str> {
    shuffled_tools(sections).map(|tool| &**tool.alias()).collect()
}

fn ids(sections: &[Arc<Section>]) -> Vec<&ToolId> {
    shuffled_tools(sections).map(|tool| &tool.id).collect()
}

fn shuffled_tools(sections: &[Arc<Section>]) -> impl Iterator<Item = &Arc<CatalogTool>> {
    // The step is coprime to the number of tools.
    (0..SERVERS * TOOLS).map(|n| n * 7_919 % (SERVERS * TOOLS)).map(|at| &sections[at / TOOLS].tools[at % TOOLS])
}

/// Checks that replacing one server shares the sections of all others, and that every name is found.
fn check(catalog: &Catalog, changed: &Arc<Section>, names: &[&str]) {
    let after = catalog.with(changed.clone());
    let pairs = catalog.sections().iter().zip(after.sections());
    assert_eq!(pairs.filter(|(one, other)| Arc::ptr_eq(one, other)).count(), SERVERS - 1);
    for name in names {
        let (before, after) = (catalog.by_alias(name).unwrap(), after.by_alias(name).unwrap());
        assert_eq!(Arc::ptr_eq(before, after), before.id.server != changed.server);
    }
}

/// Returns the median duration in nanoseconds, over as many runs as fit into `time`.
fn median<T>(time: Duration, mut work: impl FnMut() -> T) -> f64 {
    let begun = Instant::now();
    let mut taken = Vec::new();
    while taken.len() < 5 || begun.elapsed() < time {
        let start = Instant::now();
        let made = black_box(work());
        taken.push(start.elapsed());
        drop(made);
    }
    taken.sort_unstable();
    taken[taken.len() / 2].as_nanos() as f64
}
