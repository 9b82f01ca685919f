//! Members of a document that somebody else wrote: what is of the wrong type or without measure is not there.

use serde_json::Value;

/// Bytes of a name or an address.
const MOST_TEXT_BYTES: usize = 4 << 10;
/// Bytes of one word in a list.
const MOST_WORD_BYTES: usize = 512;
/// Words of a list.
const MOST_WORDS: usize = 200;

/// A text that says something.
pub fn text(document: &Value, name: &str) -> Option<String> {
    let text = document.get(name)?.as_str()?;
    (!text.is_empty() && text.len() <= MOST_TEXT_BYTES).then(|| text.to_owned())
}

/// The first words of a list, which may be missing.
pub fn words(document: &Value, name: &str) -> Vec<String> {
    let list = document.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words = list.iter().filter_map(Value::as_str).filter(|word| word.len() <= MOST_WORD_BYTES);
    words.take(MOST_WORDS).map(str::to_owned).collect()
}

/// Whether something is said to be so.
pub fn is_true(document: &Value, name: &str) -> bool {
    document.get(name) == Some(&Value::Bool(true))
}
