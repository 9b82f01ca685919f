//! The [`View`] trait, and pages of listings.

use serde_json::value::RawValue;

use crate::JsonLimits;
use wharf_json::{JsonDecodeError, RawJson, object_members};

/// A typed view of raw JSON.
pub trait View: Sized {
    /// Decodes the known fields; unknown fields stay in the raw text.
    ///
    /// # Errors
    ///
    /// Fails if the text exceeds `bounds` or lacks the required shape.
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError>;
}

/// One page of a listing. Items stay raw, so that a malformed item does not invalidate the page.
#[derive(Debug, Clone)]
pub struct Page {
    /// Items in the server's order.
    pub items: Vec<RawJson>,
    /// Cursor of the next page. An empty string is a valid cursor.
    pub next_cursor: Option<String>,
}

impl Page {
    /// Reads a page with items under `key`.
    ///
    /// # Errors
    ///
    /// Fails if the result is malformed, exceeds `bounds` or has no `key`.
    pub fn view(raw: &RawJson, key: &str, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        let mut items = None;
        let mut next_cursor = None;
        for (name, value) in object_members(raw, bounds)? {
            if name == key {
                let list: Vec<&RawValue> = serde_json::from_slice(value.as_bytes()).map_err(JsonDecodeError::Shape)?;
                items = Some(list.into_iter().map(|item| value.slice_part(item)).collect());
            } else if name == "nextCursor" {
                next_cursor = value.decode_unbounded()?;
            }
        }
        let missing = || JsonDecodeError::Shape(serde::de::Error::custom(format!("the result has no `{key}`")));
        Ok(Self { items: items.ok_or_else(missing)?, next_cursor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_cursor_differs_from_no_cursor() {
        for (text, cursor) in [
            (r#"{"tools":[]}"#, None),
            (r#"{"tools":[],"nextCursor":null}"#, None),
            (r#"{"tools":[],"nextCursor":""}"#, Some("")),
            (r#"{"nextCursor":"x","tools":[{"a" : 1},3]}"#, Some("x")),
        ] {
            let page = Page::view(&RawJson::parse(text).unwrap(), "tools", &JsonLimits::default()).unwrap();
            assert_eq!(page.next_cursor.as_deref(), cursor, "{text}");
        }
        assert!(Page::view(&RawJson::parse("{}").unwrap(), "tools", &JsonLimits::default()).is_err());
        assert!(Page::view(&RawJson::parse(r#"{"tools":{}}"#).unwrap(), "tools", &JsonLimits::default()).is_err());
    }
}
