//! The tool through which a model calls deferred tools.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use wharf_json::{JsonLimits, RawJson};
use wharf_tools::ToolOutcome;

use crate::provider::ModelToolDefinition;

/// Returns the tool's definition.
pub(super) fn definition(name: &str, search: &str) -> ModelToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": format!("Name of the tool, as returned by {search}.") },
            "arguments": { "type": "object", "description": "Arguments of the tool, matching its schema." },
        },
        "required": ["name", "arguments"],
    });
    let description = format!("Calls a tool found with {search}.");
    ModelToolDefinition { name: name.to_owned(), description, schema: RawJson::new_unchecked(schema.to_string()) }
}

/// Parses the tool name and its arguments, which are preserved byte for byte. Returns an error outcome for the model if
/// they are malformed.
pub(super) fn parse_arguments(arguments: &RawJson) -> Result<(String, RawJson), ToolOutcome> {
    let wrong = |what: &str| ToolOutcome::error(format!("{what}. Expected: {{\"name\": …, \"arguments\": {{…}}}}"));
    let call: DeferredCallArguments<'_> =
        arguments.decode(&JsonLimits::default()).map_err(|error| wrong(&error.to_string()))?;
    match call.arguments.map(|given| arguments.slice_part(given)) {
        None => Ok((call.name, RawJson::empty_object())),
        Some(given) if given.is_object() => Ok((call.name, given)),
        Some(given) => parse_quoted_object(&given)
            .map(|given| (call.name, given))
            .ok_or_else(|| wrong("`arguments` is not an object")),
    }
}

/// Parses an object inside a JSON string, which is how some models write arguments.
fn parse_quoted_object(given: &RawJson) -> Option<RawJson> {
    let text: String = given.decode(&JsonLimits::default()).ok()?;
    RawJson::parse(text.trim().to_owned()).ok().filter(RawJson::is_object)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeferredCallArguments<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}
