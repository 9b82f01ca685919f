//! The same tree, whichever format it is written in.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wharf_config::tree::{ConfigNode, ConfigValue};
use wharf_config::{FileFormat, parse_text};

/// A value all formats have.
#[derive(Debug, Clone)]
enum Tree {
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Map(BTreeMap<String, Tree>),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn formats_parse_to_the_same_tree(members in prop::collection::btree_map(text(), tree(), 0..6)) {
        let json = plain(&parse_text(&json(&Tree::Map(members.clone())), FileFormat::Json).unwrap());
        let yaml = plain(&parse_text(&yaml(&Tree::Map(members.clone())), FileFormat::Yaml).unwrap());
        let toml = plain(&parse_text(&toml(&members), FileFormat::Toml).unwrap());
        prop_assert_eq!(&json, &plain_tree(&Tree::Map(members)));
        prop_assert_eq!(&yaml, &json);
        prop_assert_eq!(&toml, &json);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands in a file, it is read or refused, at a place that is in it.
    #[test]
    fn arbitrary_text_is_parsed_or_rejected_with_a_position(text in prop::collection::vec(odd(), 0..24)) {
        let text: String = text.concat();
        let lines = u32::try_from(text.split(['\n', '\r', '\u{85}', '\u{2028}']).count()).unwrap();
        for format in [FileFormat::Json, FileFormat::Yaml, FileFormat::Toml] {
            if let Err(error) = parse_text(&text, format) {
                prop_assert!(error.at.line <= lines + 1, "{format:?} {text:?} {error:?}");
                prop_assert!(!error.text.is_empty() && !error.text.chars().any(char::is_control));
            }
        }
    }
}

fn odd() -> impl Strategy<Value = &'static str> {
    let spaces = prop::sample::select(vec![" ", "  ", "\n", "\t", "\r", "\n  ", "\u{2028}"]);
    prop_oneof![2 => prop::sample::select(ODD.split(' ').collect::<Vec<_>>()), 1 => spaces]
}

/// What files are made of, between spaces.
const ODD: &str = "{ } [ ] : , \" ' - ? # &a *a ! !!str | > |2- %YAML --- ... << a b =1 = [[a]] [a.b] \"\"\" ''' \\ \\u12 \
                   0x 1e é // /* */ \u{feff} \u{1b}";

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Tree::Bool),
        (1..i64::MAX).prop_map(|number| Tree::Number(number.to_string())),
        "-?[1-9][0-9]{0,5}\\.[0-9]{1,4}(e[+-]?[0-9]{1,2})?".prop_map(Tree::Number),
        text().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::List),
            prop::collection::btree_map(text(), inner, 0..5).prop_map(Tree::Map),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[a-z#:,'\"\\\\\\[{}&*!|>%@`-]{0,6}",
        "\\PC{0,6}",
        prop::sample::select(vec![
            "{,}",
            "no",
            "null",
            "~",
            "1",
            "0x1f",
            "1e5",
            "true",
            "<<",
            "- a",
            "\n",
            "\t\u{1}",
            "é\u{2028}"
        ])
        .prop_map(str::to_owned),
    ]
}

fn json(tree: &Tree) -> String {
    match tree {
        Tree::Bool(flag) => flag.to_string(),
        Tree::Number(number) => number.clone(),
        Tree::Text(text) => quoted(text),
        Tree::List(trees) => format!("[{}]", joined(trees.iter().map(json), ",")),
        Tree::Map(members) => {
            let members = members.iter().map(|(key, tree)| format!("{}:\n{},", quoted(key), json(tree)));
            format!("{{{}}}", joined(members, ""))
        }
    }
}

fn yaml(tree: &Tree) -> String {
    match tree {
        Tree::Text(text) => yaml_text(text),
        Tree::List(trees) => format!("[ {} ]", joined(trees.iter().map(yaml), ", ")),
        Tree::Map(members) => {
            let members = members.iter().map(|(key, tree)| format!("{}: {}", yaml_text(key), yaml(tree)));
            format!("{{ {} }}", joined(members, ", "))
        }
        leaf => json(leaf),
    }
}

/// Between single quotation marks where that is possible.
fn yaml_text(text: &str) -> String {
    if text.chars().all(|character| (' '..='~').contains(&character)) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    quoted(text)
}

fn toml(members: &BTreeMap<String, Tree>) -> String {
    joined(members.iter().map(|(key, tree)| format!("{} = {}\n", quoted(key), toml_value(tree))), "")
}

fn toml_value(tree: &Tree) -> String {
    match tree {
        Tree::List(trees) => format!("[{}]", joined(trees.iter().map(toml_value), ", ")),
        Tree::Map(members) => {
            let members = members.iter().map(|(key, tree)| format!("{} = {}", quoted(key), toml_value(tree)));
            format!("{{ {} }}", joined(members, ", "))
        }
        leaf => json(leaf),
    }
}

/// A text between quotation marks as all three have it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{2027}' | '\u{3000}'..='\u{9fff}' => quoted.push(character),
            _ if u32::from(character) < 0x1_0000 => quoted.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}

/// A tree without its places.
fn plain(node: &ConfigNode) -> String {
    match &node.value {
        ConfigValue::List(nodes) => format!("[{}]", joined(nodes.iter().map(plain), ",")),
        ConfigValue::Map(members) => {
            let mut members: Vec<_> = members.iter().map(|m| format!("{:?}:{}", m.key, plain(&m.node))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        leaf => format!("{leaf:?}"),
    }
}

fn plain_tree(tree: &Tree) -> String {
    match tree {
        Tree::Bool(flag) => format!("{:?}", ConfigValue::Bool(*flag)),
        Tree::Number(number) => format!("{:?}", ConfigValue::Number(number.clone())),
        Tree::Text(text) => format!("{:?}", ConfigValue::Text(text.clone())),
        Tree::List(trees) => format!("[{}]", joined(trees.iter().map(plain_tree), ",")),
        Tree::Map(members) => {
            let mut members: Vec<_> = members.iter().map(|(k, tree)| format!("{k:?}:{}", plain_tree(tree))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
    }
}
