//! JSON Schema keywords supported by each format.

use crate::provider::ApiFormat;

/// Kind of value of a schema keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordValue {
    /// Removed from the schema.
    Nothing,
    /// A schema or a list of schemas.
    Schemas,
    /// Schemas by arbitrary names.
    Named,
    /// Plain data.
    Data,
}

/// Keywords about the schema itself, and definitions that are inlined in place of their references.
const META_KEYWORDS: [&str; 11] = [
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$comment",
    "$vocabulary",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$recursiveRef",
    "$defs",
    "definitions",
];

/// Keywords that OpenAI rejects, or that local servers cannot convert to a grammar.
const OPENAI_UNSUPPORTED: [&str; 14] = [
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "contains",
    "minContains",
    "maxContains",
    "if",
    "then",
    "else",
];

/// Keywords that are not allowed at the top level.
pub(super) const COMBINATORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Returns the kind of value of a keyword in this format.
pub(super) fn keyword_value(format: ApiFormat, keyword: &str) -> KeywordValue {
    match keyword {
        _ if META_KEYWORDS.contains(&keyword) => KeywordValue::Nothing,
        _ if format != ApiFormat::Anthropic && OPENAI_UNSUPPORTED.contains(&keyword) => KeywordValue::Nothing,
        "items"
        | "prefixItems"
        | "additionalItems"
        | "additionalProperties"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "contains"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => KeywordValue::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" => KeywordValue::Named,
        _ => KeywordValue::Data,
    }
}
