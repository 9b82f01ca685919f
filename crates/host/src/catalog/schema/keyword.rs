//! Classification of JSON Schema keywords.

/// The kind of value that a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordRole {
    /// A schema or a list of schemas.
    Schemas,
    /// Schemas by name.
    Named,
    /// Schemas by name that apply only if they are referenced.
    Definitions,
    /// A reference to another schema.
    Reference,
    /// A reference that is resolved during validation.
    Dynamic,
    /// Argument names.
    Required,
    /// Metadata for schema tools, not for models.
    Bookkeeping,
    /// Text and data.
    Data,
}

pub(super) fn keyword_role(keyword: &str) -> KeywordRole {
    match keyword {
        "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "then"
        | "else" => KeywordRole::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" => KeywordRole::Named,
        "$defs" | "definitions" => KeywordRole::Definitions,
        "$ref" => KeywordRole::Reference,
        "$dynamicRef" | "$recursiveRef" => KeywordRole::Dynamic,
        "required" => KeywordRole::Required,
        "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary" | "$comment" => {
            KeywordRole::Bookkeeping
        }
        _ => KeywordRole::Data,
    }
}
