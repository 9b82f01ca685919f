//! Masks configuration entries for display: secrets become `***`, references stay as written.

use std::ffi::OsString;

use serde_json::{Map, Value};
use wharf_config::fields::{ConfigField, ConfigFieldKind, SERVER};
use wharf_config::{TemplatePart, parse_template};
use wharf_spec::{Environment, is_secret_name, mask_arguments};

/// Replacement of a secret.
const SECRET_MASK: &str = "***";

/// Authentication schemes, which are not masked.
const SCHEMES: [&str; 4] = ["Bearer ", "Basic ", "Token ", "bearer "];

/// Headers that are not masked.
const OPEN_HEADERS: [&str; 5] = ["accept", "accept-language", "content-type", "mcp-protocol-version", "user-agent"];

/// Display of secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretDisplay {
    Masked,
    Revealed,
}

impl SecretDisplay {
    pub fn from_flag(reveal: bool) -> Self {
        if reveal { Self::Revealed } else { Self::Masked }
    }
}

/// Returns an entry with canonical key names, masked for display.
///
/// Masks the secrets of known keys, and all texts of unknown keys and of values with the wrong type.
pub fn mask_entry(written: &Map<String, Value>, secrets: SecretDisplay) -> Map<String, Value> {
    mask_object(written, SERVER, secrets)
}

fn mask_object(
    written: &Map<String, Value>,
    table: &'static [ConfigField],
    secrets: SecretDisplay,
) -> Map<String, Value> {
    let one = |(key, value): (&String, &Value)| {
        let field = table.iter().find(|field| field.matches_key(key));
        let name = field.map_or(key.as_str(), |field| field.name).to_owned();
        match secrets {
            SecretDisplay::Revealed => (name, value.clone()),
            SecretDisplay::Masked => (name, field.map_or_else(|| mask_all(value), |field| mask_known(field, value))),
        }
    };
    written.iter().map(one).collect()
}

/// Masks the value of a known key. Hides a value of the wrong type completely.
fn mask_known(field: &ConfigField, value: &Value) -> Value {
    match (field.kind, value) {
        (ConfigFieldKind::Template | ConfigFieldKind::Text | ConfigFieldKind::Choice(_), Value::String(text)) => {
            mask_text(field.name, text).into()
        }
        (ConfigFieldKind::Templates | ConfigFieldKind::Texts, Value::Array(items))
            if items.iter().all(Value::is_string) =>
        {
            mask_argument_list(items.iter().filter_map(Value::as_str)).into()
        }
        (ConfigFieldKind::TemplateMap, Value::Object(members)) => {
            members.iter().map(|(name, value)| (name.clone(), mask_member(field.name, name, value))).collect()
        }
        (ConfigFieldKind::Object(fields), Value::Object(members)) => {
            mask_object(members, fields, SecretDisplay::Masked).into()
        }
        _ => mask_all(value),
    }
}

/// Masks texts at any depth. Other values are not secrets.
fn mask_all(value: &Value) -> Value {
    match value {
        Value::String(text) => mask_secret(text).into(),
        Value::Array(items) => items.iter().map(mask_all).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), mask_all(value))).collect(),
        other => other.clone(),
    }
}

fn mask_text(name: &str, text: &str) -> String {
    match name {
        "url" | "httpUrl" | "proxy" => mask_url(text),
        // URLs of a login.
        name if name.ends_with("_url") => mask_url(text),
        // May contain a whole command line.
        "command" => rewrite_literals(text, |text| {
            let words: Vec<OsString> = text.split(' ').map(Into::into).collect();
            mask_arguments(&words).join(" ")
        }),
        _ if holds_secret(name) => mask_secret(text),
        _ => mask_argument(text),
    }
}

/// Reports whether a member is likely to hold a secret. The name of a file with a secret is not one.
fn holds_secret(name: &str) -> bool {
    !name.ends_with("_file") && (is_secret_name(name) || name == "assertion")
}

/// Masks a variable or a header.
fn mask_member(of: &str, name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if of == "headers" && OPEN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
            text.as_str().into()
        }
        Value::Number(_) => SECRET_MASK.into(),
        value => mask_all(value),
    }
}

/// Masks the literal parts of a secret: `Bearer ${TOKEN}` stays, `Bearer abc` does not.
fn mask_secret(text: &str) -> String {
    let literal = |text: &str| match SCHEMES.iter().find(|scheme| text.starts_with(**scheme)) {
        Some(scheme) if text.len() == scheme.len() => text.to_owned(),
        Some(scheme) => format!("{scheme}{SECRET_MASK}"),
        None => SECRET_MASK.to_owned(),
    };
    rewrite_literals(text, literal)
}

/// Masks the credentials, the query values and the fragment of a URL.
fn mask_url(text: &str) -> String {
    let is_address = text.contains("://")
        || matches!(parse_template(text).first(), Some(TemplatePart::Variable { .. } | TemplatePart::Secret(_)));
    let text = text.split_once('#').map_or(text.to_owned(), |(before, _)| format!("{before}#{SECRET_MASK}"));
    if is_address { mask_argument(&text) } else { SECRET_MASK.to_owned() }
}

fn mask_argument(text: &str) -> String {
    mask_argument_list([text].into_iter()).pop().unwrap_or_default()
}

/// Masks secrets among arguments. An argument without literal secrets stays as written.
fn mask_argument_list<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let literal =
        |text: &str| -> OsString { parse_template(text).iter().filter_map(literal_part).collect::<String>().into() };
    let literals: Vec<OsString> = texts.clone().map(literal).collect();
    let masked_literals = mask_arguments(&literals);
    let masked_texts = mask_arguments(&texts.clone().map(OsString::from).collect::<Vec<_>>());
    let is_open = |at: usize| literals[at] == *masked_literals[at];
    texts
        .enumerate()
        .map(|(at, text)| if is_open(at) { rewrite_literals(text, str::to_owned) } else { masked_texts[at].clone() })
        .collect()
}

fn literal_part<'a>(part: &TemplatePart<'a>) -> Option<&'a str> {
    match part {
        TemplatePart::Text(text) | TemplatePart::Variable { default: Some(text), .. } => Some(text),
        _ => None,
    }
}

/// Rewrites a text, with its literal parts replaced.
fn rewrite_literals(text: &str, literal: impl Fn(&str) -> String) -> String {
    let part = |part: &TemplatePart<'_>| match part {
        TemplatePart::Text("") => String::new(),
        TemplatePart::Text("${") => "$${".to_owned(),
        TemplatePart::Text(text) => literal(text),
        TemplatePart::Variable { name, default: None } => format!("${{{name}}}"),
        TemplatePart::Variable { name, default: Some("") } => format!("${{{name}:-}}"),
        TemplatePart::Variable { name, default: Some(text) } => format!("${{{name}:-{}}}", literal(text)),
        TemplatePart::Secret(name) => format!("${{secret:{name}}}"),
        TemplatePart::Project => "${project}".to_owned(),
        // The content is unknown.
        TemplatePart::Foreign(_) | TemplatePart::Unclosed => SECRET_MASK.to_owned(),
    };
    parse_template(text).iter().map(part).collect()
}

/// A reference in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MaskedReference {
    Variable { name: String, has_default: bool },
    Secret(String),
}

/// Returns the references of an entry, sorted and without duplicates.
pub fn references(written: &Map<String, Value>) -> Vec<MaskedReference> {
    let mut found = Vec::new();
    written.values().for_each(|value| collect(value, &mut found));
    found.sort();
    found.dedup();
    found
}

fn collect(value: &Value, found: &mut Vec<MaskedReference>) {
    match value {
        Value::String(text) => found.extend(parse_template(text).iter().filter_map(|part| match part {
            TemplatePart::Variable { name, default } => {
                Some(MaskedReference::Variable { name: (*name).to_owned(), has_default: default.is_some() })
            }
            TemplatePart::Secret(name) => Some(MaskedReference::Secret((*name).to_owned())),
            _ => None,
        })),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => members.values().for_each(|member| collect(member, found)),
        _ => {}
    }
}

impl MaskedReference {
    /// Reports whether the reference is set. `None` for a secret, which may need another program to find out.
    pub fn is_set(&self, environment: &Environment) -> Option<bool> {
        match self {
            Self::Variable { name, .. } => Some(environment.var(name).is_some()),
            Self::Secret(_) => None,
        }
    }
}

/// Returns the places where an entry holds a literal secret: `env TOKEN`, `header Authorization`, `argument 2`.
pub fn literal_secrets(entry: &Map<String, Value>) -> Vec<String> {
    let texts = |key: &str| entry.get(key).and_then(Value::as_object).into_iter().flatten();
    let is_secret =
        |name: &str, text: &str| holds_secret(name) && mask_secret(text) != text || mask_argument(text) != text;
    let mut found = Vec::new();
    for (key, word) in [("env", "env"), ("headers", "header"), ("oauth", "oauth")] {
        let secret_keys = texts(key).filter(|(name, value)| value.as_str().is_some_and(|text| is_secret(name, text)));
        found.extend(secret_keys.map(|(name, _)| format!("{word} {name}")));
    }
    let list: Vec<&str> =
        entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let shown = mask_argument_list(list.iter().copied());
    found.extend((0..list.len()).filter(|at| shown[*at] != list[*at]).map(|at| format!("argument {}", at + 1)));
    let address_of = |key: &&str| entry.get(*key).and_then(Value::as_str).is_some_and(|text| mask_url(text) != text);
    found.extend(["url", "httpUrl", "proxy"].iter().filter(|key| address_of(key)).map(|key| (*key).to_owned()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object_of(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[track_caller]
    fn check(written: Value, expected: Value) {
        assert_eq!(Value::Object(mask_entry(&object_of(written.clone()), SecretDisplay::Masked)), expected);
        assert_eq!(mask_entry(&object_of(written.clone()), SecretDisplay::Revealed).len(), object_of(written).len());
    }

    #[test]
    fn secrets_are_masked_in_every_field() {
        check(
            json!({"command": "npx", "args": ["-y", "p", "--api-key", "hush", "--token=hush", "--port", "80"]}),
            json!({"command": "npx", "args": ["-y", "p", "--api-key", "***", "--token=***", "--port", "80"]}),
        );
        check(json!({"env": {"A": "hush", "B": ""}}), json!({"env": {"A": "***", "B": ""}}));
        check(
            json!({"headers": {"Authorization": "Bearer hush", "X-Id": "hush", "Accept": "*/*"}}),
            json!({"headers": {"Authorization": "Bearer ***", "X-Id": "***", "Accept": "*/*"}}),
        );
        check(json!({"url": "https://me:hush@h/mcp?k=hush#hush"}), json!({"url": "https://***@h/mcp?k=***#***"}));
        check(json!({"url": "hush"}), json!({"url": "***"}));
        check(
            json!({"oauth": {"clientSecret": "hush", "client_id": "me", "odd": "hush"}, "proxy": "http://u:hush@p/"}),
            json!({"oauth": {"client_secret": "***", "client_id": "me", "odd": "***"}, "proxy": "http://***@p/"}),
        );
    }

    #[test]
    fn oauth_secrets_are_masked_and_file_paths_are_not() {
        let secrets = ["client_secret", "private_key", "idp_client_secret", "id_token", "assertion"];
        let open = ["private_key_file", "id_token_file", "assertion_file", "client_id", "scope", "account", "grant"];
        for (name, expected) in secrets.map(|name| (name, "***")).into_iter().chain(open.map(|name| (name, "hush"))) {
            check(json!({"oauth": {name: "hush"}}), json!({"oauth": {name: expected}}));
        }
        let url = json!({"idp_token_url": "https://me:hush@h/?k=hush", "device_url": "hush"});
        check(json!({"oauth": url}), json!({"oauth": {"idp_token_url": "https://***@h/?k=***", "device_url": "***"}}));
    }

    #[test]
    fn unknown_fields_are_masked_entirely() {
        check(json!({"heders": {"A": ["hush", 7]}}), json!({"heders": {"A": ["***", 7]}}));
        check(json!({"args": "--token hush", "env": ["hush"]}), json!({"args": "***", "env": ["***"]}));
        check(json!({"request_timeout_ms": 5000, "trust": true}), json!({"timeout": 5000, "trust": true}));
    }

    #[test]
    fn references_are_not_masked() {
        for text in ["${TOKEN}", "Bearer ${secret:token}", "${A:-}", "$${"] {
            check(json!({"env": {"A": text}}), json!({"env": {"A": text}}));
        }
        check(json!({"env": {"A": "x${A:-hush}"}}), json!({"env": {"A": "***${A:-***}"}}));
        let args = json!({"args": ["--token=${TOKEN}", "--key", "${KEY}", "${DIR:-/tmp}/x", "http://h/?k=${KEY}"]});
        check(args.clone(), args);
        check(json!({"args": ["--token=${T:-hush}"]}), json!({"args": ["--token=***"]}));
        let found = references(&object_of(json!({"args": ["${B}${A:-1}"], "env": {"X": "${secret:s} ${B}"}})));
        let variable = |name: &str, has_default| MaskedReference::Variable { name: name.to_owned(), has_default };
        assert_eq!(found, [variable("A", true), variable("B", false), MaskedReference::Secret("s".to_owned())]);
    }

    #[test]
    fn literal_secrets_are_reported() {
        let entry = json!({
            "args": ["--api-key", "hush"], "env": {"TOKEN": "hush", "MODE": "fast", "KEY": "${KEY}"},
            "headers": {"Authorization": "Bearer hush"}, "oauth": {"client_secret": "hush", "client_id": "me"},
            "url": "http://h/?k=hush"
        });
        let found = literal_secrets(&object_of(entry));
        assert_eq!(found, ["env TOKEN", "header Authorization", "oauth client_secret", "argument 2", "url"]);
        assert!(literal_secrets(&object_of(json!({"env": {"MODE": "fast"}, "url": "http://h/mcp"}))).is_empty());
    }
}
