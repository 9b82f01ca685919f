//! What each format understands of JSON schema.

use crate::provider::Format;

/// What stands behind a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Nothing the provider wants to see.
    Nothing,
    /// A schema, or a list of them.
    Schemas,
    /// Schemas by names of somebody's choice.
    Named,
    /// What is no schema.
    Data,
}

/// Keywords about the schema itself, and definitions whose place has been taken by what they define.
const ABOUT: [&str; 11] = [
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

/// Keywords that OpenAI's formats refuse, or that local servers which make a grammar of the schema stumble over.
const NOT_FOR_OPENAI: [&str; 14] = [
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

/// Keywords that may not stand at the top.
pub(super) const CHOICES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// What stands behind a keyword in this format.
pub(super) fn holds(format: Format, keyword: &str) -> Holds {
    match keyword {
        _ if ABOUT.contains(&keyword) => Holds::Nothing,
        _ if format != Format::Anthropic && NOT_FOR_OPENAI.contains(&keyword) => Holds::Nothing,
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
        | "unevaluatedProperties" => Holds::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" => Holds::Named,
        _ => Holds::Data,
    }
}
