use std::sync::Arc;

use proptest::prelude::*;
use wharf_tools::{AllowAllGate, NameLookup, Registry, RegistryCallError, Tool, WithheldReason};

use crate::fixture::{Sign, call, names};

fn registry(tools: &[(&str, &str)]) -> Registry {
    let registry = Registry::new(Arc::new(AllowAllGate));
    tools.iter().for_each(|(provider, name)| registry.register(Sign::new(provider, name, provider)));
    registry
}

fn tools(provider: &str, names: &[&str]) -> Vec<Arc<dyn Tool>> {
    names.iter().map(|name| Sign::new(provider, name, provider) as Arc<dyn Tool>).collect()
}

#[test]
fn tools_are_added_and_removed_per_provider() {
    let registry = registry(&[("files", "read"), ("", "Bash"), ("files", "write")]);
    let before = registry.snapshot();
    assert_eq!(names(&before), ["Bash", "read", "write"]);
    registry.replace_provider("files", tools("files", &["write", "append"]));
    assert_eq!(names(&registry.snapshot()), ["Bash", "append", "write"]);
    assert!(registry.remove("append"));
    assert!(!registry.remove("append"));
    registry.replace_provider("files", vec![]);
    assert_eq!(names(&registry.snapshot()), ["Bash"]);
    assert_eq!(names(&before), ["Bash", "read", "write"], "whoever holds a snapshot sees the same tools");
    assert!(matches!(before.find("read"), NameLookup::One(tool) if tool.description().provider() == "files"));
}

#[test]
fn only_changes_create_snapshots() {
    let registry = registry(&[]);
    let mut changes = registry.subscribe_versions();
    assert_eq!((*changes.borrow_and_update(), registry.snapshot().version()), (0, 0));
    registry.remove("nothing");
    registry.replace_provider("nobody", vec![]);
    assert!(!changes.has_changed().unwrap());
    registry.register(Sign::new("", "a", ""));
    registry.replace_provider("files", tools("files", &["b", "c"]));
    assert!(changes.has_changed().unwrap());
    assert_eq!((*changes.borrow_and_update(), registry.snapshot().version()), (2, 2));
}

#[test]
fn newest_tool_of_same_name_and_provider_replaces_the_old() {
    let registry = registry(&[("files", "read")]);
    let newest = Sign::new("files", "read", "newest");
    registry.register(newest.clone());
    let snapshot = registry.snapshot();
    assert_eq!((snapshot.len(), snapshot.withheld()), (1, &[][..]));
    assert!(
        matches!(snapshot.find("read"), NameLookup::One(tool) if Arc::ptr_eq(tool.description(), newest.description()))
    );
}

/// What is withheld, as name, providers and reason.
fn check_withheld(registry: &Registry, expected: &[(&str, &[&str], WithheldReason)]) {
    let snapshot = registry.snapshot();
    let found = snapshot.withheld().iter().map(|held| {
        let providers: Vec<&str> = held.providers.iter().map(|provider| &**provider).collect();
        (held.name.to_string(), providers.join(" "), held.reason)
    });
    let expected = expected.iter().map(|(name, providers, reason)| (name.to_string(), providers.join(" "), *reason));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for held in snapshot.withheld() {
        assert!(!matches!(snapshot.find(&held.name), NameLookup::One(_)), "{}", held.name);
        assert!(!names(&snapshot).contains(&held.name.to_string()));
    }
}

#[test]
fn ambiguous_and_invalid_names_are_withheld() {
    use WithheldReason::{BadName, SharedName};
    let registry = registry(&[("two", "read"), ("one", "read"), ("", "write"), ("one", "write"), ("one", "fine")]);
    check_withheld(&registry, &[("read", &["one", "two"], SharedName), ("write", &["", "one"], SharedName)]);
    registry.replace_provider("one", vec![]);
    check_withheld(&registry, &[]);
    assert_eq!(names(&registry.snapshot()), ["read", "write"]);

    registry.replace_provider("twins", tools("twins", &["twin", "twin"]));
    registry.replace_provider("odd", tools("odd", &["a b", "a\u{1b}"]));
    check_withheld(
        &registry,
        &[("a\u{1b}", &["odd"], BadName), ("a b", &["odd"], BadName), ("twin", &["twins", "twins"], SharedName)],
    );
    assert!(registry.remove("twin"));
    assert!(registry.remove("a b"));
    check_withheld(&registry, &[("a\u{1b}", &["odd"], BadName)]);
}

#[tokio::test]
async fn unknown_name_suggests_the_nearest() {
    let registry = registry(&[("files", "mcp__files__read"), ("one", "both"), ("two", "both")]);
    let long = "x".repeat(1_000_000);
    for (said, told) in [
        ("mcp__files__raed", "unknown tool mcp__files__raed; did you mean mcp__files__read?"),
        ("read", "unknown tool read; did you mean mcp__files__read?"),
        ("a\u{1b}", r"unknown tool a\u{1b}"),
        ("bothh", "unknown tool bothh"),
        ("both", "ambiguous tool name both: provided by one and two"),
        (&long, &format!("unknown tool {}…", "x".repeat(100))),
    ] {
        let failure = registry.call(said, call()).await.unwrap_err();
        assert_eq!(failure.to_string(), told);
        assert!(!matches!(&failure, RegistryCallError::Unknown { name, .. } if name.len() > 200));
    }
}

#[test]
fn notes_are_shared_by_the_registry() {
    let registry = registry(&[]);
    registry.notes().clone().push("files", "a file changed");
    let notes = registry.notes().take_all();
    assert_eq!((&*notes[0].from, notes[0].text.as_str()), ("files", "a file changed"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn registration_order_does_not_matter(
        (tools, shuffled) in prop::collection::vec(("[xyz]?", "[a-f]"), 0..12)
            .prop_flat_map(|tools| (Just(tools.clone()), Just(tools).prop_shuffle())),
    ) {
        let all = |tools: &[(String, String)]| {
            let tools: Vec<_> = tools.iter().map(|(provider, name)| (provider.as_str(), name.as_str())).collect();
            registry(&tools).snapshot()
        };
        let (one, other) = (all(&tools), all(&shuffled));
        prop_assert_eq!(names(&one), names(&other));
        prop_assert_eq!(one.withheld(), other.withheld());
        for name in ["a", "b", "c", "d", "e", "f"] {
            let mut givers: Vec<_> = tools.iter().filter(|(_, given)| given == name).collect();
            givers.sort();
            givers.dedup();
            prop_assert_eq!(matches!(one.find(name), NameLookup::One(_)), givers.len() == 1);
        }
    }
}
