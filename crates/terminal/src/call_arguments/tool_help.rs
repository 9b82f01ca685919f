//! Help on a tool's arguments: their types and example calls. All text is escaped.

use serde_json::Value;
use wharf_spec::UntrustedText;
use wharf_wire::ToolDefinition;

use super::InputSchema;
use super::schema::{quote_values, value_as_typed};
use crate::style::{HEADING, NAME, QUIET, paint};

/// Maximum characters of a description, and of a default or a list of values.
const MAX_DESCRIPTION_LEN: usize = 2_000;
const MAX_VALUES_LEN: usize = 300;

/// Help text of `wharf call SERVER TOOL --help`.
pub struct ToolHelp<'a> {
    /// Start of the command line, as in `wharf call git log`.
    pub line: &'a str,
    pub tool: &'a ToolDefinition,
}

impl ToolHelp<'_> {
    /// Returns the whole help text.
    pub fn text(&self) -> String {
        let schema = self.tool.input_schema.as_ref().map(InputSchema::decode);
        let title = UntrustedText::new(self.tool.display_name()).truncate(200).to_string();
        let mut text = format!("{}\n", paint(HEADING, title));
        if let Some(about) = self.tool.description.as_deref() {
            let about = about.trim().chars().take(MAX_DESCRIPTION_LEN).collect::<String>();
            text.push_str(&format!("{}\n", UntrustedText::new(about).multiline()));
        }
        text.push_str(&format!("\n{} {} [ARGUMENT]...\n", paint(HEADING, "Usage:"), self.line));
        let lines = schema.as_ref().map(InputSchema::lines).unwrap_or_default();
        text.push_str(&format!("\n{}\n", paint(HEADING, "Arguments:")));
        if lines.is_empty() {
            text.push_str("  none declared\n");
        }
        lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        text.push_str(&format!("\n{}\n", paint(HEADING, "Examples:")));
        examples(self.line, schema.as_ref()).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        text
    }
}

impl InputSchema {
    /// Formats the arguments, required ones first, each with its type and description.
    pub fn lines(&self) -> Vec<String> {
        let needed: Vec<&str> = self.required().collect();
        let mut names: Vec<&str> = self.names().collect();
        names.sort_by_key(|name| !needed.contains(name));
        names.into_iter().map(|name| self.argument_line(name, needed.contains(&name))).collect()
    }

    fn argument_line(&self, name: &str, is_needed: bool) -> String {
        let types = self.types_of(name).0.join("|");
        let mut facts = vec![if types.is_empty() { "any".to_owned() } else { types }];
        if is_needed {
            facts.push("required".to_owned());
        }
        let shown = |text: String| UntrustedText::new(text).truncate(MAX_VALUES_LEN).to_string();
        facts.extend(self.keyword(name, "default").map(|value| shown(format!("default `{}`", value_as_typed(value)))));
        let values = self.keyword(name, "enum").and_then(Value::as_array);
        facts.extend(values.map(|values| shown(format!("one of {}", quote_values(values)))));
        for (key, word) in [("minimum", "at least"), ("maximum", "at most")] {
            facts.extend(self.keyword(name, key).map(|bound| shown(format!("{word} {bound}"))));
        }
        let about = self.keyword(name, "description").and_then(Value::as_str).unwrap_or_default();
        let about = UntrustedText::new(about.trim()).truncate(MAX_DESCRIPTION_LEN).to_string();
        let label = paint(NAME, UntrustedText::new(name).to_string());
        format!("{label}  {}  {about}", paint(QUIET, format!("({})", facts.join(", ")))).trim_end().to_owned()
    }
}

/// Returns an example call with the required arguments.
pub fn example(line: &str, schema: &InputSchema) -> String {
    append_words(line, schema.required().map(|name| format!("{name}={}", sample_text(schema, name))))
}

fn examples(line: &str, schema: Option<&InputSchema>) -> Vec<String> {
    let Some(schema) = schema else { return vec![line.to_owned()] };
    let object: Vec<String> =
        schema.required().map(|name| format!("{name:?}: {}", sample_json(schema, name))).collect();
    let mut all = vec![example(line, schema)];
    let optional = schema.names().find(|name| !schema.required().any(|needed| needed == *name));
    if let Some(name) = optional {
        let more = [format!("--{name}"), sample_text(schema, name)];
        let more = if schema.is_flag(name) { &more[..1] } else { &more[..] };
        all.push(append_words(&all[0], more.iter().cloned()));
    }
    all.push(append_words(line, ["--args".to_owned(), format!("{{{}}}", object.join(", "))]));
    all
}

/// Appends words to a line, with their values escaped and quoted for the shell.
fn append_words(line: &str, more: impl IntoIterator<Item = String>) -> String {
    more.into_iter().fold(line.to_owned(), |line, word| {
        let shown = UntrustedText::new(word).truncate(MAX_VALUES_LEN).to_string();
        let (name, value) = match shown.split_once('=') {
            Some((name, value)) if !name.contains([' ', '{']) => (format!("{name}="), value),
            _ => (String::new(), shown.as_str()),
        };
        format!("{line} {name}{}", shlex::try_quote(value).unwrap_or_default())
    })
}

fn sample_text(schema: &InputSchema, name: &str) -> String {
    value_as_typed(&sample_value(schema, name))
}

fn sample_json(schema: &InputSchema, name: &str) -> String {
    sample_value(schema, name).to_string()
}

/// Returns a sample value: an example of the schema, or a simple value of the type.
fn sample_value(schema: &InputSchema, name: &str) -> Value {
    let first = |key: &str| schema.keyword(name, key).and_then(Value::as_array).and_then(|all| all.first()).cloned();
    let example = first("examples").or_else(|| schema.keyword(name, "default").cloned()).or_else(|| first("enum"));
    example.or_else(|| schema.keyword(name, "const").cloned()).unwrap_or_else(|| {
        match schema.types_of(name).0.first().map(String::as_str) {
            Some("integer" | "number") => schema.keyword(name, "minimum").cloned().unwrap_or_else(|| 1.into()),
            Some("boolean") => true.into(),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(serde_json::Map::new()),
            Some("null") => Value::Null,
            _ => "text".into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::{JsonLimits, RawJson, View as _};

    #[test]
    fn help_shows_types_descriptions_and_examples() {
        let definition = r#"{"name":"log","title":"Lo\u001bg","description":"Shows\u202e commits.\nMany.","inputSchema":{
            "type":"object","required":["repo","count"],"properties":{
            "all":{"type":"boolean","description":"Of all branches.","default":false},
            "count":{"type":"integer","minimum":2,"maximum":9},
            "order":{"enum":["new first","old"]},"repo":{"type":"string","description":"Which."}}}}"#;
        let tool = ToolDefinition::from_raw(RawJson::parse(definition).unwrap(), &JsonLimits::default()).unwrap();
        let help = ToolHelp { line: "wharf call git log", tool: &tool }.text();
        let expected = "Lo\\u{1b}g\nShows\\u{202e} commits.\nMany.\n\nUsage: wharf call git log [ARGUMENT]...\n
Arguments:\n  count  (integer, required, at least 2, at most 9)\n  repo  (string, required)  Which.
  all  (boolean, default `false`)  Of all branches.\n  order  (string, one of `new first`, `old`)\n
Examples:\n  wharf call git log repo=text count=2\n  wharf call git log repo=text count=2 --all
  wharf call git log --args '{\"repo\": \"text\", \"count\": 2}'\n";
        assert_eq!(anstream::adapter::strip_str(&help).to_string(), expected);
    }
}
