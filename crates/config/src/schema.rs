//! JSON Schema of configuration files, generated from the tables of keys.

use serde_json::{Map, Value, json};

use crate::fields::{ConfigField, ConfigFieldKind, FILE, RULE, SERVER, USER};

/// Pattern of server and provider names.
const NAME_PATTERN: &str = "^[a-zA-Z0-9_-]{1,64}$";

/// Returns the JSON Schema (2020-12) of a configuration file, for editors. It is lenient: [`crate::load`] also rejects
/// everything that it rejects, and it allows unknown keys.
pub fn json_schema() -> Value {
    let mut file = object(&[FILE, USER]);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Wharf configuration",
        "description": "MCP servers and their settings. Times are in milliseconds.",
        "$defs": { "server": server(), "servers": servers(), "rule": rule() },
    });
    for (key, value) in head.as_object().into_iter().flatten() {
        file.insert(key.clone(), value.clone());
    }
    file.into()
}

fn server() -> Value {
    let mut server = object(&[SERVER]);
    server.insert("title".to_owned(), "MCP server".into());
    server.into()
}

/// Returns the schema of servers by id, or of a list of servers with names.
fn servers() -> Value {
    let server = json!({ "$ref": "#/$defs/server" });
    json!({
        "oneOf": [
            {
                "type": "object",
                "propertyNames": { "pattern": NAME_PATTERN },
                "additionalProperties": server,
            },
            { "type": "array", "items": { "allOf": [server, { "required": ["name"] }] } },
        ],
    })
}

fn rule() -> Value {
    let mut rule = object(&[RULE]);
    rule.insert("required".to_owned(), json!(["tool", "action"]));
    rule.insert("additionalProperties".to_owned(), false.into());
    rule.into()
}

fn object(tables: &[&[ConfigField]]) -> Map<String, Value> {
    let mut properties = Map::new();
    for field in tables.iter().copied().flatten() {
        properties.insert(field.name.to_owned(), field_schema(field, field.about.to_owned()));
        for other in field.also {
            properties.insert((*other).to_owned(), field_schema(field, format!("The same as `{}`.", field.name)));
        }
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), "object".into());
    object.insert("properties".to_owned(), properties.into());
    object.insert("additionalProperties".to_owned(), true.into());
    object
}

fn field_schema(field: &ConfigField, about: String) -> Value {
    let mut of_kind = type_schema(field.kind);
    of_kind.insert("description".to_owned(), about.into());
    of_kind.into()
}

fn type_schema(kind: ConfigFieldKind) -> Map<String, Value> {
    let made = match kind {
        ConfigFieldKind::Text | ConfigFieldKind::Template => json!({ "type": "string" }),
        ConfigFieldKind::Choice(words) => json!({ "enum": words }),
        ConfigFieldKind::Flag => json!({ "type": "boolean" }),
        ConfigFieldKind::Count(least) => integer_schema(least),
        ConfigFieldKind::Millis => integer_schema(1),
        ConfigFieldKind::Port => json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX }),
        ConfigFieldKind::Texts | ConfigFieldKind::Templates => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        ConfigFieldKind::TemplateMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        ConfigFieldKind::MillisMap => json!({ "type": "object", "additionalProperties": integer_schema(1) }),
        ConfigFieldKind::OffOr(fields) => json!({ "oneOf": [{ "type": "boolean" }, object(&[fields])] }),
        ConfigFieldKind::Object(fields) => object(&[fields]).into(),
        ConfigFieldKind::Servers => json!({ "$ref": "#/$defs/servers" }),
        ConfigFieldKind::Rules => json!({ "type": "array", "items": { "$ref": "#/$defs/rule" } }),
        ConfigFieldKind::Objects(fields) => json!({
            "type": "object",
            "propertyNames": { "pattern": NAME_PATTERN },
            "additionalProperties": object(&[fields]),
        }),
    };
    made.as_object().cloned().unwrap_or_default()
}

fn integer_schema(least: u64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": u32::MAX })
}
