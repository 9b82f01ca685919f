//! Checks a tool's arguments against its own input schema.
//!
//! Supports the keywords that this server's schemas use. The errors are plain sentences: their reader is a person or a
//! model that wants to retry.

use serde_json::{Map, Value};

/// Checks `arguments` against `schema`.
///
/// # Errors
///
/// Returns one sentence that names the argument.
pub fn check_arguments(schema: &Value, arguments: &Map<String, Value>) -> Result<(), String> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !arguments.contains_key(name) {
            return Err(format!("The argument `{name}` is missing."));
        }
    }
    for (name, value) in arguments {
        match properties.get(name) {
            Some(property) => check_value(name, property, value)?,
            None if schema["additionalProperties"] == false => {
                return Err(unknown_argument(name, properties));
            }
            None => {}
        }
    }
    Ok(())
}

fn check_value(name: &str, property: &Value, value: &Value) -> Result<(), String> {
    let expected = property["type"].as_str().unwrap_or_default();
    let fits = match expected {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        // In JSON Schema, 5.0 is an integer.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    if !fits {
        return Err(format!("The argument `{name}` must be of type {expected}, not {value}."));
    }
    if let Some(choices) = property["enum"].as_array()
        && !choices.contains(value)
    {
        let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
        return Err(format!("The argument `{name}` must be one of {}, not {value}.", choices.join(", ")));
    }
    let bound = |keyword: &str| property[keyword].as_f64();
    match (value.as_f64(), bound("minimum"), bound("maximum")) {
        (Some(number), Some(least), _) if number < least => {
            Err(format!("The argument `{name}` must be at least {least}, not {value}."))
        }
        (Some(number), _, Some(most)) if number > most => {
            Err(format!("The argument `{name}` must be at most {most}, not {value}."))
        }
        _ => Ok(()),
    }
}

fn unknown_argument(name: &str, properties: &Map<String, Value>) -> String {
    let known: Vec<_> = properties.keys().map(|name| format!("`{name}`")).collect();
    if known.is_empty() {
        format!("There is no argument `{name}`; this tool takes none.")
    } else {
        format!("There is no argument `{name}`; this tool takes {}.", known.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer", "minimum": 1, "maximum": 10},
                "side": {"type": "string", "enum": ["port", "starboard"]},
                "loud": {"type": "boolean"},
            },
            "required": ["text"],
            "additionalProperties": false,
        });
        let found = super::check_arguments(&schema, arguments.as_object().unwrap());
        assert_eq!(found.err().unwrap_or_default(), expected, "{arguments}");
    }

    #[test]
    fn invalid_arguments_have_specific_messages() {
        check(json!({"text": "a"}), "");
        check(json!({"text": "a", "count": 10.0}), "");
        check(json!({}), "The argument `text` is missing.");
        check(json!({"text": 1}), "The argument `text` must be of type string, not 1.");
        check(json!({"text": "", "count": 1.5}), "The argument `count` must be of type integer, not 1.5.");
        check(json!({"text": "", "count": 0}), "The argument `count` must be at least 1, not 0.");
        check(json!({"text": "", "count": 11}), "The argument `count` must be at most 10, not 11.");
        check(
            json!({"text": "", "size": 1}),
            "There is no argument `size`; this tool takes `count` and `loud` and `side` and `text`.",
        );
        check(json!({"text": "", "loud": 1}), "The argument `loud` must be of type boolean, not 1.");
        let choices = r#"The argument `side` must be one of "port", "starboard", not "aft"."#;
        check(json!({"text": "", "side": "aft"}), choices);
    }
}
