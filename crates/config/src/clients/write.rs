//! Serialization of a client's file.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value as Toml};

use crate::FileFormat;

/// Writes a file in this format.
pub(super) fn write(format: FileFormat, file: &Map<String, Json>) -> String {
    match format {
        FileFormat::Json => json(file),
        FileFormat::Yaml => yaml(file),
        FileFormat::Toml => toml(file),
    }
}

fn json(file: &Map<String, Json>) -> String {
    let mut text = serde_json::to_string_pretty(file).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes objects of objects as tables, and their values on one line each.
fn toml(file: &Map<String, Json>) -> String {
    let mut document = DocumentMut::new();
    for (key, value) in file {
        document.insert(key, toml_item(value));
    }
    document.to_string()
}

/// Returns a server as a TOML table.
pub(super) fn toml_table(fields: &Map<String, Json>) -> Table {
    let mut table = Table::new();
    for (name, value) in fields {
        if let Some(value) = toml_value(value) {
            table.insert(name, Item::Value(value));
        }
    }
    table
}

fn toml_item(value: &Json) -> Item {
    let Json::Object(members) = value else { return toml_value(value).map_or(Item::None, Item::Value) };
    let mut table = Table::new();
    table.set_implicit(true);
    for (key, member) in members {
        let Json::Object(fields) = member else { continue };
        table.insert(key, Item::Table(toml_table(fields)));
    }
    Item::Table(table)
}

/// Converts a value to TOML. Returns `None` for null.
fn toml_value(value: &Json) -> Option<Toml> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(flag) => Toml::from(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Toml::from(whole),
            None => Toml::from(number.as_f64()?),
        },
        Json::String(text) => Toml::from(text.as_str()),
        Json::Array(values) => Toml::Array(values.iter().filter_map(toml_value).collect::<Array>()),
        Json::Object(members) => {
            let pairs = members.iter().filter_map(|(key, value)| Some((key.as_str(), toml_value(value)?)));
            Toml::InlineTable(pairs.collect::<InlineTable>())
        }
    })
}

fn yaml(file: &Map<String, Json>) -> String {
    let mut text = String::new();
    yaml_members(&mut text, file, 0);
    text
}

fn yaml_members(text: &mut String, members: &Map<String, Json>, indent: usize) {
    for (key, value) in members {
        text.extend(std::iter::repeat_n(' ', indent));
        text.push_str(&yaml_text(key));
        match value {
            Json::Object(inner) if !inner.is_empty() => {
                text.push_str(":\n");
                yaml_members(text, inner, indent + 2);
            }
            value => {
                text.push_str(": ");
                yaml_flow(text, value);
                text.push('\n');
            }
        }
    }
}

/// Writes a value on one line.
fn yaml_flow(text: &mut String, value: &Json) {
    match value {
        Json::String(string) => text.push_str(&yaml_text(string)),
        Json::Array(values) => {
            text.push('[');
            for (n, value) in values.iter().enumerate() {
                text.push_str(if n == 0 { "" } else { ", " });
                yaml_flow(text, value);
            }
            text.push(']');
        }
        Json::Object(members) => {
            text.push('{');
            for (n, (key, value)) in members.iter().enumerate() {
                text.push_str(if n == 0 { "" } else { ", " });
                text.push_str(&quote_yaml(key));
                text.push_str(": ");
                yaml_flow(text, value);
            }
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

/// Writes a text without quotes if every YAML version reads it as a string, and with quotes otherwise.
fn yaml_text(text: &str) -> String {
    const NOT_TEXTS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'.');
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(is_word)
        && !NOT_TEXTS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { quote_yaml(text) }
}

/// Writes a text in double quotes, with special characters escaped.
fn quote_yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            _ if character.is_control() || wharf_spec::is_control_or_bidi(character) || character == '\u{feff}' => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\U{:08X}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
