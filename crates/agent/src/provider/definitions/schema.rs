//! Compilation of a JSON schema for a format: an object at the top level, self-contained, without unsupported keywords.
//!
//! Preserves the order of keys and the digits of numbers. The schema only guides the model; the tool validates the
//! arguments.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use wharf_json::{JsonDecodeError, JsonLimits, RawJson, object_members};

use super::UnencodableReason;
use super::keywords::{COMBINATORS, KeywordValue, keyword_value};
use crate::provider::ApiFormat;

/// Maximum bytes of a schema.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
const SCHEMA_LIMITS: JsonLimits = JsonLimits { depth: 100, nodes: 50_000 };
/// Maximum number of subschemas, counted once per place where they are inlined.
const MAX_SUBSCHEMAS: usize = 5_000;
/// Maximum nesting depth of subschemas, counted after inlining.
const MAX_SCHEMA_DEPTH: usize = 100;

/// A node of the compiled schema.
enum SchemaNode {
    Object(Vec<(String, SchemaNode)>),
    List(Vec<SchemaNode>),
    Data(RawJson),
}

/// Compiles a schema for a format.
pub(super) fn compile_schema(format: ApiFormat, schema: &RawJson) -> Result<RawJson, UnencodableReason> {
    if schema.as_bytes().len() > MAX_SCHEMA_BYTES {
        return Err(UnencodableReason::TooLarge);
    }
    let mut writer =
        SchemaCompiler { format, root: schema, open_references: Vec::new(), subschemas_left: MAX_SUBSCHEMAS };
    let SchemaNode::Object(members) = writer.compile_subschema(schema, 0)? else {
        return Err(UnencodableReason::NotObject);
    };
    let mut text = String::new();
    SchemaNode::Object(normalize_top_level(members)?).write(&mut text);
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(UnencodableReason::TooLarge);
    }
    Ok(RawJson::new_unchecked(text))
}

struct SchemaCompiler<'a> {
    format: ApiFormat,
    root: &'a RawJson,
    /// References being inlined, to detect cycles.
    open_references: Vec<String>,
    subschemas_left: usize,
}

impl SchemaCompiler<'_> {
    fn compile_subschema(&mut self, schema: &RawJson, depth: usize) -> Result<SchemaNode, UnencodableReason> {
        self.subschemas_left = self.subschemas_left.checked_sub(1).ok_or(UnencodableReason::TooLarge)?;
        if depth > MAX_SCHEMA_DEPTH {
            return Err(UnencodableReason::TooLarge);
        }
        match schema.as_bytes().first() {
            Some(b'{') => self.compile_object(schema, depth),
            Some(b'[') => self.compile_list(schema, depth),
            // A boolean schema.
            _ => Ok(SchemaNode::Data(schema.clone())),
        }
    }

    fn compile_list(&mut self, list: &RawJson, depth: usize) -> Result<SchemaNode, UnencodableReason> {
        let items: Vec<&RawValue> = list.decode(&SCHEMA_LIMITS).map_err(withheld_reason)?;
        let items = items.into_iter().map(|item| self.compile_subschema(&list.slice_part(item), depth + 1));
        Ok(SchemaNode::List(items.collect::<Result<_, _>>()?))
    }

    fn compile_object(&mut self, schema: &RawJson, depth: usize) -> Result<SchemaNode, UnencodableReason> {
        let (mut written, mut referred) = (Vec::new(), Vec::new());
        for (key, value) in object_members(schema, &SCHEMA_LIMITS).map_err(withheld_reason)? {
            if key == "$ref" || key == "$dynamicRef" {
                referred = self.inline_reference(&value, depth)?;
                continue;
            }
            let node = match keyword_value(self.format, &key) {
                KeywordValue::Nothing => continue,
                KeywordValue::Data => SchemaNode::Data(value),
                KeywordValue::Schemas => self.compile_subschema(&value, depth + 1)?,
                KeywordValue::Named => self.compile_named(&value, depth + 1)?,
            };
            written.push((key.into_owned(), node));
        }
        // Keywords next to a reference override those of its target.
        referred.retain(|(key, _)| written.iter().all(|(other, _)| other != key));
        written.extend(referred);
        if self.format != ApiFormat::Anthropic && is_array(&written) && !has_key(&written, "items") {
            written.push(("items".to_owned(), SchemaNode::Object(Vec::new())));
        }
        Ok(SchemaNode::Object(written))
    }

    fn compile_named(&mut self, named: &RawJson, depth: usize) -> Result<SchemaNode, UnencodableReason> {
        let list = object_members(named, &SCHEMA_LIMITS).map_err(withheld_reason)?;
        let list =
            list.into_iter().map(|(name, schema)| Ok((name.into_owned(), self.compile_subschema(&schema, depth)?)));
        Ok(SchemaNode::Object(list.collect::<Result<_, UnencodableReason>>()?))
    }

    /// Inlines a reference and returns the members of its target.
    fn inline_reference(
        &mut self,
        reference: &RawJson,
        depth: usize,
    ) -> Result<Vec<(String, SchemaNode)>, UnencodableReason> {
        let reference: String = reference.decode(&SCHEMA_LIMITS).map_err(withheld_reason)?;
        if self.open_references.contains(&reference) {
            return Err(UnencodableReason::Reference(reference));
        }
        let Some(target) = resolve_pointer(self.root, &reference) else {
            return Err(UnencodableReason::Reference(reference));
        };
        self.open_references.push(reference);
        let node = self.compile_subschema(&target, depth + 1)?;
        self.open_references.pop();
        Ok(match node {
            SchemaNode::Object(members) => members,
            // A boolean schema adds no constraints here.
            _ => Vec::new(),
        })
    }
}

/// Returns the target of a reference within the schema, given as a JSON pointer (RFC 6901).
fn resolve_pointer(root: &RawJson, reference: &str) -> Option<RawJson> {
    let path = reference.strip_prefix('#')?;
    // A reference to the root is always recursive.
    let path = path.strip_prefix('/')?;
    let mut found = root.clone();
    for step in path.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        found = child(&found, &step)?;
    }
    Some(found)
}

fn child(parent: &RawJson, step: &str) -> Option<RawJson> {
    if parent.is_object() {
        let list = object_members(parent, &SCHEMA_LIMITS).ok()?;
        return list.into_iter().find(|(key, _)| key == step).map(|(_, value)| value);
    }
    let list: Vec<&RawValue> = parent.decode(&SCHEMA_LIMITS).ok()?;
    list.get(step.parse::<usize>().ok()?).map(|item| parent.slice_part(item))
}

/// Normalizes the top level: sets type `object`, ensures `properties`, and merges the properties of `allOf`, `anyOf`
/// and `oneOf`, which are removed.
fn normalize_top_level(mut members: Vec<(String, SchemaNode)>) -> Result<Vec<(String, SchemaNode)>, UnencodableReason> {
    let choices = members.extract_if(.., |(key, _)| COMBINATORS.contains(&key.as_str())).collect::<Vec<_>>();
    members.retain(|(key, _)| key != "not" && key != "enum");
    if !may_be_object(&members) {
        return Err(UnencodableReason::NotObject);
    }
    members.retain(|(key, _)| key != "type");
    members.insert(0, ("type".to_owned(), SchemaNode::Data(RawJson::new_unchecked(r#""object""#))));
    if !has_key(&members, "properties") {
        members.push(("properties".to_owned(), SchemaNode::Object(Vec::new())));
    }
    let properties = members.iter_mut().find(|(key, _)| key == "properties").map(|(_, node)| node);
    if let Some(SchemaNode::Object(properties)) = properties {
        choices.into_iter().for_each(|(_, choice)| merge_properties(choice, properties));
    }
    Ok(members)
}

/// Adds the properties of a choice, so that the model knows them. Their combinations are lost.
fn merge_properties(choice: SchemaNode, properties: &mut Vec<(String, SchemaNode)>) {
    let members = match choice {
        SchemaNode::List(choices) => {
            return choices.into_iter().for_each(|choice| merge_properties(choice, properties));
        }
        SchemaNode::Object(members) => members,
        SchemaNode::Data(_) => return,
    };
    for (key, node) in members {
        match node {
            SchemaNode::Object(more) if key == "properties" => {
                for (name, node) in more {
                    if !has_key(properties, &name) {
                        properties.push((name, node));
                    }
                }
            }
            node if COMBINATORS.contains(&key.as_str()) => merge_properties(node, properties),
            _ => {}
        }
    }
}

fn has_key(members: &[(String, SchemaNode)], key: &str) -> bool {
    members.iter().any(|(other, _)| other == key)
}

fn may_be_object(members: &[(String, SchemaNode)]) -> bool {
    declared_types(members).is_none_or(|types| types.iter().any(|name| name == "object"))
}

fn is_array(members: &[(String, SchemaNode)]) -> bool {
    declared_types(members).is_some_and(|types| types.iter().any(|name| name == "array"))
}

/// Returns the types that a schema names.
fn declared_types(members: &[(String, SchemaNode)]) -> Option<Vec<Cow<'_, str>>> {
    let (_, node) = members.iter().find(|(key, _)| key == "type")?;
    let SchemaNode::Data(raw) = node else { return None };
    let one = raw.decode::<Cow<'_, str>>(&SCHEMA_LIMITS).map(|name| vec![name]);
    Some(one.or_else(|_| raw.decode(&SCHEMA_LIMITS)).unwrap_or_default())
}

impl SchemaNode {
    fn write(&self, text: &mut String) {
        match self {
            Self::Data(raw) => text.push_str(raw.as_str()),
            Self::List(items) => {
                text.push('[');
                for (n, item) in items.iter().enumerate() {
                    text.push_str(if n > 0 { "," } else { "" });
                    item.write(text);
                }
                text.push(']');
            }
            Self::Object(members) => {
                text.push('{');
                for (n, (key, node)) in members.iter().enumerate() {
                    text.push_str(if n > 0 { "," } else { "" });
                    text.push_str(&Value::from(key.as_str()).to_string());
                    text.push(':');
                    node.write(text);
                }
                text.push('}');
            }
        }
    }
}

fn withheld_reason(error: JsonDecodeError) -> UnencodableReason {
    match error {
        JsonDecodeError::TooComplex(_) => UnencodableReason::TooLarge,
        JsonDecodeError::Shape(_) => UnencodableReason::Invalid,
    }
}
