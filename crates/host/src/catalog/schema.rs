//! Compilation of tool schemas for models.
//!
//! The server's definition keeps the original. The copy for models is a plain object without keywords that providers
//! reject, bounded in size, sanitized in every string, and self-contained: nothing is fetched. It guides the model; the
//! server validates arguments against the original.

mod copy;
mod flatten;
mod keyword;
mod measure;
mod references;

use std::borrow::Cow;

use wharf_json::{JsonDecodeError, JsonLimitExceeded, JsonLimits, RawJson};

use super::tree::{JsonMembers, JsonTree};
use super::warnings::{SchemaError, ToolWarning};
use measure::ReferenceSizes;

/// Maximum bytes of a schema.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// Parsing bounds. Nested schemas are counted separately.
const SCHEMA_BOUNDS: JsonLimits = JsonLimits { depth: 128, nodes: 100_000 };

/// A compiled schema, with the changes made to it.
#[derive(Debug, Clone)]
pub struct CompiledSchema {
    /// The schema: an object with `"type":"object"`.
    pub schema: RawJson,
    /// The changes made to the schema.
    pub marks: Vec<ToolWarning>,
}

/// Compiles a schema for models.
///
/// A schema that needs no change shares the original bytes. Otherwise keys keep their order and numbers their digits. A
/// missing, invalid or excessive schema is replaced by one that accepts any object.
pub fn compile_schema(schema: Option<&RawJson>) -> CompiledSchema {
    schema.ok_or(SchemaError::Missing).and_then(try_compile).unwrap_or_else(|fault| CompiledSchema {
        schema: RawJson::new_unchecked(r#"{"type":"object","additionalProperties":true}"#),
        marks: vec![ToolWarning::SchemaReplaced(fault)],
    })
}

fn try_compile(schema: &RawJson) -> Result<CompiledSchema, SchemaError> {
    if schema.as_bytes().len() > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLarge);
    }
    // Providers reject lone surrogates.
    let schema = &schema.with_valid_unicode();
    let tree = JsonTree::parse(schema, &SCHEMA_BOUNDS).map_err(to_schema_error)?;
    if !may_be_object(&tree) {
        return Err(SchemaError::NotObject);
    }
    if tree.has_duplicate_keys() {
        return Err(SchemaError::Invalid);
    }
    let (mut members, mut marks) = copy::copy_schema_tree(&tree, &ReferenceSizes::measure(&tree)?);
    if !flatten::is_flat(&members) {
        members = flatten::flatten(members);
        marks.push(ToolWarning::SchemaFlattened);
    }
    let (top, dropped) = references::drop_dangling(with_object_type(members));
    if let Some(reference) =
        dropped.filter(|_| !marks.iter().any(|mark| matches!(mark, ToolWarning::ReferenceDropped(_))))
    {
        marks.push(ToolWarning::ReferenceDropped(reference));
    }
    Ok(CompiledSchema { schema: if top == tree { schema.clone() } else { to_raw(&top) }, marks })
}

fn to_schema_error(error: JsonDecodeError) -> SchemaError {
    match error {
        JsonDecodeError::TooComplex(JsonLimitExceeded::Depth(_)) => SchemaError::TooDeep,
        JsonDecodeError::TooComplex(JsonLimitExceeded::Nodes(_)) => SchemaError::TooMany,
        JsonDecodeError::Shape(_) => SchemaError::Invalid,
    }
}

/// Reports whether a schema can describe an object, judging by its type.
fn may_be_object(schema: &JsonTree<'_>) -> bool {
    match (schema, schema.member("type")) {
        (JsonTree::Object(_), None) => true,
        (_, Some(JsonTree::Text(name))) => name == "object",
        (_, Some(JsonTree::List(names))) => names.iter().any(|name| name.text() == Some("object")),
        _ => false,
    }
}

fn with_object_type(mut members: JsonMembers<'_>) -> JsonMembers<'_> {
    let object = JsonTree::Text(Cow::Borrowed("object"));
    match members.iter_mut().find(|(key, _)| key == "type") {
        Some((_, value)) => *value = object,
        None => members.insert(0, (Cow::Borrowed("type"), object)),
    }
    members
}

fn to_raw(tree: &JsonTree<'_>) -> RawJson {
    let mut text = String::new();
    tree.write(&mut text);
    RawJson::new_unchecked(text)
}

#[cfg(test)]
mod tests;
