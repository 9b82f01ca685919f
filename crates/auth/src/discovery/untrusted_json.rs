//! Reading of untrusted documents: members with the wrong type or excessive size are treated as absent.

use serde_json::Value;

/// Maximum length of a name or URL in bytes.
const MAX_TEXT_BYTES: usize = 4 << 10;
/// Maximum length of one list element in bytes.
const MAX_ELEMENT_BYTES: usize = 512;
/// Maximum number of list elements.
const MAX_ELEMENTS: usize = 200;

/// Returns a non-empty string member.
pub fn string_member(document: &Value, name: &str) -> Option<String> {
    let text = document.get(name)?.as_str()?;
    (!text.is_empty() && text.len() <= MAX_TEXT_BYTES).then(|| text.to_owned())
}

/// Returns the string elements of a list member, up to the limits. Empty if the member is missing.
pub fn string_list(document: &Value, name: &str) -> Vec<String> {
    let list = document.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words = list.iter().filter_map(Value::as_str).filter(|word| word.len() <= MAX_ELEMENT_BYTES);
    words.take(MAX_ELEMENTS).map(str::to_owned).collect()
}

/// Reports whether a member is `true`.
pub fn is_true(document: &Value, name: &str) -> bool {
    document.get(name) == Some(&Value::Bool(true))
}
