//! The parts of a tool's input schema that matter on the command line: names, required names and types.
//!
//! This is not a validator. Unsupported constructs are ignored and left to the server.

use serde_json::{Map, Value};
use wharf_wire::{JsonLimits, RawJson};

use super::types::{AllowedTypes, type_of};

/// Maximum number of references to follow.
const MAX_REFERENCES: usize = 8;

/// A tool's input schema.
pub struct InputSchema(Value);

impl InputSchema {
    /// Decodes a schema. An invalid schema becomes an empty one.
    pub fn decode(raw: &RawJson) -> Self {
        Self(raw.decode(&JsonLimits::default()).unwrap_or_default())
    }

    fn properties(&self) -> Option<&Map<String, Value>> {
        self.0.get("properties")?.as_object()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.properties().into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }

    pub fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Reports whether the schema forbids arguments it does not name.
    pub fn is_closed(&self) -> bool {
        let says = |key: &str| self.0.get(key);
        says("additionalProperties") == Some(&Value::Bool(false))
            && ["patternProperties", "allOf", "anyOf", "oneOf", "$ref"].iter().all(|key| says(key).is_none())
    }

    /// Reports whether the schema names arguments without allowing or forbidding others.
    pub fn leaves_others_open(&self) -> bool {
        let says = |key: &str| self.0.get(key).is_some();
        self.names().next().is_some()
            && !["additionalProperties", "patternProperties", "unevaluatedProperties"].into_iter().any(says)
            && !["allOf", "anyOf", "oneOf", "$ref"].into_iter().any(says)
    }

    /// Maps an option to an argument name: `--max-items` also matches `maxItems` or `max_items` if exactly one exists.
    pub fn resolve_spelling<'a>(&'a self, option: &'a str) -> &'a str {
        let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
        let mut alike = self.names().filter(|name| plain(name) == plain(option));
        match (self.has(option), alike.next(), alike.next()) {
            (false, Some(name), None) => name,
            _ => option,
        }
    }

    /// Reports whether an argument is a boolean and has no other type.
    pub fn is_flag(&self, name: &str) -> bool {
        matches!(self.types_of(name).0.as_slice(), [only] if only == "boolean")
    }

    /// Reports whether an argument may be a boolean. True if its type is unknown.
    pub fn may_be_flag(&self, name: &str) -> bool {
        let types = self.types_of(name);
        types.0.is_empty() || types.allows("boolean")
    }

    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.0.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns the types that an argument may have. Empty if unknown.
    pub fn types_of(&self, name: &str) -> AllowedTypes {
        let mut types = AllowedTypes::default();
        if let Some(property) = self.properties().and_then(|properties| properties.get(name)) {
            self.collect(property, &mut types, MAX_REFERENCES);
        }
        types
    }

    /// Returns a keyword of an argument's own schema, following references.
    pub(super) fn keyword(&self, name: &str, key: &str) -> Option<&Value> {
        let mut schema = self.properties()?.get(name)?;
        for _ in 0..MAX_REFERENCES {
            match (schema.get(key), self.target(schema)) {
                (Some(value), _) => return Some(value),
                (None, Some(target)) => schema = target,
                (None, None) => return None,
            }
        }
        None
    }

    fn target(&self, schema: &Value) -> Option<&Value> {
        self.0.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// Returns a description of the expected value if a value does not match. Checks only simple constraints.
    pub fn mismatch(&self, name: &str, value: &RawJson) -> Option<String> {
        let types = self.types_of(name);
        if !types.0.is_empty() && !types.fits(value) {
            return Some(types.expected());
        }
        let known: Value = value.decode(&JsonLimits::default()).ok()?;
        if let Some(allowed) = self.keyword(name, "enum").and_then(Value::as_array).filter(|all| !all.contains(&known))
        {
            return Some(format!("one of {}", quote_values(allowed)));
        }
        if let Some(only) = self.keyword(name, "const").filter(|only| **only != known) {
            return Some(quote_values(std::slice::from_ref(only)));
        }
        let number = known.as_f64()?;
        let bound = |key: &str| self.keyword(name, key).and_then(Value::as_f64);
        let broken = [
            ("at least", bound("minimum").filter(|least| number < *least)),
            ("at most", bound("maximum").filter(|most| number > *most)),
            ("more than", bound("exclusiveMinimum").filter(|least| number <= *least)),
            ("less than", bound("exclusiveMaximum").filter(|most| number >= *most)),
        ];
        broken.into_iter().find_map(|(word, bound)| Some(format!("{word} {}", bound?)))
    }

    fn collect(&self, schema: &Value, types: &mut AllowedTypes, steps: usize) {
        if steps == 0 {
            return;
        }
        match schema.get("type") {
            Some(Value::String(name)) => types.add(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(|name| types.add(name)),
            _ => {}
        }
        if !types.0.is_empty() {
            return;
        }
        let listed = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        listed("enum").chain(schema.get("const")).for_each(|value| types.add(type_of(value)));
        for part in listed("anyOf").chain(listed("oneOf")).chain(listed("allOf")) {
            let mut of_part = AllowedTypes::default();
            self.collect(part, &mut of_part, steps - 1);
            of_part.0.iter().for_each(|name| types.add(name));
        }
        if let Some(target) = self.target(schema) {
            self.collect(target, types, steps - 1);
        }
    }

    /// Formats all arguments on one line, optional ones in brackets.
    pub fn usage(&self) -> String {
        let needed: Vec<&str> = self.required().collect();
        let field_text = |name: &str| {
            let of = self.types_of(name).0.join("|");
            let of = if of.is_empty() { "…".to_owned() } else { of };
            if needed.contains(&name) { format!("{name}={of}") } else { format!("[{name}={of}]") }
        };
        let mut names: Vec<&str> = self.names().collect();
        names.sort_by_key(|name| !needed.contains(name));
        match names.as_slice() {
            [] => "the tool takes no arguments".to_owned(),
            names => format!("arguments: {}", names.iter().map(|name| field_text(name)).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// Formats values as typed, in backquotes.
pub(super) fn quote_values(values: &[Value]) -> String {
    values.iter().map(|value| format!("`{}`", value_as_typed(value))).collect::<Vec<_>>().join(", ")
}

/// Formats a value as typed: a string without quotes.
pub(super) fn value_as_typed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
