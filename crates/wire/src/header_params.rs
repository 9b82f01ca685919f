//! Arguments repeated in HTTP headers: `x-mcp-header` (2026-07-28, Streamable HTTP, custom headers).
//!
//! Reads the annotations of an input schema and the values of a call. The HTTP transport decides about sending headers
//! and about tools with invalid annotations.

mod header_errors;
mod header_value;

use memchr::memmem;
use serde_json::{Map, Number, Value};

use crate::JsonLimits;
use wharf_json::{RawJson, object_members};

pub use header_errors::{HeaderAnnotationError, HeaderValueError};
pub use header_value::encode_header_value;

/// The schema keyword that requests a header.
const ANNOTATION: &str = "x-mcp-header";
/// Keywords with data values; an annotation inside them is an ordinary key.
const DATA_KEYWORDS: [&str; 5] = ["const", "default", "enum", "examples", "required"];
/// Keywords other than `properties` with server-defined keys.
const NAMED_SCHEMA_KEYWORDS: [&str; 5] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"];
/// Maximum number of headers per tool. The protocol has no limit, but each header costs a walk through the arguments.
const MAX_HEADERS: usize = 64;
/// Maximum bytes of a header name. The protocol has no limit, but HTTP intermediaries do.
const MAX_NAME_BYTES: usize = 256;
/// The largest integer that all JSON parsers represent exactly: 2^53 − 1.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Returns the parameter that `Mcp-Name` repeats for a method, if any.
pub fn mcp_name_param(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// One argument that is sent as `Mcp-Param-{header}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// Header name as annotated: an RFC 9110 token, unique ignoring case.
    pub header: String,
    path: Vec<String>,
}

/// Returns the header annotations of an input schema. A schema without annotations costs one search through its bytes.
///
/// # Errors
///
/// Fails on the first invalid annotation. The caller must then withhold the tool over HTTP.
pub fn header_params(schema: &RawJson, bounds: &JsonLimits) -> Result<Vec<HeaderParam>, HeaderAnnotationError> {
    if !may_annotate(schema.as_bytes()) {
        return Ok(Vec::new());
    }
    let value: Value = schema.decode(bounds).map_err(HeaderAnnotationError::Unreadable)?;
    let mut reading = Reading::default();
    reading.visit_schema(&value, Way::Chain)?;
    Ok(reading.found)
}

/// Reports whether the text may contain the keyword, plain or with escaped letters (`\u00..`).
fn may_annotate(text: &[u8]) -> bool {
    memmem::find(text, ANNOTATION.as_bytes()).is_some() || memmem::find(text, br"\u00").is_some()
}

impl HeaderParam {
    /// Returns the property names that lead to the argument: untrusted text.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the header value for these arguments, not yet encoded: see [`encode_header_value`].
    ///
    /// Returns `None` if the argument is absent or `null`; no header may be sent then. Integers are in decimal in any
    /// notation: `42.0` gives `42`.
    ///
    /// # Errors
    ///
    /// Fails if the arguments cannot be decoded, or if the value is not a string, boolean or integer within ±(2^53 −
    /// 1).
    pub fn value(&self, arguments: &RawJson, bounds: &JsonLimits) -> Result<Option<String>, HeaderValueError> {
        let mut here = arguments.clone();
        for name in &self.path {
            if first_byte(&here) != Some(b'{') {
                return Ok(None);
            }
            let list = object_members(&here, bounds).map_err(HeaderValueError::Unreadable)?;
            let Some((_, value)) = list.into_iter().find(|(key, _)| key == name) else { return Ok(None) };
            here = value;
        }
        self.text(&here, bounds)
    }

    fn text(&self, value: &RawJson, bounds: &JsonLimits) -> Result<Option<String>, HeaderValueError> {
        let kind = || HeaderValueError::Kind { property: header_errors::format_path(&self.path) };
        if matches!(first_byte(value), Some(b'{' | b'[')) {
            return Err(kind());
        }
        match value.decode(bounds).map_err(HeaderValueError::Unreadable)? {
            Value::Null => Ok(None),
            Value::Bool(truth) => Ok(Some(truth.to_string())),
            Value::String(text) => Ok(Some(text)),
            Value::Number(number) if is_whole(&number) => match integer(&number) {
                Some(integer) => Ok(Some(integer.to_string())),
                None => Err(HeaderValueError::Range { property: header_errors::format_path(&self.path) }),
            },
            Value::Number(_) | Value::Array(_) | Value::Object(_) => Err(kind()),
        }
    }
}

/// Returns the first non-space byte, which determines the kind of value.
fn first_byte(value: &RawJson) -> Option<u8> {
    value.as_bytes().trim_ascii_start().first().copied()
}

fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Returns an integer if all JSON parsers represent it exactly.
fn integer(number: &Number) -> Option<i64> {
    // Beyond the limit the conversion may round, but never back into range.
    #[expect(clippy::cast_possible_truncation, reason = "it saturates, and then is out of range")]
    let integer = number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))?;
    (-MAX_INTEGER..=MAX_INTEGER).contains(&integer).then_some(integer)
}

/// The path by which the walk reached a schema.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Through `properties` alone: its value has one known location in the arguments.
    Chain,
    /// Through any other keyword.
    Elsewhere,
}

/// A walk through one input schema.
#[derive(Default)]
struct Reading<'a> {
    place: Vec<&'a str>,
    found: Vec<HeaderParam>,
}

impl<'a> Reading<'a> {
    /// Visits a schema or a list of schemas. The recursion depth is limited by the bounds of the text.
    fn visit_schema(&mut self, schema: &'a Value, way: Way) -> Result<(), HeaderAnnotationError> {
        match schema {
            Value::Object(keywords) => {
                if let Some(name) = keywords.get(ANNOTATION) {
                    self.read_annotation(name, keywords, way)?;
                }
                keywords.iter().try_for_each(|(keyword, value)| self.visit_keyword(keyword, value, way))
            }
            Value::Array(list) => list.iter().try_for_each(|one| self.visit_schema(one, Way::Elsewhere)),
            _ => Ok(()),
        }
    }

    fn visit_keyword(&mut self, keyword: &'a str, value: &'a Value, way: Way) -> Result<(), HeaderAnnotationError> {
        match value {
            _ if DATA_KEYWORDS.contains(&keyword) => Ok(()),
            Value::Object(schemas) if keyword == "properties" => self.visit_named(schemas, way),
            Value::Object(schemas) if NAMED_SCHEMA_KEYWORDS.contains(&keyword) => {
                self.descend(keyword, |inner| inner.visit_named(schemas, Way::Elsewhere))
            }
            // An unknown keyword may contain a schema too.
            _ => self.descend(keyword, |inner| inner.visit_schema(value, Way::Elsewhere)),
        }
    }

    fn visit_named(&mut self, schemas: &'a Map<String, Value>, way: Way) -> Result<(), HeaderAnnotationError> {
        schemas.iter().try_for_each(|(name, schema)| self.descend(name, |inner| inner.visit_schema(schema, way)))
    }

    fn descend(
        &mut self,
        key: &'a str,
        walk: impl FnOnce(&mut Self) -> Result<(), HeaderAnnotationError>,
    ) -> Result<(), HeaderAnnotationError> {
        self.place.push(key);
        walk(self)?;
        self.place.pop();
        Ok(())
    }

    fn read_annotation(
        &mut self,
        name: &Value,
        schema: &Map<String, Value>,
        way: Way,
    ) -> Result<(), HeaderAnnotationError> {
        let property = || header_errors::format_path(&self.place);
        if way != Way::Chain {
            return Err(HeaderAnnotationError::OutOfReach { property: property() });
        }
        let Value::String(header) = name else { return Err(HeaderAnnotationError::NotText { property: property() }) };
        if header.is_empty() {
            return Err(HeaderAnnotationError::Empty { property: property() });
        }
        if header.len() > MAX_NAME_BYTES || !header.bytes().all(header_value::is_token) {
            return Err(HeaderAnnotationError::NotToken {
                property: property(),
                header: header_errors::escape_short(header),
            });
        }
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(HeaderAnnotationError::Type { property: property() });
        }
        if self.found.iter().any(|other| other.header.eq_ignore_ascii_case(header)) {
            return Err(HeaderAnnotationError::Duplicate {
                property: property(),
                header: header_errors::escape_short(header),
            });
        }
        if self.found.len() == MAX_HEADERS {
            return Err(HeaderAnnotationError::TooMany { most: MAX_HEADERS });
        }
        let path = self.place.iter().map(|&name| name.to_owned()).collect();
        self.found.push(HeaderParam { header: header.clone(), path });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
