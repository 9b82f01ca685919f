//! Names of tools whose servers and authors mean no good: distinct, independent of order, and what providers take.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use wharf::catalog::{Catalog, NameStyle, Section, SectionInput, ServerLists, ToolFilter, tool_names};
use wharf_json::{JsonLimits, RawJson};
use wharf_spec::{ServerName, ToolId};
use wharf_wire::{ToolDefinition, View};

const STYLES: [NameStyle; 5] =
    [NameStyle::Double, NameStyle::Hashed, NameStyle::At, NameStyle::Colons, NameStyle::Single];

fn is_safe(alias: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&alias.len()) && alias.bytes().all(fits)
}

/// Checks that the names of distinct tools are distinct, both kinds, and fit for a model.
fn check(ids: &HashSet<ToolId>) {
    for style in STYLES {
        let (mut aliases, mut shown) = (BTreeMap::new(), BTreeMap::new());
        for id in ids {
            let names = tool_names(style, id);
            assert!(is_safe(&names.alias), "{style:?} {id}: {}", names.alias);
            assert!(!names.shown.contains(|it: char| it.is_whitespace() || it.is_control()), "{id}: {}", names.shown);
            if let Some(other) = aliases.insert(names.alias.clone(), id) {
                panic!("{style:?}: {id} and {other} are both {}", names.alias);
            }
            if let Some(other) = shown.insert(names.shown.clone(), id) {
                panic!("{style:?}: {id} and {other} are both shown as {}", names.shown);
            }
        }
    }
}

/// Every text of one to `longest` of these characters.
fn texts(characters: &[char], longest: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..longest {
        last = last.iter().flat_map(|text| characters.iter().map(move |it| format!("{text}{it}"))).collect();
        all.extend(last.iter().cloned());
    }
    all.split_off(1)
}

#[test]
fn short_names_are_distinct() {
    let servers = texts(&['a', '_', '-'], 3);
    let tools = texts(&['a', '_', ':', '@'], 4);
    let ids = servers.iter().flat_map(|server| {
        let server = ServerName::new(server).unwrap();
        tools.iter().map(move |tool| ToolId::new(&server, tool.as_str()))
    });
    check(&ids.collect());
}

/// A name that has a hash, spelt out by somebody else, is still somebody else's.
#[test]
fn name_with_a_copied_hash_stays_distinct() {
    for style in STYLES {
        let victim = ToolId::new(&ServerName::new("a").unwrap(), "b c");
        let alias = tool_names(style, &victim).alias;
        let mut ids = HashSet::from([victim]);
        for cut in 0..alias.len() {
            let (server, tool) = alias.split_at(cut);
            let tool = tool.trim_start_matches('_');
            let Ok(server) = ServerName::new(server.trim_start_matches("mcp").trim_matches('_')) else { continue };
            ids.insert(ToolId::new(&server, tool));
        }
        assert!(ids.len() > 10);
        check(&ids);
    }
}

fn hostile_server() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c_-]{1,6}", "[a-zA-Z0-9_-]{1,64}", "(a|A|_|__|a_b){1,5}", "[a-b]{60,64}", "[a-c]{1,3}_[0-9a-f]{8}",]
        .prop_filter("a name", |name| ServerName::new(name).is_ok())
}

fn hostile_tool() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a_]{1,4}",
        "[a-c_.:@/-]{1,6}",
        "[a-zA-Z0-9_.-]{1,128}",
        "(search|Search|s\u{435}arch|search\u{200b}|search |search\u{202e}|SEARCH)",
        "[a-c]{1,3}_[0-9a-f]{8}",
        "mcp__[a-c_]{1,4}__[a-c_]{1,4}",
        "[a-b]{100,300}",
        "\\PC{1,20}",
        any::<String>().prop_filter("not empty", |name| !name.is_empty()),
    ]
}

fn hostile() -> impl Strategy<Value = HashSet<ToolId>> {
    prop::collection::hash_set((hostile_server(), hostile_tool()), 1..60).prop_map(|pairs| {
        pairs.iter().map(|(server, tool)| ToolId::new(&ServerName::new(server).unwrap(), tool.as_str())).collect()
    })
}

fn section(server: &ServerName, style: NameStyle, tools: &[&ToolId]) -> Arc<Section> {
    let definition = |id: &&ToolId| {
        let text =
            RawJson::from_value(&serde_json::json!({ "name": &*id.tool, "inputSchema": {"type": "object"} })).unwrap();
        ToolDefinition::from_raw(text, &JsonLimits::default()).unwrap()
    };
    let listed = ServerLists { tools: tools.iter().map(definition).collect(), ..ServerLists::default() };
    let filter = &ToolFilter::default();
    Arc::new(Section::build(SectionInput { server, style, filter, trust: false, inspector: None, listed }))
}

fn catalog(ids: &[&ToolId], style: NameStyle) -> Catalog {
    let mut servers: Vec<(&ServerName, Vec<&ToolId>)> = Vec::new();
    for id in ids {
        match servers.iter_mut().find(|(server, _)| **server == id.server) {
            Some((_, tools)) => tools.push(id),
            None => servers.push((&id.server, vec![id])),
        }
    }
    let sections = servers.iter().map(|(server, tools)| section(server, style, tools));
    sections.fold(Catalog::default(), |catalog, section| catalog.with(section))
}

#[test]
fn shown_name_resolves_to_its_own_tool() {
    let pairs = [("z", "x::y"), ("x", "y@z"), ("x", "y"), ("z", "y"), ("_a", "_\u{fc}"), ("a", "\u{fc}"), ("x", ":y")];
    let ids = pairs.map(|(server, tool)| ToolId::new(&ServerName::new(server).unwrap(), tool));
    for style in STYLES {
        let catalog = catalog(&ids.each_ref(), style);
        for id in &ids {
            let shown = &catalog.tool(id).unwrap().description.shown;
            assert_eq!(catalog.resolve(shown).map(|tool| &tool.id), Ok(id), "{style:?} {shown}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn hostile_names_are_distinct_and_safe(ids in hostile()) {
        check(&ids);
    }

    #[test]
    fn catalog_names_do_not_depend_on_order(
        ids in hostile(),
        style in prop::sample::select(&STYLES[..]),
        seed in any::<u64>(),
    ) {
        let mut ordered: Vec<&ToolId> = ids.iter().collect();
        ordered.sort();
        let mut mixed = ordered.clone();
        mixed.sort_by_key(|id| (id.tool.len() as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (one, other) = (catalog(&ordered, style), catalog(&mixed, style));
        prop_assert_eq!(one.tools().count(), ids.len());
        for id in &ids {
            let tool = one.tool(id).unwrap();
            prop_assert_eq!(tool.alias(), other.tool(id).unwrap().alias());
            for catalog in [&one, &other] {
                prop_assert_eq!(&catalog.by_alias(tool.alias()).unwrap().id, id);
                prop_assert_eq!(&catalog.resolve(&tool.description.shown).unwrap().id, id);
            }
            let alone = catalog(&[id], style);
            prop_assert_eq!(alone.tools().next().unwrap().alias(), tool.alias());
        }
    }
}
