//! Views in general, and the pages lists come in.

use serde_json::value::RawValue;

use crate::Bounds;
use wharf_json::{DecodeError, Raw, members};

/// A typed look at a raw text.
pub trait View: Sized {
    /// Reads the fields that are understood; what is not stays in the raw text.
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError>;
}

/// One page of a list, its items still raw so that a malformed one costs only itself.
#[derive(Debug, Clone)]
pub struct Page {
    /// The items in the server's order.
    pub items: Vec<Raw>,
    /// Where the next page begins; the empty string is a cursor like any other.
    pub next_cursor: Option<String>,
}

impl Page {
    /// Reads the page whose items stand under `key`.
    pub fn view(raw: &Raw, key: &str, bounds: &Bounds) -> Result<Self, DecodeError> {
        let mut items = None;
        let mut next_cursor = None;
        for (name, value) in members(raw, bounds)? {
            if name == key {
                let list: Vec<&RawValue> = serde_json::from_slice(value.as_bytes()).map_err(DecodeError::Shape)?;
                items = Some(list.into_iter().map(|item| value.part(item)).collect());
            } else if name == "nextCursor" {
                next_cursor = serde_json::from_slice(value.as_bytes()).map_err(DecodeError::Shape)?;
            }
        }
        let missing = || DecodeError::Shape(serde::de::Error::custom(format!("no `{key}` in the result")));
        Ok(Self { items: items.ok_or_else(missing)?, next_cursor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_knows_an_empty_cursor_from_none() {
        for (text, cursor) in [
            (r#"{"tools":[]}"#, None),
            (r#"{"tools":[],"nextCursor":null}"#, None),
            (r#"{"tools":[],"nextCursor":""}"#, Some("")),
            (r#"{"nextCursor":"x","tools":[{"a" : 1},3]}"#, Some("x")),
        ] {
            let page = Page::view(&Raw::parse(text).unwrap(), "tools", &Bounds::default()).unwrap();
            assert_eq!(page.next_cursor.as_deref(), cursor, "{text}");
        }
        assert!(Page::view(&Raw::parse("{}").unwrap(), "tools", &Bounds::default()).is_err());
        assert!(Page::view(&Raw::parse(r#"{"tools":{}}"#).unwrap(), "tools", &Bounds::default()).is_err());
    }
}
