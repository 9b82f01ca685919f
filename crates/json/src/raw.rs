//! Raw JSON text that is forwarded without parsing.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::strict::Strict;
use crate::surrogates::replace_lone_surrogates;
use crate::{JsonLimitExceeded, JsonLimits};

/// One JSON value as text on a single line. Cloning shares the memory.
///
/// Text received from a server is scanned, not parsed: it is valid UTF-8 with balanced brackets. Any other defect
/// surfaces in [`RawJson::decode`].
#[derive(Clone)]
pub struct RawJson {
    text: Bytes,
    /// The text with lone surrogates replaced, made when decoding needs it. Boxed, since it is rare.
    repaired: OnceLock<Box<Bytes>>,
}

/// Error: the text is not one JSON value.
#[derive(Debug)]
pub struct InvalidJson(serde_json::Error);

/// Error: a raw text could not be decoded.
#[derive(Debug)]
pub enum JsonDecodeError {
    /// The text exceeds a limit.
    TooComplex(JsonLimitExceeded),
    /// The text is not valid JSON, or not of the expected type.
    Shape(serde_json::Error),
}

impl RawJson {
    /// Validates a JSON text and puts it on one line.
    ///
    /// # Errors
    ///
    /// Fails if the text is not exactly one JSON value.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, InvalidJson> {
        let text: Bytes = text.into();
        serde_json::from_slice::<IgnoredAny>(&text).map_err(InvalidJson)?;
        if memchr::memchr2(b'\n', b'\r', &text).is_none() {
            return Ok(Self::new_unchecked(text));
        }
        // In valid JSON a line break occurs only as white space between tokens, never inside a string.
        let line = text.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
        Ok(Self::new_unchecked(line.collect::<Vec<u8>>()))
    }

    /// Wraps text without checking it. The caller guarantees one JSON value on one line of valid UTF-8, for example a
    /// slice of scanned text or a concatenation of such slices.
    pub fn new_unchecked(text: impl Into<Bytes>) -> Self {
        Self { text: text.into(), repaired: OnceLock::new() }
    }

    /// Serializes a value to JSON.
    ///
    /// # Errors
    ///
    /// Fails if serde_json cannot serialize the value.
    pub fn from_value<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self, InvalidJson> {
        serde_json::to_vec(value).map(Self::new_unchecked).map_err(InvalidJson)
    }

    /// Returns the empty object, `{}`.
    pub const fn empty_object() -> Self {
        Self { text: Bytes::from_static(b"{}"), repaired: OnceLock::new() }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Returns the text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Reports whether the value is an object. Looks only at the first character.
    pub fn is_object(&self) -> bool {
        self.text.first() == Some(&b'{')
    }

    /// Decodes the text after checking it against the limits. Lone surrogates become U+FFFD. A struct is decoded only
    /// from an object.
    ///
    /// # Errors
    ///
    /// Fails if the text exceeds a limit or does not deserialize as `T`.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self, bounds: &JsonLimits) -> Result<T, JsonDecodeError> {
        bounds.check(&self.text).map_err(JsonDecodeError::TooComplex)?;
        self.decode_unbounded()
    }

    /// Decodes a text as [`RawJson::decode`] does, without limits. For parts of a text that has been checked.
    ///
    /// # Errors
    ///
    /// Fails if the text does not deserialize as `T`.
    pub fn decode_unbounded<'a, T: Deserialize<'a>>(&'a self) -> Result<T, JsonDecodeError> {
        let decoded = decode_strictly(&self.text);
        match (decoded, self.repaired.get()) {
            (Ok(value), _) => Ok(value),
            (Err(_), Some(text)) => decode_strictly(text).map_err(JsonDecodeError::Shape),
            (Err(error), None) => match replace_lone_surrogates(self.as_str()) {
                Some(text) => {
                    let text = self.repaired.get_or_init(|| Box::new(text.into()));
                    decode_strictly(text).map_err(JsonDecodeError::Shape)
                }
                None => Err(JsonDecodeError::Shape(error)),
            },
        }
    }

    /// Returns the text with lone surrogates replaced by U+FFFD, for readers that accept only valid Unicode.
    #[must_use]
    pub fn with_valid_unicode(&self) -> Self {
        replace_lone_surrogates(self.as_str()).map_or_else(|| self.clone(), Self::new_unchecked)
    }

    /// Returns a value borrowed from this text during decoding as a [`RawJson`] that shares its memory. Lone surrogates
    /// are as received.
    pub fn slice_part(&self, part: &RawValue) -> Self {
        let part = part.get();
        let repaired = self.repaired.get().and_then(|text| offset_in(text, part));
        Self::new_unchecked(match repaired {
            // A repaired text has the same length.
            Some(at) => self.text.slice(at..at + part.len()),
            None => self.text.slice_ref(part.as_bytes()),
        })
    }
}

/// Decodes a text; a struct only from an object.
fn decode_strictly<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = T::deserialize(Strict(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

/// Returns the position of `part` in `text`, if it lies within.
fn offset_in(text: &[u8], part: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at + part.len() <= text.len()).then_some(at)
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.text.len())
    }
}

impl serde::Serialize for RawJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_slice(&self.text).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl fmt::Display for InvalidJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON: {}", self.0)
    }
}

impl std::error::Error for InvalidJson {}

impl fmt::Display for JsonDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooComplex(bound) => write!(f, "{bound}"),
            Self::Shape(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for JsonDecodeError {}

/// Returns the members of an object in order, with decoded keys and raw values.
///
/// # Errors
///
/// Fails if the text exceeds a limit, is not an object, or has a duplicate key.
pub fn object_members<'a>(
    object: &'a RawJson,
    bounds: &JsonLimits,
) -> Result<Vec<(Cow<'a, str>, RawJson)>, JsonDecodeError> {
    let ObjectMembers(list) = object.decode(bounds)?;
    Ok(list.into_iter().map(|(key, value)| (key, object.slice_part(value))).collect())
}

/// The members of an object in order, borrowed from the decoded text. Deserializing fails on a duplicate key.
#[derive(Debug)]
pub struct ObjectMembers<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for ObjectMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = ObjectMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectMembers<'de>, A::Error> {
                let mut list: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
                while let Some((MemberKey(key), value)) = map.next_entry()? {
                    list.push((key, value));
                }
                // Sort to find duplicates in O(n log n): a peer may send a hundred thousand keys.
                let mut keys: Vec<&str> = list.iter().map(|(key, _)| key.as_ref()).collect();
                keys.sort_unstable();
                if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(serde::de::Error::custom("duplicate key"));
                }
                Ok(ObjectMembers(list))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

#[derive(serde::Deserialize)]
struct MemberKey<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multi_line_json_becomes_one_line() {
        let raw = RawJson::parse("{\n  \"a\": \"x\\ny\",\r\n  \"b\": [1,\n2]\n}".to_owned()).unwrap();
        assert!(!raw.as_str().contains(['\n', '\r']));
        let value: serde_json::Value = raw.decode(&JsonLimits::default()).unwrap();
        assert_eq!(value, serde_json::json!({"a": "x\ny", "b": [1, 2]}));
        assert!(RawJson::parse("{\"a\":\"x\ny\"}").is_err());
        assert!(RawJson::parse("{} {}").is_err());
    }

    #[test]
    fn members_keep_order_and_duplicates_are_rejected() {
        let raw = RawJson::parse(r#"{"b":12345678901234567890123, "\u0061":{"x" : 1}}"#).unwrap();
        let list = object_members(&raw, &JsonLimits::default()).unwrap();
        let shown: Vec<_> = list.iter().map(|(key, value)| (key.as_ref(), value.as_str())).collect();
        assert_eq!(shown, [("b", "12345678901234567890123"), ("a", r#"{"x" : 1}"#)]);
        let twins = RawJson::parse(r#"{"a":1,"\u0061":2}"#).unwrap();
        assert!(object_members(&twins, &JsonLimits::default()).is_err());
    }

    #[derive(Debug, serde::Deserialize)]
    struct Shape<'a> {
        text: String,
        #[serde(borrow)]
        part: &'a RawValue,
        #[serde(default)]
        inner: Option<Inner>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[serde(default)]
        name: Option<String>,
    }

    /// L2.
    #[test]
    fn lone_surrogate_is_decoded_leniently_and_kept_verbatim() {
        let text = r#"{"text":"cut \ud83d","part":{"x":"\ude00"},"inner":{"name":"\ud83d\ude00"}}"#;
        let raw = RawJson::parse(text).unwrap();
        let shape: Shape = raw.decode(&JsonLimits::default()).unwrap();
        assert_eq!(shape.text, "cut \u{fffd}");
        assert_eq!(shape.inner.unwrap().name.unwrap(), "\u{1f600}");
        let part = raw.slice_part(shape.part);
        assert_eq!(part.as_str(), r#"{"x":"\ude00"}"#);
        assert_eq!(part.with_valid_unicode().as_str(), r#"{"x":"\ufffd"}"#);
        let value: serde_json::Value = part.decode(&JsonLimits::default()).unwrap();
        assert_eq!(value, serde_json::json!({"x": "\u{fffd}"}));
        assert_eq!((raw.as_str(), raw == RawJson::parse(text).unwrap()), (text, true));
        let keys = RawJson::parse(r#"{"\ud83d":1}"#).unwrap();
        assert_eq!(object_members(&keys, &JsonLimits::default()).unwrap()[0].0, "\u{fffd}");
    }

    /// L7.
    #[test]
    fn array_in_place_of_an_object_is_rejected() {
        for (text, is_valid) in [
            (r#"{"text":"a","part":1}"#, true),
            (r#"{"text":"a","part":[1],"inner":null}"#, true),
            (r#"{"text":"a","part":1,"inner":{}}"#, true),
            (r#"["a",1,null]"#, false),
            (r#"{"text":"a","part":1,"inner":["x"]}"#, false),
            (r#"{"text":"a","part":1,"inner":[]}"#, false),
        ] {
            let raw = RawJson::parse(text).unwrap();
            let decoded = raw.decode::<Shape>(&JsonLimits::default());
            assert_eq!(decoded.is_ok(), is_valid, "{text}: {decoded:?}");
        }
    }
}
