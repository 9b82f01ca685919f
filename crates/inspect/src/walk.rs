//! Traversal of all strings of a tool definition, with their locations.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use wharf_json::RawJson;
use wharf_spec::UntrustedText;

use super::FindingLocation;

/// Passes every string and every key to `show` once, in order. The strings of one list are joined, one per line,
/// because a sentence may be split over them.
pub(super) fn visit_strings(
    definition: &RawJson,
    show: &mut dyn FnMut(&StringPath, &str),
) -> Result<(), serde_json::Error> {
    let mut walk = DefinitionWalker { path: String::new(), list: None, show };
    let definition = definition.with_valid_unicode();
    let mut text = serde_json::Deserializer::from_str(definition.as_str());
    walk.deserialize(&mut text)?;
    text.end()
}

/// A path into a definition.
pub(super) struct StringPath<'a> {
    path: &'a str,
    is_key: bool,
}

impl StringPath<'_> {
    /// Reports whether words may be joined here, as in `camelCase`.
    pub(super) fn is_name(&self) -> bool {
        self.is_key || self.path == "/name"
    }

    /// Returns the location, derived from the first member of the path.
    pub(super) fn location(&self) -> FindingLocation {
        const MAX_PATH_CHARS: usize = 160;
        let shown = || UntrustedText::new(self.path.trim_start_matches('/')).truncate(MAX_PATH_CHARS).to_string();
        match self.path.split('/').nth(1).unwrap_or_default() {
            "name" if self.path == "/name" => FindingLocation::Name,
            "title" if self.path == "/title" => FindingLocation::Title,
            "description" if self.path == "/description" => FindingLocation::Description,
            "inputSchema" | "outputSchema" => FindingLocation::Schema(shown()),
            "annotations" => FindingLocation::Annotation(shown()),
            _ => FindingLocation::Member(shown()),
        }
    }
}

struct DefinitionWalker<'a> {
    path: String,
    /// Strings of the list being read, excluding objects in it.
    list: Option<String>,
    show: &'a mut dyn FnMut(&StringPath, &str),
}

impl DefinitionWalker<'_> {
    fn text(&mut self, text: &str) {
        match &mut self.list {
            Some(list) => {
                list.push_str(text);
                list.push('\n');
            }
            None => (self.show)(&StringPath { path: &self.path, is_key: false }, text),
        }
    }

    fn key(&mut self, key: &str) {
        self.path.push('/');
        self.path.push_str(key);
        (self.show)(&StringPath { path: &self.path, is_key: true }, key);
    }
}

impl<'de> DeserializeSeed<'de> for &mut DefinitionWalker<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut DefinitionWalker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.text(text);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (list, length) = (self.list.take(), self.path.len());
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            self.key(&key);
            map.next_value_seed(&mut *self)?;
            self.path.truncate(length);
        }
        self.list = list;
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let outer = self.list.replace(String::new());
        while list.next_element_seed(&mut *self)?.is_some() {}
        let inner = std::mem::replace(&mut self.list, outer).unwrap_or_default();
        if !inner.is_empty() {
            (self.show)(&StringPath { path: &self.path, is_key: false }, inner.trim_end());
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
