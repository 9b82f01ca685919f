//! Classification of JSON Schema keywords.

/// The kind of value that a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
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

pub(super) fn role(keyword: &str) -> Role {
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
        | "else" => Role::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" => Role::Named,
        "$defs" | "definitions" => Role::Definitions,
        "$ref" => Role::Reference,
        "$dynamicRef" | "$recursiveRef" => Role::Dynamic,
        "required" => Role::Required,
        "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary" | "$comment" => {
            Role::Bookkeeping
        }
        _ => Role::Data,
    }
}
