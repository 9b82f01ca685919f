//! The types that a schema allows, and parsing text as one of them.

use serde_json::Value;
use wharf_wire::RawJson;

/// Names of JSON Schema types.
#[derive(Debug, Default)]
pub struct AllowedTypes(pub(super) Vec<String>);

impl AllowedTypes {
    pub(super) fn add(&mut self, name: &str) {
        if !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }

    pub(super) fn allows(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Converts text to JSON. It stays a string if strings are allowed or no type is known.
    ///
    /// # Errors
    ///
    /// Returns a description of the expected types.
    pub fn parse(&self, text: &str) -> Result<RawJson, String> {
        if self.0.is_empty() || self.allows("string") {
            return RawJson::from_value(text).map_err(|error| error.to_string());
        }
        let parsed = RawJson::parse(text.trim().to_owned()).ok();
        parsed.filter(|json| self.fits(json)).ok_or_else(|| self.expected())
    }

    pub(super) fn fits(&self, json: &RawJson) -> bool {
        match json.as_bytes().first() {
            Some(b'{') => self.allows("object"),
            Some(b'[') => self.allows("array"),
            Some(b't' | b'f') => self.allows("boolean"),
            Some(b'n') => self.allows("null"),
            Some(b'"') => self.allows("string"),
            None => false,
            Some(_) => self.allows("number") || (self.allows("integer") && is_whole(json.as_str())),
        }
    }

    pub(super) fn expected(&self) -> String {
        let names = self.0.iter().map(|name| match name.as_str() {
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a JSON array",
            "object" => "a JSON object",
            "string" => "a string",
            name => name,
        });
        names.collect::<Vec<_>>().join(" or ")
    }
}

/// Reports whether a JSON number is an integer. In JSON Schema `1.0` and `1e3` are integers.
fn is_whole(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        || number.parse::<f64>().is_ok_and(|number| number.fract() == 0.0)
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
