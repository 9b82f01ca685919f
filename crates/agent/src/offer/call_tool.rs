//! The tool through which a model calls deferred tools.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use wharf_json::{Bounds, Raw};
use wharf_tools::Outcome;

use crate::provider::Definition;

/// Returns the tool's definition.
pub(super) fn definition(name: &str, search: &str) -> Definition {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": format!("The tool's name, as {search} gives it.") },
            "arguments": { "type": "object", "description": "The tool's arguments, as its schema has them." },
        },
        "required": ["name", "arguments"],
    });
    let description = format!("Calls a tool that {search} has found.");
    Definition { name: name.to_owned(), description, schema: Raw::known(schema.to_string()) }
}

/// Parses the tool name and its arguments, which are preserved byte for byte. Returns an error outcome for the model if
/// they are malformed.
pub(super) fn read(arguments: &Raw) -> Result<(String, Raw), Outcome> {
    let wrong = |what: &str| Outcome::error(format!("{what}; call it with {{\"name\": …, \"arguments\": {{…}}}}"));
    let wanted: WantedCall<'_> = arguments.decode(&Bounds::default()).map_err(|error| wrong(&error.to_string()))?;
    match wanted.arguments.map(|given| arguments.part(given)) {
        None => Ok((wanted.name, Raw::empty_object())),
        Some(given) if given.is_object() => Ok((wanted.name, given)),
        Some(given) => {
            unquoted(&given).map(|given| (wanted.name, given)).ok_or_else(|| wrong("`arguments` is no object"))
        }
    }
}

/// Parses an object inside a JSON string, which is how some models write arguments.
fn unquoted(given: &Raw) -> Option<Raw> {
    let text: String = given.decode(&Bounds::default()).ok()?;
    Raw::parse(text.trim().to_owned()).ok().filter(Raw::is_object)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedCall<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}
