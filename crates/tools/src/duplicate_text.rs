//! Detects text that duplicates structured data.
//!
//! Tools that return structured data usually repeat it as text for callers without support for structured data.
//! Duplicates are detected so that the data is not shown twice.

use wharf_json::{JsonLimits, RawJson, object_members};

/// Maximum bytes of a text to compare. Longer texts are treated as different from the data.
const MAX_COMPARED_BYTES: usize = 1 << 20;
/// Maximum number of texts of one outcome that are compared with the whole data.
pub(crate) const MAX_COMPARED_TEXTS: usize = 8;
/// The depth is low because each nesting level is decoded again for the level above.
const COMPARE_LIMITS: JsonLimits = JsonLimits { depth: 16, nodes: 50_000 };

/// Reports whether a text is the JSON of the data, ignoring white space, escapes and member order.
pub(crate) fn is_json_of(text: &str, data: &RawJson) -> bool {
    let begins_alike = text.trim_start().bytes().next() == first_byte(data);
    if !begins_alike || text.len().max(data.as_bytes().len()) > MAX_COMPARED_BYTES {
        return false;
    }
    RawJson::parse(text.to_owned()).is_ok_and(|text| json_equal(&text, data))
}

/// Reports whether texts contain all of the data: one of them is its JSON, or the data only wraps their content.
///
/// Servers wrap unstructured results as `{"result": …}`. In that case the texts are the value itself, or its elements
/// one by one.
pub(crate) fn texts_contain_data(texts: &[&str], data: &RawJson) -> bool {
    if texts.iter().take(MAX_COMPARED_TEXTS).any(|text| is_json_of(text, data)) {
        return true;
    }
    let Some(value) = unwrap_result(data) else { return false };
    match (texts, array_elements(&value)) {
        ([], _) => false,
        ([text], _) if text_equals_value(text, &value) => true,
        (texts, Some(elements)) => {
            texts.len() == elements.len()
                && std::iter::zip(texts, &elements).all(|(text, value)| text_equals_value(text, value))
        }
        _ => false,
    }
}

/// Reports whether a text equals a value: a string verbatim, any other value as JSON.
fn text_equals_value(text: &str, value: &RawJson) -> bool {
    decode_string(value).is_some_and(|string| string == text) || is_json_of(text, value)
}

fn unwrap_result(data: &RawJson) -> Option<RawJson> {
    let mut list = object_members(data, &COMPARE_LIMITS).ok()?;
    let (name, value) = list.pop()?;
    (name == "result" && list.is_empty()).then_some(value)
}

fn json_equal(one: &RawJson, other: &RawJson) -> bool {
    match (first_byte(one), first_byte(other)) {
        (Some(b'{'), Some(b'{')) => members_equal(one, other).unwrap_or(false),
        (Some(b'['), Some(b'[')) => match (array_elements(one), array_elements(other)) {
            (Some(one), Some(other)) => {
                one.len() == other.len() && std::iter::zip(&one, &other).all(|(one, other)| json_equal(one, other))
            }
            _ => false,
        },
        (Some(b'"'), Some(b'"')) => decode_string(one).is_some_and(|text| Some(text) == decode_string(other)),
        // Compare the text, because decoding could make different large numbers equal.
        _ => one.as_str().trim() == other.as_str().trim(),
    }
}

fn members_equal(one: &RawJson, other: &RawJson) -> Option<bool> {
    let (mut one, mut other) =
        (object_members(one, &COMPARE_LIMITS).ok()?, object_members(other, &COMPARE_LIMITS).ok()?);
    one.sort_by(|(a, _), (b, _)| a.cmp(b));
    other.sort_by(|(a, _), (b, _)| a.cmp(b));
    let alike = |((key, value), (other_key, other_value)): (&(_, RawJson), &(_, RawJson))| {
        key == other_key && json_equal(value, other_value)
    };
    Some(one.len() == other.len() && std::iter::zip(&one, &other).all(alike))
}

fn array_elements(array: &RawJson) -> Option<Vec<RawJson>> {
    let list: Vec<&serde_json::value::RawValue> = array.decode(&COMPARE_LIMITS).ok()?;
    Some(list.into_iter().map(|value| array.slice_part(value)).collect())
}

fn decode_string(value: &RawJson) -> Option<String> {
    value.decode(&COMPARE_LIMITS).ok()
}

fn first_byte(value: &RawJson) -> Option<u8> {
    value.as_str().trim_start().bytes().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn text_equal_to_the_data_is_detected() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_COMPARED_BYTES));
        let deep = format!("{}{}", "[".repeat(17), "]".repeat(17));
        for (text, data, expected) in [
            ("{\n  \"b\": [1, 2],\n  \"a\": \"\\u00e9\"\n}\n", r#"{"a":"é","b":[1,2]}"#, true),
            ("12345678901234567890123", "12345678901234567890123", true),
            ("12345678901234567890124", "12345678901234567890123", false),
            (r#"{"a":12345678901234567890124}"#, r#"{"a":12345678901234567890123}"#, false),
            ("null", " null", true),
            ("false", "null", false),
            ("[1,2]", "[2,1]", false),
            ("[1]", "[1,1]", false),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"c":2}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, false),
            (r#"{"a":{"b":[{"c":null}]}}"#, r#"{ "a" : { "b" : [ { "c" : null } ] } }"#, true),
            ("{} and more", "{}", false),
            ("{", "{}", false),
            ("", "{}", false),
            (&long, &long, false),
            (&deep, &deep, false),
        ] {
            assert_eq!(is_json_of(text, &raw(data)), expected, "{text} as {data}");
        }
    }

    #[test]
    fn texts_containing_the_data_are_detected() {
        for (texts, data, expected) in [
            (&["looked it up", r#"{"a": 1}"#][..], r#"{"a":1}"#, true),
            (&["looked it up"], r#"{"a":1}"#, false),
            (&[], r#"{"a":1}"#, false),
            (&["two\nlines"], r#"{"result":"two\nlines"}"#, true),
            (&["5"], r#"{"result":5}"#, true),
            (&["5"], r#"{"count":5}"#, false),
            (&["5"], r#"{"result":5,"more":6}"#, false),
            (&["a", r#"{"b": 1}"#], r#"{"result":["a",{"b":1}]}"#, true),
            (&["a"], r#"{"result":["a","b"]}"#, false),
            (&[r#"["a","b"]"#], r#"{"result":["a","b"]}"#, true),
            (&["a", "b"], r#"["a","b"]"#, false),
            (&[], r#"{"result":[]}"#, false),
            (&["", "", "", "", "", "", "", "{}"], "{}", true),
            (&["", "", "", "", "", "", "", "", "{}"], "{}", false),
        ] {
            assert_eq!(texts_contain_data(texts, &raw(data)), expected, "{texts:?} as {data}");
        }
    }
}
