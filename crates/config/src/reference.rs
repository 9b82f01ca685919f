//! Markdown reference of all keys, generated from the tables of keys.

use std::fmt::Write as _;

use crate::fields::{BACKOFF, FILE, Field, Kind, MCP, OAUTH, PROVIDER, RULE, SERVER, USER};

/// Returns Markdown tables of all configuration keys, as included in the documentation.
pub fn reference() -> String {
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
    ] {
        section(&mut text, heading, fields);
    }
    text
}

fn section(text: &mut String, heading: &str, fields: &[Field]) {
    let _ = write!(text, "### {heading}\n\n| key | what stands there | what it is for |\n| --- | --- | --- |\n");
    for field in fields {
        let names: Vec<String> =
            std::iter::once(&field.name).chain(field.also).map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "| {} | {} | {} |", names.join(", "), kind(field.kind), cell(field.about));
    }
    text.push('\n');
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Template => "text, expanded".to_owned(),
        Kind::Choice(words) => words.iter().map(|word| format!("`{}`", cell(word))).collect::<Vec<_>>().join(", "),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Count(least) => format!("whole number, at least {least}"),
        Kind::Millis => "milliseconds".to_owned(),
        Kind::Port => "number of a port".to_owned(),
        Kind::Texts => "list of texts".to_owned(),
        Kind::Templates => "list of texts, expanded".to_owned(),
        Kind::TemplateMap => "texts by name, expanded".to_owned(),
        Kind::MillisMap => "milliseconds by name".to_owned(),
        Kind::OffOr(_) => "`false`, `true` or an object".to_owned(),
        Kind::Object(_) => "object".to_owned(),
        Kind::Servers => "servers by their ids".to_owned(),
        Kind::Rules => "list of rules".to_owned(),
        Kind::Objects(_) => "objects by name".to_owned(),
    }
}

/// Escapes a text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
