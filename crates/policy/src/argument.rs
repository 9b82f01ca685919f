//! Arguments of a call, decoded for pattern matching.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::value::RawValue;
use wharf_json::{JsonLimits, ObjectMembers, RawJson};

/// Maximum bytes of arguments to decode.
const MAX_ARGUMENT_BYTES: usize = 1 << 20;
/// Limits on the depth and size of the decoded structure.
const BOUNDS: JsonLimits = JsonLimits { depth: 32, nodes: 20_000 };

/// The arguments of one attempt, decoded on first use.
pub(crate) struct LazyArguments<'a> {
    raw: &'a RawJson,
    node: OnceCell<Option<JsonNode<'a>>>,
}

/// A lossless JSON value: strings are decoded, numbers keep their original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonNode<'a> {
    Object(Vec<(Cow<'a, str>, JsonNode<'a>)>),
    List(Vec<JsonNode<'a>>),
    Text(Cow<'a, str>),
    Number(&'a str),
    /// `true`, `false` or `null`.
    Word(&'a str),
}

impl<'a> LazyArguments<'a> {
    pub fn new(raw: &'a RawJson) -> Self {
        Self { raw, node: OnceCell::new() }
    }

    /// Returns the decoded value, or `None` if it exceeds the limits, is not JSON or has a duplicate key.
    pub fn node(&self) -> Option<&JsonNode<'a>> {
        self.node.get_or_init(|| JsonNode::parse(self.raw.as_str())).as_ref()
    }
}

impl<'a> JsonNode<'a> {
    /// Decodes a text. Returns `None` if it exceeds the limits or is ambiguous.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_ARGUMENT_BYTES || BOUNDS.check(text.as_bytes()).is_err() {
            return None;
        }
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        Self::from_raw(raw).ok()
    }

    fn from_raw(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        let text = raw.get().trim();
        match text.as_bytes().first() {
            Some(b'{') => {
                let ObjectMembers(list) = serde_json::from_str(text)?;
                let member = |(key, value)| Ok((key, Self::from_raw(value)?));
                list.into_iter().map(member).collect::<Result<_, _>>().map(Self::Object)
            }
            Some(b'[') => {
                let list: Vec<&'a RawValue> = serde_json::from_str(text)?;
                list.into_iter().map(Self::from_raw).collect::<Result<_, _>>().map(Self::List)
            }
            Some(b'"') => serde_json::from_str(text).map(|BorrowedText(text)| Self::Text(text)),
            Some(b't' | b'f' | b'n') => Ok(Self::Word(text)),
            _ => Ok(Self::Number(text)),
        }
    }

    /// Serializes the value as compact JSON with sorted keys.
    pub fn to_canonical_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by_key(|(key, _)| key);
                write_list(out, ['{', '}'], sorted, |out, (key, value)| {
                    write_quoted(out, key);
                    out.push(':');
                    value.write(out);
                });
            }
            Self::List(items) => write_list(out, ['[', ']'], items, |out, item| item.write(out)),
            Self::Text(text) => write_quoted(out, text),
            Self::Number(text) | Self::Word(text) => out.push_str(text),
        }
    }
}

fn write_list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut String, T),
) {
    out.push(open);
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

fn write_quoted(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[derive(serde::Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_or_oversized_arguments_are_not_parsed() {
        for (text, expected) in [
            (r#"{"b":1e2,"a":"\u002fx"}"#, Some(r#"{"a":"/x","b":1e2}"#)),
            (r#" { "a" : [ 1 , true , null , { } ] } "#, Some(r#"{"a":[1,true,null,{}]}"#)),
            (r#""\"\n""#, Some(r#""\"\n""#)),
            (r#"{"a":1,"\u0061":2}"#, None),
            (r#"{"x":[{"a":1,"a":1}]}"#, None),
            (r#"{"a":"\ud800"}"#, None),
            (r#"{"a":1"#, None),
            ("", None),
        ] {
            assert_eq!(JsonNode::parse(text).map(|node| node.to_canonical_json()).as_deref(), expected, "{text}");
        }
        let (deep, wide) = ("[".repeat(33) + &"]".repeat(33), format!("[0{}]", ",0".repeat(20_000)));
        let long = format!("\"{}\"", "x".repeat(MAX_ARGUMENT_BYTES));
        assert_eq!((JsonNode::parse(&deep), JsonNode::parse(&wide), JsonNode::parse(&long)), (None, None, None));
    }
}
