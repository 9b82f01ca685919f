//! Measurement of a schema's size before it is compiled.
//!
//! A few references can expand to very much: thirty definitions that each refer to the next one twice expand to a
//! thousand million. Therefore every target is measured once, and references add its measure.

use std::collections::HashMap;

use crate::catalog::SchemaError;
use crate::catalog::tree::JsonTree;

use super::keyword::{KeywordRole, keyword_role};

/// Maximum number of schemas as written.
const MAX_SCHEMAS: usize = 5_000;
/// Maximum nesting of schemas as written.
const MAX_SCHEMA_DEPTH: usize = 32;
/// Maximum length of a path through schemas and references before it repeats.
const MAX_REFERENCE_PATH: usize = 200;
/// Maximum number of schemas with all references followed.
const MAX_SCHEMA_COST: u64 = 1_000_000;
/// Maximum steps and bytes of a measurement. Only references to the same target in many spellings, or into the middle
/// of each other, come close.
const MAX_MEASURE_STEPS: usize = 50_000;
const MAX_MEASURED_BYTES: usize = 16 * 1024 * 1024;

/// Size of a schema with all references followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SchemaSize {
    /// Number of schemas.
    pub cost: u64,
    /// Approximate bytes when written.
    pub bytes: usize,
    /// Set if it refers to itself, directly or indirectly.
    pub cyclic: bool,
}

/// Measures of all reference targets.
pub(super) struct ReferenceSizes<'t, 'a> {
    root: &'t JsonTree<'a>,
    /// `None` while a target is being measured.
    targets: HashMap<&'t str, Option<SchemaSize>>,
    steps: usize,
    bytes: usize,
}

impl<'t, 'a> ReferenceSizes<'t, 'a> {
    /// Measures a schema. Returns an error if it exceeds a limit.
    pub fn measure(root: &'t JsonTree<'a>) -> Result<Self, SchemaError> {
        count_schemas(root, 0, &mut 0)?;
        let mut measures = Self { root, targets: HashMap::from([("#", None)]), steps: 0, bytes: 0 };
        let whole = measures.measure_schema(root, 0)?;
        if whole.cost > MAX_SCHEMA_COST { Err(SchemaError::TooCostly) } else { Ok(measures) }
    }

    /// Returns the target of a reference within this schema, and its measure unless it is cyclic.
    pub fn target(&self, reference: &str) -> Option<(&'t JsonTree<'a>, Option<SchemaSize>)> {
        let measure = self.targets.get(reference).copied().flatten().filter(|measure| !measure.cyclic);
        Some((resolve_pointer(self.root, reference)?, measure))
    }

    fn measure_schema(&mut self, tree: &'t JsonTree<'a>, way: usize) -> Result<SchemaSize, SchemaError> {
        let mut total = SchemaSize { cost: 1, bytes: written_size(tree), cyclic: false };
        self.steps += 1;
        self.bytes += total.bytes;
        if self.steps > MAX_MEASURE_STEPS || self.bytes > MAX_MEASURED_BYTES {
            return Err(SchemaError::TooCostly);
        }
        if way > MAX_REFERENCE_PATH {
            return Err(SchemaError::TooDeep);
        }
        let JsonTree::Object(members) = tree else { return Ok(total) };
        for (key, value) in members {
            match (keyword_role(key), value) {
                (KeywordRole::Reference, JsonTree::Text(reference)) => {
                    total.add(self.measure_reference(reference, way + 1)?)
                }
                (role, _) => {
                    for inner in nested_schemas(role, value) {
                        // The bytes of `inner` are already part of the whole, but those of its references are not.
                        let SchemaSize { cost, bytes, cyclic } = self.measure_schema(inner, way + 1)?;
                        total.add(SchemaSize { cost, bytes: bytes - written_size(inner), cyclic });
                    }
                }
            }
        }
        Ok(total)
    }

    fn measure_reference(&mut self, reference: &'t str, way: usize) -> Result<SchemaSize, SchemaError> {
        match self.targets.get(reference) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Ok(SchemaSize { cost: 1, bytes: 0, cyclic: true }),
            None => {}
        }
        let Some(target) = resolve_pointer(self.root, reference) else { return Ok(SchemaSize::default()) };
        self.targets.insert(reference, None);
        let measure = self.measure_schema(target, way)?;
        self.targets.insert(reference, Some(measure));
        Ok(measure)
    }
}

impl SchemaSize {
    fn add(&mut self, other: Self) {
        self.cost = self.cost.saturating_add(other.cost);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.cyclic |= other.cyclic;
    }
}

/// Returns the schemas directly within a keyword's value, except definitions.
fn nested_schemas<'t, 'a>(
    role: KeywordRole,
    value: &'t JsonTree<'a>,
) -> Box<dyn Iterator<Item = &'t JsonTree<'a>> + 't> {
    match (role, value) {
        (KeywordRole::Schemas, JsonTree::List(list)) => Box::new(list.iter()),
        (KeywordRole::Schemas, one) => Box::new(std::iter::once(one)),
        (KeywordRole::Named, JsonTree::Object(members)) => Box::new(members.iter().map(|(_, value)| value)),
        _ => Box::new(std::iter::empty()),
    }
}

/// Counts the schemas as written, including definitions.
fn count_schemas(tree: &JsonTree<'_>, depth: usize, number: &mut usize) -> Result<(), SchemaError> {
    let JsonTree::Object(members) = tree else { return Ok(()) };
    *number += 1;
    if *number > MAX_SCHEMAS {
        return Err(SchemaError::TooMany);
    }
    if depth > MAX_SCHEMA_DEPTH {
        return Err(SchemaError::TooDeep);
    }
    for (key, value) in members {
        let role = if keyword_role(key) == KeywordRole::Definitions { KeywordRole::Named } else { keyword_role(key) };
        nested_schemas(role, value).try_for_each(|inner| count_schemas(inner, depth + 1, number))?;
    }
    Ok(())
}

/// Returns the approximate bytes of a value when written, excluding definitions.
fn written_size(tree: &JsonTree<'_>) -> usize {
    match tree {
        JsonTree::Scalar(text) => text.len(),
        JsonTree::Text(text) => text.len() + 2,
        JsonTree::List(items) => items.iter().map(|item| written_size(item) + 1).sum::<usize>() + 2,
        JsonTree::Object(members) => {
            let written = members.iter().filter(|(key, _)| keyword_role(key) != KeywordRole::Definitions);
            written.map(|(key, value)| key.len() + written_size(value) + 4).sum::<usize>() + 2
        }
    }
}

/// Returns the target of a reference within the same document: `#`, or `#` and a JSON pointer (RFC 6901).
pub(super) fn resolve_pointer<'t, 'a>(root: &'t JsonTree<'a>, reference: &str) -> Option<&'t JsonTree<'a>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(root, |tree, step| {
        let step = unescape_step(step)?;
        match tree {
            JsonTree::List(items) => items.get(step.parse::<usize>().ok()?),
            other => other.member(&step),
        }
    })
}

/// Decodes a step of a JSON pointer in a URI: percent-encoding, `~1` for `/` and `~0` for `~`.
fn unescape_step(step: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(step.len());
    let mut rest = step.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8(bytes).ok()?.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use wharf_json::{JsonLimits, RawJson};

    use super::*;

    fn measure_text(text: &str) -> Result<u64, SchemaError> {
        let raw = RawJson::parse(text.to_owned()).unwrap();
        let tree = JsonTree::parse(&raw, &JsonLimits { depth: 256, nodes: usize::MAX }).unwrap();
        count_schemas(&tree, 0, &mut 0)?;
        let mut measures = ReferenceSizes { root: &tree, targets: HashMap::from([("#", None)]), steps: 0, bytes: 0 };
        measures.measure_schema(&tree, 0).map(|whole| whole.cost)
    }

    /// Each definition refers to the next one twice.
    fn doubling_schema(levels: usize) -> String {
        let level = |n: usize| {
            let next = n + 1;
            format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}}"##)
        };
        let all: Vec<String> = (0..levels).map(level).collect();
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{levels}":{{}}}}}}"##, all.join(","))
    }

    #[test]
    fn references_cost_each_time_they_are_followed() {
        for (text, cost) in [
            ("{}", Ok(1)),
            (r#"{"properties":{"a":{},"b":{"items":[{},{}]}}}"#, Ok(5)),
            (r##"{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"not":{}}}}"##, Ok(7)),
            (r##"{"properties":{"a":{"$ref":"#"}}}"##, Ok(3)),
            (r##"{"properties":{"$ref":{"type":"string"}},"default":{"$ref":"#","items":{}}}"##, Ok(2)),
            (r#"{"$ref":"https://example.org/x"}"#, Ok(1)),
            (r##"{"a~b/c":{"not":{}},"not":{"$ref":"#/a~0b~1c"},"if":{"$ref":"#/%61~0b~1c"}}"##, Ok(7)),
        ] {
            assert_eq!(measure_text(text), cost, "{text}");
        }
        assert_eq!(measure_text(&doubling_schema(10)), Ok(4 * 1024 - 2));
    }

    #[test]
    fn excessive_schemas_are_detected_without_expansion() {
        let nested = |levels: usize| format!("{}{{}}{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
        let chain: Vec<String> = (0..300).map(|n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}}"##, n + 1)).collect();
        let properties = |count: usize| {
            let each: Vec<String> = (0..count).map(|n| format!(r#""p{n}":{{}}"#)).collect();
            format!(r#"{{"properties":{{{}}}}}"#, each.join(","))
        };
        for (text, expected) in [
            (nested(32), Ok(33)),
            (nested(33), Err(SchemaError::TooDeep)),
            (properties(4_999), Ok(5_000)),
            (properties(5_000), Err(SchemaError::TooMany)),
            (format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{}}}}}"##, chain.join(",")), Err(SchemaError::TooDeep)),
        ] {
            assert_eq!(measure_text(&text), expected, "{} bytes", text.len());
        }
        for levels in [20, 40, 63, 64, 90] {
            assert!(measure_text(&doubling_schema(levels)).unwrap() > MAX_SCHEMA_COST);
        }
    }
}
