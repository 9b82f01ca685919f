//! Markdown reference of all keys, generated from the tables of keys.

use std::fmt::Write as _;

use crate::fields::{
    BACKOFF, ConfigField, ConfigFieldKind, FILE, MCP, OAUTH, PROFILE, PROVIDER, RULE, SERVE, SERVER, USER,
};

/// Returns Markdown tables of all configuration keys, as included in the documentation.
pub fn render_key_reference() -> String {
    let mut text = String::new();
    for (heading, fields) in [
        ("A file", FILE),
        ("Under `mcp`", MCP),
        ("A server", SERVER),
        ("`oauth` of a server", OAUTH),
        ("`reconnect`", BACKOFF),
        ("A rule of `permissions`", RULE),
        ("Settings, in your own files only", USER),
        ("A provider of `providers`", PROVIDER),
        ("A profile of `profiles`", PROFILE),
        ("`serve`", SERVE),
    ] {
        section(&mut text, heading, fields);
    }
    text
}

fn section(text: &mut String, heading: &str, fields: &[ConfigField]) {
    let _ = write!(text, "### {heading}\n\n| key | type | description |\n| --- | --- | --- |\n");
    for field in fields {
        let names: Vec<String> =
            std::iter::once(&field.name).chain(field.also).map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "| {} | {} | {} |", names.join(", "), type_text(field.kind), escape_cell(field.about));
    }
    text.push('\n');
}

fn type_text(kind: ConfigFieldKind) -> String {
    match kind {
        ConfigFieldKind::Text => "string".to_owned(),
        ConfigFieldKind::Template => "string, expanded".to_owned(),
        ConfigFieldKind::Choice(words) => {
            words.iter().map(|word| format!("`{}`", escape_cell(word))).collect::<Vec<_>>().join(", ")
        }
        ConfigFieldKind::Flag => "`true` or `false`".to_owned(),
        ConfigFieldKind::Count(least) => format!("integer, at least {least}"),
        ConfigFieldKind::Millis => "milliseconds".to_owned(),
        ConfigFieldKind::Port => "port number".to_owned(),
        ConfigFieldKind::Texts => "list of strings".to_owned(),
        ConfigFieldKind::Templates => "list of strings, expanded".to_owned(),
        ConfigFieldKind::TemplateMap => "strings by name, expanded".to_owned(),
        ConfigFieldKind::MillisMap => "milliseconds by name".to_owned(),
        ConfigFieldKind::OffOr(_) => "boolean or object".to_owned(),
        ConfigFieldKind::Object(_) => "object".to_owned(),
        ConfigFieldKind::Servers => "servers by id".to_owned(),
        ConfigFieldKind::Rules => "list of rules".to_owned(),
        ConfigFieldKind::Objects(_) => "objects by name".to_owned(),
    }
}

/// Escapes a text for a table cell.
fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|")
}
