//! Moves secrets in clear text from an entry into the secret store.

use serde_json::{Map, Value};
use wharf_config::{SecretStore, TemplatePart, is_secret_name, parse_template};
use wharf_spec::Secret;

use crate::masking::literal_secrets;

/// Maximum characters of a secret's name.
const MAX_NAME_LENGTH: usize = 64;
/// Authentication schemes, which stay in the entry.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "Token "];

/// Secrets of an entry after the move.
#[derive(Debug, Default)]
pub struct MovedTokens {
    /// Names of the stored secrets.
    pub stored: Vec<String>,
    /// Places of the secrets that stay in clear text, with the reason.
    pub left: Vec<String>,
}

/// Stores the secrets in clear text of an entry, and replaces them with `${secret:…}` references. Blocks.
pub fn move_tokens(store: &SecretStore, server: &str, entry: &mut Map<String, Value>) -> MovedTokens {
    let mut moved = MovedTokens::default();
    for place in literal_secrets(entry) {
        let Some((value, label)) = value_at(entry, &place) else {
            moved.left.push(format!("{place} (cannot be moved)"));
            continue;
        };
        match store_token(store, server, &label, value) {
            Ok(name) => moved.stored.push(name),
            Err(reason) => moved.left.push(format!("{place} ({reason})")),
        }
    }
    moved
}

/// Returns the value at a place as [`literal_secrets`] reports it, and a label for it.
fn value_at<'a>(entry: &'a mut Map<String, Value>, place: &str) -> Option<(&'a mut Value, String)> {
    let (kind, name) = place.split_once(' ')?;
    match kind {
        "env" | "oauth" => Some((entry.get_mut(kind)?.get_mut(name)?, name.to_owned())),
        "header" => Some((entry.get_mut("headers")?.get_mut(name)?, name.to_owned())),
        "argument" => {
            let at = name.parse::<usize>().ok()?.checked_sub(1)?;
            Some((entry.get_mut("args")?.get_mut(at)?, format!("arg{name}")))
        }
        _ => None,
    }
}

fn store_token(store: &SecretStore, server: &str, label: &str, value: &mut Value) -> Result<String, String> {
    let text = value.as_str().and_then(literal_text).ok_or("it also contains a reference")?;
    let (before, secret) = split_token(&text);
    let names = store.names().map_err(|error| error.to_string())?;
    let is_same = |name: &str| store.lookup(name).is_ok_and(|found| found.value.reveal() == secret);
    let is_free = |name: &str| !names.iter().any(|taken| taken == name) || is_same(name);
    let name = free_name(server, label, is_free).ok_or("no free name for it")?;
    store.set(&name, &Secret::new(secret.to_owned())).map_err(|error| error.to_string())?;
    *value = format!("{before}${{secret:{name}}}").into();
    Ok(name)
}

/// Returns the text of a template without references.
fn literal_text(template: &str) -> Option<String> {
    let part = |part: &TemplatePart<'_>| match part {
        TemplatePart::Text(text) => Some((*text).to_owned()),
        _ => None,
    };
    parse_template(template).iter().map(part).collect()
}

/// Splits the authentication scheme or the option name off a secret.
fn split_token(text: &str) -> (&str, &str) {
    if let Some(scheme) = SCHEMES.iter().find(|scheme| text.starts_with(**scheme)) {
        return text.split_at(scheme.len());
    }
    match text.find('=') {
        Some(at) if text.starts_with('-') => text.split_at(at + 1),
        _ => ("", text),
    }
}

/// Returns a name that is not in use for another secret.
fn free_name(server: &str, label: &str, is_free: impl Fn(&str) -> bool) -> Option<String> {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let base: String = format!("{server}.{label}").chars().map(|c| if is_valid(c) { c } else { '_' }).collect();
    let candidate = |number: usize| {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let room = MAX_NAME_LENGTH - suffix.len();
        format!("{}{suffix}", &base[..base.len().min(room)])
    };
    (1..100).map(candidate).find(|name| is_secret_name(name) && is_free(name))
}
