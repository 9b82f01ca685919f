//! The page about the configuration, held against what it describes.

#![allow(clippy::unwrap_used, reason = "in a test, that is how things fail")]

use std::path::PathBuf;

use serde_json::Value;
use wharf_config::{ConfigPaths, FileFormat, json_schema, load, parse_text, render_key_reference};
use wharf_spec::Environment;

const BEGIN: &str = "<!-- keys: begin -->\n";
const END: &str = "<!-- keys: end -->";
/// Set, the table of keys in the page is written anew:
/// `WHARF_REWRITE=1 cargo test -p wharf-config --test page`.
const REWRITE: &str = "WHARF_REWRITE";

fn page_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "whoever runs the test says by a variable that the page is to follow")]
fn page_lists_every_key() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}\n{}{END}{after}", render_key_reference());
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(page_path(), &expected).unwrap();
        return;
    }
    assert!(page == expected, "the keys changed; write the page anew with {REWRITE}=1");
}

/// Every example, by the language after the backquotes.
fn examples() -> Vec<(FileFormat, String)> {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let mut blocks = page.split("\n```").skip(1).step_by(2);
    let example = |block: &str| {
        let (language, text) = block.split_once('\n').unwrap();
        let format = match language {
            "json" => FileFormat::Json,
            "yaml" => FileFormat::Yaml,
            "toml" => FileFormat::Toml,
            _ => return None,
        };
        Some((format, text.to_owned()))
    };
    blocks.by_ref().filter_map(example).collect()
}

#[test]
fn every_example_loads_without_problems() {
    let examples = examples();
    assert_eq!(examples.len(), 5);
    for (format, text) in examples {
        let directory = tempfile::tempdir().unwrap();
        let name = match format {
            FileFormat::Json => "example.json",
            FileFormat::Yaml => "example.yaml",
            FileFormat::Toml => "example.toml",
        };
        let file = directory.path().join(name);
        std::fs::write(&file, &text).unwrap();
        let places = ConfigPaths { flags: vec![file], only_flags: true, ..ConfigPaths::default() };
        let config = load(&places, &Environment::default());
        assert!(config.problems.is_empty(), "{text}: {:?}", config.problems);
        assert!(!config.servers.is_empty(), "{text}");
    }
}

#[test]
fn schema_accepts_examples_and_rejects_mistakes() {
    let schema = json_schema();
    for (format, text) in examples() {
        assert_eq!(misfit(&schema, &schema, &value(&text, format)), None, "{text}");
    }
    for (text, expected) in [
        (r#"{"mcpServers": {"a": {"command": 7}}}"#, "/mcpServers/a/command"),
        (r#"{"mcpServers": {"a": {"args": [1]}}}"#, "/mcpServers/a/args/0"),
        (r#"{"mcpServers": {"a": {"request_timeout_ms": 0}}}"#, "/mcpServers/a/request_timeout_ms"),
        (r#"{"mcpServers": {"a b": {}}}"#, "/mcpServers/a b"),
        (r#"{"mcp": {"servers": {"a": {"env": {"A": 1}}}}}"#, "/mcp/servers/a/env/A"),
        (r#"{"tokenStore": "cloud"}"#, "/tokenStore"),
        (r#"{"providers": {"a/b": {}}}"#, "/providers/a/b"),
        (r#"{"providers": {"a": {"format": "grpc"}}}"#, "/providers/a/format"),
        (r#"{"permissions": [{"tool": "a", "action": "allow", "x": 1}]}"#, "/permissions/0/x"),
        (r#"{"permissions": [{"tool": "a"}]}"#, "/permissions/0"),
    ] {
        let found = misfit(&schema, &schema, &serde_json::from_str(text).unwrap());
        assert_eq!(found.as_deref(), Some(expected), "{text}");
    }
}

/// A text as JSON, whatever it is written in.
fn value(text: &str, format: FileFormat) -> Value {
    fn plain(node: &wharf_config::tree::ConfigNode) -> Value {
        use wharf_config::tree::ConfigValue as Tree;
        match &node.value {
            Tree::Null => Value::Null,
            Tree::Bool(flag) => (*flag).into(),
            Tree::Number(text) => serde_json::from_str(text).unwrap(),
            Tree::Text(text) => text.clone().into(),
            Tree::List(items) => items.iter().map(plain).collect(),
            Tree::Map(members) => members.iter().map(|member| (member.key.clone(), plain(&member.node))).collect(),
        }
    }
    plain(&parse_text(text, format).unwrap())
}

/// Where a value does not fit a schema, of those words that ours uses. Within `oneOf`, the deepest place is told.
fn misfit(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    check(root, schema, value, "").err()
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let holds = |fits: bool| if fits { Ok(()) } else { Err(at.to_owned()) };
    for (word, said) in schema.as_object().unwrap() {
        match word.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => check(root, root.pointer(said.as_str().unwrap().trim_start_matches('#')).unwrap(), value, at)?,
            "type" => holds(is_of(said.as_str().unwrap(), value))?,
            "enum" => holds(said.as_array().unwrap().contains(value))?,
            "minimum" => holds(value.as_u64().is_some_and(|number| number >= said.as_u64().unwrap()))?,
            "maximum" => holds(value.as_u64().is_some_and(|number| number <= said.as_u64().unwrap()))?,
            "required" => holds(said.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()))?,
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, said, item, &format!("{at}/{n}"))?;
                }
            }
            "properties" => {
                for (key, schema) in said.as_object().unwrap() {
                    value.get(key).map_or(Ok(()), |value| check(root, schema, value, &format!("{at}/{key}")))?;
                }
            }
            "propertyNames" => {
                assert_eq!(said["pattern"], "^[a-zA-Z0-9_-]{1,64}$");
                let odd =
                    value.as_object().into_iter().flatten().find(|(key, _)| wharf_spec::ServerName::new(key).is_err());
                odd.map_or(Ok(()), |(key, _)| Err(format!("{at}/{key}")))?;
            }
            "additionalProperties" => {
                let known = |key: &str| schema.get("properties").is_some_and(|known| known.get(key).is_some());
                for (key, value) in value.as_object().into_iter().flatten().filter(|(key, _)| !known(key)) {
                    match said {
                        Value::Bool(true) => {}
                        Value::Bool(false) => return Err(format!("{at}/{key}")),
                        schema => check(root, schema, value, &format!("{at}/{key}"))?,
                    }
                }
            }
            "allOf" => said.as_array().unwrap().iter().try_for_each(|schema| check(root, schema, value, at))?,
            "oneOf" => {
                let results: Vec<_> = said.as_array().unwrap().iter().map(|one| check(root, one, value, at)).collect();
                if results.iter().filter(|result| result.is_ok()).count() != 1 {
                    return Err(results
                        .into_iter()
                        .filter_map(Result::err)
                        .max_by_key(String::len)
                        .unwrap_or_default());
                }
            }
            other => panic!("the schema says `{other}`, which this check does not know"),
        }
    }
    Ok(())
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        other => panic!("no type {other}"),
    }
}
