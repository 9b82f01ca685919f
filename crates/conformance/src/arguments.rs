//! Generates tool arguments from a tool's schema alone.
//!
//! Supports as much of JSON Schema as the suite's tools need. References are resolved within the schema and never
//! fetched.

use serde_json::{Map, Value};
use wharf_wire::{JsonDecodeError, JsonLimits, RawJson};

use crate::ExerciseResult;

/// Maximum nesting depth of a generated value; a schema may refer to itself.
const MAX_VALUE_DEPTH: usize = 8;

/// Returns an object with the required properties of a schema, each with a value of its type.
pub fn arguments_for(schema: Option<&RawJson>) -> ExerciseResult<RawJson> {
    let Some(schema) = schema else { return Ok(RawJson::empty_object()) };
    let schema: Value = schema.decode(&JsonLimits::default()).map_err(|error: JsonDecodeError| error.to_string())?;
    Ok(RawJson::from_value(&generate_object(&schema, &schema, MAX_VALUE_DEPTH))?)
}

fn generate_object(schema: &Value, whole: &Value, depth: usize) -> Value {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = required.iter().filter_map(Value::as_str).map(|name| {
        let property = &schema["properties"][name];
        (name.to_owned(), generate_value(property, whole, depth))
    });
    properties.collect::<Map<_, _>>().into()
}

fn generate_value(schema: &Value, whole: &Value, depth: usize) -> Value {
    let Some(deeper) = depth.checked_sub(1) else { return Value::Null };
    let given = [&schema["const"], &schema["default"], &schema["enum"][0], &schema["examples"][0]];
    if let Some(given) = given.into_iter().find(|given| !given.is_null()) {
        return given.clone();
    }
    let target = schema["$ref"].as_str().and_then(|reference| whole.pointer(reference.strip_prefix('#')?));
    if let Some(target) = target {
        return generate_value(target, whole, deeper);
    }
    match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
        Some("object") => generate_object(schema, whole, deeper),
        Some("array") => Value::Array(Vec::new()),
        Some("boolean") => true.into(),
        Some("integer" | "number") => generate_number(schema),
        Some("null") => Value::Null,
        _ => "wharf".into(),
    }
}

/// Returns the schema's minimum, or 1.
fn generate_number(schema: &Value) -> Value {
    let least = &schema["minimum"];
    if least.is_number() { least.clone() } else { 1.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, expected: &str) {
        let schema = RawJson::parse(schema.to_owned()).unwrap();
        assert_eq!(arguments_for(Some(&schema)).unwrap().as_str(), expected);
    }

    #[test]
    fn required_properties_get_typed_values() {
        assert_eq!(arguments_for(None).unwrap(), RawJson::empty_object());
        check(r#"{"type":"object","properties":{"a":{"type":"number"}}}"#, "{}");
        for (property, expected) in [
            (r#"{"type":"string"}"#, r#""wharf""#),
            (r#"{"type":["integer","null"]}"#, "1"),
            (r#"{"type":"number","minimum":2.5}"#, "2.5"),
            (r#"{"type":"boolean"}"#, "true"),
            (r#"{"type":"boolean","default":false}"#, "false"),
            (r#"{"type":"array","items":{"type":"string"}}"#, "[]"),
            (r#"{"enum":["b","c"]}"#, r#""b""#),
            (r#"{"const":7}"#, "7"),
            (r#"{"type":"object","required":["n"],"properties":{"n":{"type":"null"}}}"#, r#"{"n":null}"#),
            ("{}", r#""wharf""#),
        ] {
            check(
                &format!(r#"{{"type":"object","properties":{{"a":{property}}},"required":["a"]}}"#),
                &format!(r#"{{"a":{expected}}}"#),
            );
        }
    }

    #[test]
    fn references_are_resolved_within_the_schema_only() {
        let with = |reference: &str| {
            format!(
                r##"{{"$defs":{{"id":{{"type":"integer"}},"loop":{{"$ref":"#/$defs/loop"}}}},
                "properties":{{"a":{{"$ref":"{reference}"}}}},"required":["a"]}}"##
            )
        };
        check(&with("#/$defs/id"), r#"{"a":1}"#);
        check(&with("#/$defs/loop"), r#"{"a":null}"#);
        check(&with("#/$defs/none"), r#"{"a":"wharf"}"#);
        check(&with("http://localhost:1/canary"), r#"{"a":"wharf"}"#);
    }
}
