//! What the words of a schema mean to whoever walks it.

/// What the value of a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A schema, or a list of them.
    Schemas,
    /// Schemas by name.
    Named,
    /// Schemas by name that only count where something refers to them.
    Definitions,
    /// A reference to another schema.
    Reference,
    /// A reference that is looked up while arguments are checked.
    Dynamic,
    /// Names of arguments.
    Required,
    /// Something for those who keep schemas, which no model needs.
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
