//! What a tool's input schema says that matters at the command line: names, which are needed, and their types.
//!
//! Not a validator. Where a schema is too clever to follow, it says nothing, and the server has the word.

use serde_json::{Map, Value};
use wharf_wire::{Bounds, Raw};

/// References followed before giving up.
const MOST_STEPS: usize = 8;

/// A tool's input schema.
pub struct Schema(Value);

impl Schema {
    /// Reads a schema; one that cannot be read knows nothing.
    pub fn read(raw: &Raw) -> Self {
        Self(raw.decode(&Bounds::default()).unwrap_or_default())
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

    /// Whether nothing but the named arguments may be given.
    pub fn is_closed(&self) -> bool {
        let says = |key: &str| self.0.get(key);
        says("additionalProperties") == Some(&Value::Bool(false))
            && ["patternProperties", "allOf", "anyOf", "oneOf", "$ref"].iter().all(|key| says(key).is_none())
    }

    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.0.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// The types an argument may have; none are known where the schema does not say.
    pub fn types_of(&self, name: &str) -> Types {
        let mut types = Types::default();
        if let Some(property) = self.properties().and_then(|properties| properties.get(name)) {
            self.collect(property, &mut types, MOST_STEPS);
        }
        types
    }

    fn collect(&self, schema: &Value, types: &mut Types, steps: usize) {
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
            let mut of_part = Types::default();
            self.collect(part, &mut of_part, steps - 1);
            of_part.0.iter().for_each(|name| types.add(name));
        }
        let target =
            schema.get("$ref").and_then(Value::as_str).and_then(|path| self.0.pointer(path.strip_prefix('#')?));
        if let Some(target) = target {
            self.collect(target, types, steps - 1);
        }
    }

    /// All arguments in one line, those that may be left out in brackets.
    pub fn usage(&self) -> String {
        let needed: Vec<&str> = self.required().collect();
        let told = |name: &str| {
            let of = self.types_of(name).0.join("|");
            let of = if of.is_empty() { "…".to_owned() } else { of };
            if needed.contains(&name) { format!("{name}={of}") } else { format!("[{name}={of}]") }
        };
        let mut names: Vec<&str> = self.names().collect();
        names.sort_by_key(|name| !needed.contains(name));
        match names.as_slice() {
            [] => "it takes no arguments".to_owned(),
            names => format!("it takes: {}", names.iter().map(|name| told(name)).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// Names of JSON Schema types.
#[derive(Debug, Default)]
pub struct Types(Vec<String>);

impl Types {
    fn add(&mut self, name: &str) {
        if !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }

    fn allows(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Makes JSON of a text, or tells what was wanted. A text stays text wherever text is allowed or nothing is known.
    pub fn read(&self, text: &str) -> Result<Raw, String> {
        if self.0.is_empty() || self.allows("string") {
            return Raw::of(text).map_err(|error| error.to_string());
        }
        let parsed = Raw::parse(text.trim().to_owned()).ok();
        parsed.filter(|json| self.fits(json)).ok_or_else(|| self.wanted())
    }

    fn fits(&self, json: &Raw) -> bool {
        match json.as_bytes().first() {
            Some(b'{') => self.allows("object"),
            Some(b'[') => self.allows("array"),
            Some(b't' | b'f') => self.allows("boolean"),
            Some(b'n') => self.allows("null"),
            Some(b'"') | None => false,
            Some(_) => self.allows("number") || (self.allows("integer") && is_whole(json.get())),
        }
    }

    fn wanted(&self) -> String {
        let names = self.0.iter().map(|name| match name.as_str() {
            "integer" => "an integer",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a JSON array",
            "object" => "a JSON object",
            name => name,
        });
        names.collect::<Vec<_>>().join(" or ")
    }
}

/// Whether a JSON number has no fraction; `1.0` and `1e3` are integers to JSON Schema.
fn is_whole(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        || number.parse::<f64>().is_ok_and(|number| number.fract() == 0.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
