//! A JSON tree that preserves the order of keys, duplicate keys and the digits of numbers.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use wharf_json::{JsonDecodeError, JsonLimits, RawJson};

/// A JSON value, borrowed from its text where possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonTree<'a> {
    /// A number as written, `true`, `false` or `null`.
    Scalar(&'a str),
    Text(Cow<'a, str>),
    List(Vec<JsonTree<'a>>),
    Object(JsonMembers<'a>),
}

/// The members of an object, in their order.
pub(super) type JsonMembers<'a> = Vec<(Cow<'a, str>, JsonTree<'a>)>;

impl<'a> JsonTree<'a> {
    /// Parses a text that is within the bounds. Their depth limits the recursion of tree traversals.
    pub fn parse(raw: &'a RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        // Only unpaired surrogates in strings can still fail afterwards.
        let _: IgnoredAny = raw.decode(bounds)?;
        let broken = || JsonDecodeError::Shape(serde::de::Error::custom("a string is not valid Unicode"));
        JsonTreeParser { text: raw.as_str(), at: 0 }.value().ok_or_else(broken)
    }

    /// Returns the value of a member; the last one if the key is duplicated.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Reports whether any object in the tree has a duplicate key.
    pub fn has_duplicate_keys(&self) -> bool {
        match self {
            Self::Scalar(_) | Self::Text(_) => false,
            Self::List(items) => items.iter().any(Self::has_duplicate_keys),
            Self::Object(members) => {
                let mut keys: Vec<&str> = members.iter().map(|(key, _)| &**key).collect();
                keys.sort_unstable();
                keys.windows(2).any(|pair| pair[0] == pair[1])
                    || members.iter().any(|(_, value)| value.has_duplicate_keys())
            }
        }
    }

    /// Returns the text of a string.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Writes the value without white space.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::Text(text) => quote(text, out),
            Self::List(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { "," });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (n, (key, value)) in members.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { "," });
                    quote(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a string is always JSON"));
}

/// Parser of a text that is known to be JSON.
struct JsonTreeParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonTreeParser<'a> {
    fn value(&mut self) -> Option<JsonTree<'a>> {
        match self.peek()? {
            b'"' => self.string().map(JsonTree::Text),
            b'{' => self.object().map(JsonTree::Object),
            b'[' => self.list().map(JsonTree::List),
            _ => Some(JsonTree::Scalar(self.scalar())),
        }
    }

    fn object(&mut self) -> Option<JsonMembers<'a>> {
        let mut members = Vec::new();
        self.at += 1;
        while self.peek()? != b'}' {
            let key = self.string()?;
            self.skip(b':');
            members.push((key, self.value()?));
            self.skip(b',');
        }
        self.at += 1;
        Some(members)
    }

    fn list(&mut self) -> Option<Vec<JsonTree<'a>>> {
        let mut items = Vec::new();
        self.at += 1;
        while self.peek()? != b']' {
            items.push(self.value()?);
            self.skip(b',');
        }
        self.at += 1;
        Some(items)
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        let mut escaped = false;
        while *bytes.get(end)? != b'"' {
            let backslash = bytes[end] == b'\\';
            escaped |= backslash;
            end += if backslash { 2 } else { 1 };
        }
        self.at = end + 1;
        if escaped {
            return serde_json::from_str(&self.text[start..=end]).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(&self.text[start + 1..end]))
    }

    fn scalar(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Skips white space and returns the next character without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn skip(&mut self, sign: u8) {
        if self.peek() == Some(sign) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(text: &str) -> Option<String> {
        let raw = RawJson::new_unchecked(text.to_owned());
        let tree = JsonTree::parse(&raw, &JsonLimits::default()).ok()?;
        let mut out = String::new();
        tree.write(&mut out);
        Some(out)
    }

    #[test]
    fn order_digits_and_duplicate_keys_survive() {
        for (text, expected) in [
            ("null", Some("null")),
            (" [ ] ", Some("[]")),
            (
                r#"{"b":1.0, "a" :[true ,{}], "b":12345678901234567890123}"#,
                Some(r#"{"b":1.0,"a":[true,{}],"b":12345678901234567890123}"#),
            ),
            (r#"["\u0061\n\"\\","\ud83d\ude00","ü"]"#, Some(r#"["a\n\"\\","😀","ü"]"#)),
            (r#"["\ud83d"]"#, None),
            ("[1,]", None),
            ("{\"a\"}", None),
            ("", None),
        ] {
            assert_eq!(round_trip(text).as_deref(), expected, "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::Value;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let members = prop::collection::btree_map(any::<String>(), inner.clone(), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::from),
                members.prop_map(|members| Value::from(serde_json::Map::from_iter(members))),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_round_trips(value in any_json()) {
            prop_assert_eq!(round_trip(&value.to_string()), Some(value.to_string()));
            let spaced = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(round_trip(&spaced), Some(value.to_string()));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[\\[\\]{}:,\"\\\\0-9a-fu \n-]{0,40}") {
            let _ = round_trip(&text);
        }
    }
}
