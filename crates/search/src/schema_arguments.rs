//! Extraction of argument names and descriptions from a schema.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use wharf_json::{JsonLimits, RawJson, object_members};

/// Maximum number of indexed arguments of a tool.
const MAX_ARGUMENTS: usize = 64;

/// Returns the top-level properties of a schema in order, with their titles and descriptions. Returns an empty list if
/// the schema cannot be decoded.
pub fn schema_arguments(schema: &RawJson) -> Vec<(String, String)> {
    let bounds = JsonLimits::default();
    let Ok(SchemaProperties { properties: Some(properties) }) = schema.decode(&bounds) else { return Vec::new() };
    let properties = schema.slice_part(properties);
    let properties = object_members(&properties, &bounds).unwrap_or_default().into_iter().take(MAX_ARGUMENTS);
    properties.map(|(name, schema)| (name.into_owned(), property_text(&schema))).collect()
}

fn property_text(schema: &RawJson) -> String {
    let PropertyTexts { title, description } = schema.decode(&JsonLimits::default()).unwrap_or_default();
    [title, description].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[derive(Deserialize)]
struct SchemaProperties<'a> {
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct PropertyTexts<'a> {
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    description: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_extracted_and_malformed_parts_skipped() {
        for (schema, expected) in [
            (
                r#"{"properties":{"path":{"title":"Path","description":"Where \"it\" is."},"deep":true,"n":{"type":"number"}}}"#,
                &[("path", "Path Where \"it\" is."), ("deep", ""), ("n", "")][..],
            ),
            (r#"{"properties":{"a":{"description":1}}}"#, &[("a", "")]),
            (r#"{"properties":[]}"#, &[]),
            (r#"{"type":"object"}"#, &[]),
            ("[]", &[]),
        ] {
            let found = schema_arguments(&RawJson::new_unchecked(schema.to_owned()));
            let found: Vec<(&str, &str)> =
                found.iter().map(|(name, description)| (name.as_str(), description.as_str())).collect();
            assert_eq!(found, expected, "{schema}");
        }
    }
}
